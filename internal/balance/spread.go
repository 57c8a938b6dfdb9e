package balance

import (
	"cmp"
	"slices"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Spread plans even numbers of replicas and preferred leaders on all brokers, as many racks for each partition as it
// can have, and topics spread over brokers where that costs no further moves.
//
// Each move of a replica goes from one broker to another that has at least two fewer, so that the sum of squares
// falls and the plan ends; none is undone by a later one.
func (c *Cluster) Spread() {
	c.useRacks()
	c.even(func(P.BrokerID) bool { return true })
	c.evenLeaders(c.partitions)
}

// Fill plans replicas onto brokers that hold less than percent of what they would if all held the same, until they
// do not any more: a broker that has joined gets its share, and what is as good as even is left alone. Of the
// partitions that move, preferred leaders are spread. Brokers that are closed and hold nothing are not counted.
func (c *Cluster) Fill(percent int) {
	all, open := 0, 0
	for _, b := range c.brokers {
		all += c.holds[b.ID]
		if !b.Closed || c.holds[b.ID] > 0 {
			open++
		}
	}
	c.even(func(id P.BrokerID) bool { return c.holds[id]*open*100 < percent*all })
	c.evenLeaders(slices.DeleteFunc(slices.Clone(c.partitions), func(p *placed) bool { return slices.Equal(p.now, p.Replicas) }))
}

// useRacks moves replicas that share a rack to racks that their partition does not use.
func (c *Cluster) useRacks() {
	for _, p := range c.partitions {
		for i := len(p.now) - 1; i >= 0; i-- { // the preferred leader moves last
			id := p.now[i]
			used := c.racks(p.now)
			if _, alive := c.known[id]; !alive || used[c.rack(id)] == 1 {
				continue
			}
			if other, ok := c.best(p, without(p.now, []P.BrokerID{id}), func(b Broker) bool { return used[b.Rack] == 0 }); ok {
				c.replace(p, id, other)
			}
		}
	}
}

// pair is two brokers between which a replica may move.
type pair struct{ from, to P.BrokerID }

// even moves replicas from brokers that have most to those that have least, as long as they differ by two and the
// receiver may receive.
//
// Pairs between which nothing can move are passed over until nothing moves between the others either: a rack that has
// fewer brokers than the rest would make the plan for a large cluster slow.
func (c *Cluster) even(receives func(P.BrokerID) bool) {
	barren := map[pair]bool{}
	for moved := true; moved; {
		moved = false
		for c.evenOne(receives, barren) {
			moved = true
		}
		clear(barren)
	}
}

// evenOne makes the move that evens most; false where there is none.
func (c *Cluster) evenOne(receives func(P.BrokerID) bool, barren map[pair]bool) bool {
	order := slices.Clone(c.brokers)
	slices.SortFunc(order, func(a, b Broker) int {
		return cmp.Or(cmp.Compare(c.holds[a.ID], c.holds[b.ID]), cmp.Compare(a.ID, b.ID))
	})
	for _, from := range slices.Backward(order) {
		for _, to := range order {
			if c.holds[from.ID]-c.holds[to.ID] < 2 {
				break
			}
			between := pair{from.ID, to.ID}
			if to.Closed || barren[between] || !receives(to.ID) {
				continue
			}
			if p := c.candidate(between); p != nil {
				c.replace(p, from.ID, to.ID)
				return true
			}
			barren[between] = true
		}
	}
	return false
}

// candidate is the partition whose replica is best moved from one broker to another: of the topic that is spread
// worst over the two, then one that evens preferred leaders as well, then one that evens bytes.
func (c *Cluster) candidate(b pair) *placed {
	var best *placed
	var surplus int
	for _, t := range c.topics {
		if s := t.on[b.from] - t.on[b.to]; t.on[b.from] > 0 && (best == nil || s >= surplus) {
			for _, p := range t.partitions {
				if c.mayMove(p, b) && (best == nil || s > surplus || c.better(p, best, b)) {
					best, surplus = p, s
				}
			}
		}
	}
	return best
}

// mayMove reports whether a replica can go from one broker to another, and its partition is on no fewer racks then.
func (c *Cluster) mayMove(p *placed, b pair) bool {
	if !slices.Contains(p.now, b.from) || slices.Contains(p.now, b.to) {
		return false
	}
	from, to := c.rack(b.from), c.rack(b.to)
	if from == to {
		return true
	}
	left, there := 0, 0
	for _, id := range p.now {
		switch c.rack(id) {
		case from:
			left++
		case to:
			there++
		}
	}
	return left > 1 || there == 0
}

// better compares two candidates of topics that are spread as badly.
func (c *Cluster) better(p, best *placed, b pair) bool {
	leaders := c.leads[b.from] > c.leads[b.to]
	if helps := (p.now[0] == b.from) == leaders; helps != ((best.now[0] == b.from) == leaders) {
		return helps
	}
	if c.bytes[b.from] > c.bytes[b.to] {
		return p.Bytes > best.Bytes
	}
	return p.Bytes < best.Bytes
}
