package balance

import (
	"cmp"
	"fmt"
	"slices"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Broker is a living broker that may hold replicas.
type Broker struct {
	ID P.BrokerID
	// Rack is where it stands; "" is the common place of those that do not say.
	Rack string
	// Closed brokers get no replicas that they do not have (cordoned.log.dirs).
	Closed bool
}

// Partition is one partition as it is, or as it will be when the reassignment under way has ended.
type Partition struct {
	P.TopicPartition
	// Replicas is the assignment, the preferred leader first, and InSync those of them that are in sync.
	Replicas, InSync []P.BrokerID
	// Bytes is the size of one replica; 0 where nobody knows.
	Bytes int64
}

// Move is what one partition's assignment is and should be.
type Move struct {
	P.TopicPartition
	From, To []P.BrokerID
	// Bytes is what has to be copied.
	Bytes int64
}

// Adding lists the replicas that have to be copied.
func (m Move) Adding() []P.BrokerID { return without(m.To, m.From) }

// Removing lists the replicas that are deleted afterwards.
func (m Move) Removing() []P.BrokerID { return without(m.From, m.To) }

// Cluster is a plan in the making: the partitions as they will be. It belongs to one goroutine.
type Cluster struct {
	brokers    []Broker // by id
	known      map[P.BrokerID]Broker
	partitions []*placed // by topic and number

	// What each broker has: replicas, of each topic, their bytes, and how many partitions prefer it as leader.
	holds, leads map[P.BrokerID]int
	bytes        map[P.BrokerID]int64
	topics       []*topic // by name
}

// topic is the partitions of one topic, and how many replicas of them each broker will have.
type topic struct {
	partitions []*placed
	on         map[P.BrokerID]int
}

// placed is a partition and where it will be.
type placed struct {
	Partition
	topic *topic
	now   []P.BrokerID
}

// New begins a plan: nothing moves yet.
func New(brokers []Broker, partitions []Partition) *Cluster {
	c := &Cluster{
		brokers: slices.Clone(brokers), known: map[P.BrokerID]Broker{}, holds: map[P.BrokerID]int{},
		leads: map[P.BrokerID]int{}, bytes: map[P.BrokerID]int64{},
	}
	slices.SortFunc(c.brokers, func(a, b Broker) int { return cmp.Compare(a.ID, b.ID) })
	for _, b := range brokers {
		c.known[b.ID] = b
	}
	for _, p := range partitions {
		c.partitions = append(c.partitions, &placed{Partition: p})
	}
	slices.SortFunc(c.partitions, func(a, b *placed) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.TopicPartition.Partition, b.TopicPartition.Partition))
	})
	for i, p := range c.partitions {
		if i == 0 || c.partitions[i-1].Topic != p.Topic {
			c.topics = append(c.topics, &topic{on: map[P.BrokerID]int{}})
		}
		p.topic = c.topics[len(c.topics)-1]
		p.topic.partitions = append(p.topic.partitions, p)
		c.assign(p, slices.Clone(p.Replicas))
	}
	return c
}

// Moves lists what is planned, by topic and partition.
func (c *Cluster) Moves() []Move {
	var moves []Move
	for _, p := range c.partitions {
		if !slices.Equal(p.now, p.Replicas) {
			m := Move{TopicPartition: p.TopicPartition, From: p.Replicas, To: slices.Clone(p.now)}
			m.Bytes = p.Bytes * int64(len(m.Adding()))
			moves = append(moves, m)
		}
	}
	return moves
}

// LosingRacks counts the partitions that keep their number of replicas, or get more, and will be on fewer racks. The
// racks of brokers that are not there are not known, and do not count.
func (c *Cluster) LosingRacks() int {
	n := 0
	for _, p := range c.partitions {
		if len(p.now) >= len(p.Replicas) && len(c.racks(p.now)) < len(c.racks(c.living(p.Replicas))) {
			n++
		}
	}
	return n
}

// Holds is how many replicas a broker will have.
func (c *Cluster) Holds(id P.BrokerID) int { return c.holds[id] }

// Leads is how many partitions will prefer a broker as their leader.
func (c *Cluster) Leads(id P.BrokerID) int { return c.leads[id] }

// assign gives a partition other replicas.
func (c *Cluster) assign(p *placed, replicas []P.BrokerID) {
	c.count(p, -1)
	p.now = replicas
	c.count(p, 1)
}

func (c *Cluster) count(p *placed, n int) {
	for i, id := range p.now {
		c.holds[id] += n
		c.bytes[id] += int64(n) * p.Bytes
		p.topic.on[id] += n
		if i == 0 {
			c.leads[id] += n
		}
	}
}

// replace puts one broker in another's place.
func (c *Cluster) replace(p *placed, old, with P.BrokerID) {
	replicas := slices.Clone(p.now)
	replicas[slices.Index(replicas, old)] = with
	c.assign(p, replicas)
}

// promote makes a replica the preferred leader; who was goes to its place.
func (c *Cluster) promote(p *placed, id P.BrokerID) {
	replicas := slices.Clone(p.now)
	i := slices.Index(replicas, id)
	replicas[0], replicas[i] = replicas[i], replicas[0]
	c.assign(p, replicas)
}

// rack is where a broker stands. One that is not there counts as a rack of its own.
func (c *Cluster) rack(id P.BrokerID) string {
	if b, ok := c.known[id]; ok {
		return b.Rack
	}
	return fmt.Sprintf("\x00%d", id)
}

// racks counts replicas by rack.
func (c *Cluster) racks(replicas []P.BrokerID) map[string]int {
	used := map[string]int{}
	for _, id := range replicas {
		used[c.rack(id)]++
	}
	return used
}

// living are those of some brokers that are there.
func (c *Cluster) living(ids []P.BrokerID) []P.BrokerID {
	return slices.DeleteFunc(slices.Clone(ids), func(id P.BrokerID) bool { return !c.alive(id) })
}

// best is who of the candidates should get one more replica of a partition that keeps some; false where nobody can.
func (c *Cluster) best(p *placed, keeps []P.BrokerID, candidate func(Broker) bool) (P.BrokerID, bool) {
	used := c.racks(keeps)
	var found []Broker
	for _, b := range c.brokers {
		if !b.Closed && !slices.Contains(keeps, b.ID) && !slices.Contains(p.now, b.ID) && candidate(b) {
			found = append(found, b)
		}
	}
	if len(found) == 0 {
		return P.NoBroker, false
	}
	return slices.MinFunc(found, func(a, b Broker) int {
		return cmp.Or(cmp.Compare(used[a.Rack], used[b.Rack]),
			cmp.Compare(p.topic.on[a.ID], p.topic.on[b.ID]),
			cmp.Compare(c.holds[a.ID], c.holds[b.ID]), cmp.Compare(c.bytes[a.ID], c.bytes[b.ID]), cmp.Compare(a.ID, b.ID))
	}).ID, true
}

// without is a list less another one, in order.
func without(ids, less []P.BrokerID) []P.BrokerID {
	return slices.DeleteFunc(slices.Clone(ids), func(id P.BrokerID) bool { return slices.Contains(less, id) })
}
