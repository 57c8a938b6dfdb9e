package balance

import (
	"slices"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// evenLeaders changes who is preferred in some partitions until no broker is by two more often than another one that
// could take over. Who could is found over others in between:
//
//	1 is preferred 4 times, 2 twice, 3 once; a partition 1,2 and a partition 2,3
//	1 ─▶ 2 ─▶ 3     the first becomes 2,1 and the second 3,2: then it is 3, 2 and 2
//
// Partitions that move anyway are taken first.
func (c *Cluster) evenLeaders(partitions []*placed) {
	order := slices.Clone(partitions)
	slices.SortStableFunc(order, func(a, b *placed) int { return kept(a) - kept(b) })
	for c.evenLeader(order) {
	}
}

// kept is 0 where a partition moves, else 1.
func kept(p *placed) int {
	if slices.Equal(p.now, p.Replicas) {
		return 1
	}
	return 0
}

// handover is how leadership goes from one broker to another: in a partition.
type handover struct {
	from, to P.BrokerID
	in       *placed
}

// evenLeader moves one leadership from a broker that has more to one that has at least two fewer; false where that
// is not possible.
func (c *Cluster) evenLeader(partitions []*placed) bool {
	leading := map[P.BrokerID][]*placed{}
	for _, p := range partitions {
		if len(p.now) > 1 && c.alive(p.now[0]) {
			leading[p.now[0]] = append(leading[p.now[0]], p)
		}
	}
	sources := slices.Clone(c.brokers)
	slices.SortStableFunc(sources, func(a, b Broker) int { return c.leads[b.ID] - c.leads[a.ID] })
	for _, source := range sources {
		if path := c.path(source.ID, leading); path != nil {
			for _, h := range path {
				c.promote(h.in, h.to)
			}
			return true
		}
	}
	return false
}

// path finds the shortest chain of handovers from a broker to the one that leads fewest, at least two fewer than it.
func (c *Cluster) path(source P.BrokerID, leading map[P.BrokerID][]*placed) []handover {
	reached := map[P.BrokerID]handover{source: {}}
	queue := []P.BrokerID{source}
	target := source
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		if c.leads[id] < c.leads[target] {
			target = id
		}
		for _, p := range leading[id] {
			for _, next := range p.now[1:] {
				if _, seen := reached[next]; !seen && c.alive(next) {
					reached[next] = handover{id, next, p}
					queue = append(queue, next)
				}
			}
		}
	}
	if c.leads[source]-c.leads[target] < 2 {
		return nil
	}
	var path []handover
	for at := target; at != source; at = reached[at].from {
		path = append(path, reached[at])
	}
	return path
}

// alive reports whether a broker is there.
func (c *Cluster) alive(id P.BrokerID) bool {
	_, ok := c.known[id]
	return ok
}

// Demote plans that a broker is preferred by no partition: of each that prefers it, the in-sync replica becomes so
// whose broker is preferred least often, and it goes to the end. It returns the partitions that have nobody else in sync.
func (c *Cluster) Demote(id P.BrokerID) []P.TopicPartition {
	var stuck []P.TopicPartition
	for _, p := range c.partitions {
		if p.now[0] != id {
			continue
		}
		others := slices.DeleteFunc(without(p.now, []P.BrokerID{id}), func(other P.BrokerID) bool {
			return !c.alive(other) || !slices.Contains(p.InSync, other)
		})
		if len(others) == 0 {
			stuck = append(stuck, p.TopicPartition)
			continue
		}
		first := slices.MinFunc(others, func(a, b P.BrokerID) int { return c.leads[a] - c.leads[b] })
		rest := without(p.now, []P.BrokerID{first, id})
		c.assign(p, slices.Concat([]P.BrokerID{first}, rest, []P.BrokerID{id}))
	}
	return stuck
}
