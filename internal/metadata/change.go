package metadata

import (
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Change is one step from an image to the next. The types below are all there are.
type Change interface{ apply(b *builder) }

// SetClusterID names the cluster.
type SetClusterID struct{ ID string }

// SetController names the active controller and its epoch.
type SetController struct {
	ID    P.BrokerID
	Epoch P.ControllerEpoch
}

// PutBroker adds a broker, or replaces what was known of it.
type PutBroker struct{ Broker *Broker }

// DropBroker takes a dead broker away; one that is not there is no error.
type DropBroker struct{ ID P.BrokerID }

// PutTopic makes a topic with all its partitions at once, and replaces one of the same name. Config is not
// part of it: the image adds what [SetConfig] said, before or after.
type PutTopic struct {
	Name       string
	ID         P.TopicID
	Partitions []*Partition
}

// DropTopic takes a topic away; its configuration stays until [SetConfig] takes it away.
type DropTopic struct{ Name string }

// PutPartition sets the state of one partition; the topic comes into being with its first one. Where the
// id differs from that of the topic with this name, a new topic replaces the old one. A zero id means that
// the sender does not know ids, and leaves a known one as it is.
type PutPartition struct {
	P.TopicPartition
	TopicID P.TopicID
	// State must not be changed afterwards.
	State *Partition
}

// DropPartition takes one partition away, and with the last one the topic. With an id, a partition of a
// topic of another id is not meant.
type DropPartition struct {
	P.TopicPartition
	TopicID P.TopicID
}

// SetConfig replaces everything that was set on an entity; an empty map takes it away.
type SetConfig struct {
	Entity Entity
	// Values must not be changed afterwards.
	Values map[string]string
}

// builder is one image in the making.
//
// Topics are copied before their first change (owned), tables shard by shard (edit): an image shares with the
// one before all that the changes did not touch, so that a change of one partition costs little in a cluster of
// many.
type builder struct {
	to      Image
	topics  *edit[string, *Topic]
	ids     *edit[P.TopicID, *Topic]
	configs *edit[Entity, map[string]string]
	// owned holds the topics that this builder copied and may write to.
	owned    map[string]*Topic
	touched  map[string]bool // topics
	entities map[Entity]bool
	brokers  map[P.BrokerID]bool
	renamed  bool // the set of topic names has changed
}

// With makes the image that the changes lead to, in their order, and says what differs. Where nothing
// does, the image itself comes back.
func (i *Image) With(changes ...Change) (*Image, Delta) {
	b := &builder{
		to:     *i,
		topics: i.topics.edit(), ids: i.ids.edit(), configs: i.configs.edit(),
		owned: map[string]*Topic{}, touched: map[string]bool{},
		entities: map[Entity]bool{}, brokers: map[P.BrokerID]bool{},
	}
	for _, change := range changes {
		change.apply(b)
	}
	b.to.topics, b.to.ids, b.to.configs = b.topics.table(), b.ids.table(), b.configs.table()
	if b.renamed {
		b.to.names = b.sortNames(i.names)
	}
	d := compare(i, &b.to, b.touched, b.entities, b.brokers)
	if d.Empty() {
		d.To = i
	}
	return d.To, d
}

// sortNames is the sorted names after the change: the old ones without the touched, and the touched that
// are there.
func (b *builder) sortNames(old []string) []string {
	names := make([]string, 0, len(old)+len(b.touched))
	for _, name := range old {
		if !b.touched[name] {
			names = append(names, name)
		}
	}
	for name := range b.touched {
		if b.to.topics.get(name) != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (c SetClusterID) apply(b *builder)  { b.to.ClusterID = c.ID }
func (c SetController) apply(b *builder) { b.to.Controller, b.to.ControllerEpoch = c.ID, c.Epoch }
func (c PutBroker) apply(b *builder)     { b.setBroker(c.Broker.ID, c.Broker) }
func (c DropBroker) apply(b *builder)    { b.setBroker(c.ID, nil) }

// setBroker puts a broker, or takes it away where it is nil.
func (b *builder) setBroker(id P.BrokerID, broker *Broker) {
	if b.to.brokers[id].equal(broker) {
		return
	}
	if len(b.brokers) == 0 {
		b.to.brokers, b.to.sorted = maps.Clone(b.to.brokers), slices.Clone(b.to.sorted)
	}
	b.brokers[id] = true
	if b.to.brokers == nil {
		b.to.brokers = make(map[P.BrokerID]*Broker)
	}
	at, found := slices.BinarySearchFunc(b.to.sorted, id, func(x *Broker, id P.BrokerID) int { return int(x.ID) - int(id) })
	switch {
	case broker == nil:
		delete(b.to.brokers, id)
		b.to.sorted = slices.Delete(b.to.sorted, at, at+1)
		return
	case found:
		b.to.sorted[at] = broker
	default:
		b.to.sorted = slices.Insert(b.to.sorted, at, broker)
	}
	b.to.brokers[id] = broker
}

func (c PutTopic) apply(b *builder) {
	invariant.That(len(c.Partitions) <= MaxPartitions, "metadata: topic with too many partitions")
	partitions := slices.Clone(c.Partitions)
	for i, p := range partitions {
		if p == nil {
			partitions[i] = unknown()
		}
	}
	b.remove(c.Name)
	b.insert(&Topic{Name: c.Name, ID: c.ID, Partitions: partitions})
}

func (c DropTopic) apply(b *builder) { b.remove(c.Name) }

func (c PutPartition) apply(b *builder) {
	if c.Partition < 0 || c.Partition >= MaxPartitions {
		invariant.Fail("metadata: partition %s is outside the bounds of an image", c.TopicPartition)
	}
	old := b.topics.get(c.Topic)
	switch {
	case old == nil:
		b.insert(&Topic{Name: c.Topic, ID: c.TopicID})
	case !c.TopicID.IsZero() && old.ID.IsZero(): // an old cluster that has learned of ids
		b.own(c.Topic).ID = c.TopicID
		b.ids.put(c.TopicID, b.owned[c.Topic])
	case !c.TopicID.IsZero() && old.ID != c.TopicID:
		b.remove(c.Topic)
		b.insert(&Topic{Name: c.Topic, ID: c.TopicID})
	case int(c.Partition) < len(old.Partitions) && old.Partitions[c.Partition].Equal(c.State):
		return
	}
	topic := b.own(c.Topic)
	for int(c.Partition) >= len(topic.Partitions) {
		topic.Partitions = append(topic.Partitions, unknown())
		b.to.partitions++
	}
	topic.Partitions[c.Partition] = c.State
}

func (c DropPartition) apply(b *builder) {
	old := b.topics.get(c.Topic)
	if old == nil || old.Partition(c.Partition) == nil || !c.TopicID.IsZero() && !old.ID.IsZero() && c.TopicID != old.ID {
		return
	}
	topic := b.own(c.Topic)
	topic.Partitions[c.Partition] = unknown()
	if !slices.ContainsFunc(topic.Partitions, (*Partition).Known) {
		b.remove(c.Topic)
	}
}

func (c SetConfig) apply(b *builder) {
	if maps.Equal(b.configs.get(c.Entity), c.Values) {
		return
	}
	b.entities[c.Entity] = true
	values := c.Values
	if len(values) == 0 {
		values = nil
		b.configs.drop(c.Entity)
	} else {
		b.configs.put(c.Entity, values)
	}
	if name := c.Entity.Name(); c.Entity.Type() == TopicEntities && b.topics.get(name) != nil {
		b.own(name).Config = values
	}
}

// own gives a topic that this builder may write to.
func (b *builder) own(name string) *Topic {
	if topic := b.owned[name]; topic != nil {
		return topic
	}
	topic := *b.topics.get(name)
	topic.Partitions = slices.Clone(topic.Partitions)
	b.place(&topic)
	return &topic
}

// insert adds a topic that is not there yet.
func (b *builder) insert(topic *Topic) {
	topic.Config = b.configs.get(TopicEntity(topic.Name))
	b.to.partitions += len(topic.Partitions)
	b.renamed = true
	b.place(topic)
}

func (b *builder) place(topic *Topic) {
	b.owned[topic.Name], b.touched[topic.Name] = topic, true
	b.topics.put(topic.Name, topic)
	if !topic.ID.IsZero() {
		b.ids.put(topic.ID, topic)
	}
}

// remove takes a topic away, if it is there.
func (b *builder) remove(name string) {
	topic := b.topics.get(name)
	if topic == nil {
		return
	}
	delete(b.owned, name)
	b.touched[name], b.renamed = true, true
	b.to.partitions -= len(topic.Partitions)
	b.topics.drop(name)
	if !topic.ID.IsZero() {
		b.ids.drop(topic.ID)
	}
}
