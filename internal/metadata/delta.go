package metadata

import (
	"maps"
	"reflect"
	"slices"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Delta says where two images differ. All its lists are sorted, so that whoever walks them does the same
// in every run.
type Delta struct {
	// From and To are the two images. Both are set, also where nothing differs.
	From, To *Image
	// Created and Deleted are topics; one that was deleted and made again in between (another id) is in
	// both.
	Created, Deleted []*Topic
	// Partitions lists the partitions that appeared, changed or went. Those of a topic that was made
	// again are there twice: first as gone, then as new.
	Partitions []PartitionChange
	// Configs lists the entities whose own configuration changed.
	Configs []Entity
	// Brokers lists who joined, left, came back with another epoch or changed an endpoint.
	Brokers []P.BrokerID
	// Replicas lists what this broker's own replicas have to do. Only a broker's view fills it: it comes
	// from LeaderAndIsr and StopReplica, which say more than an image holds.
	Replicas []ReplicaChange
}

// PartitionChange is one changed partition.
//
// The states are shared with the images and must not be changed.
type PartitionChange struct {
	P.TopicPartition
	// TopicID is that of the topic that the change belongs to.
	TopicID P.TopicID
	// Old is nil where the partition is new, New where it is gone.
	Old, New *Partition
}

// Role is what a replica on this broker has to be.
type Role int8

// The roles, as LeaderAndIsr and StopReplica give them.
const (
	// Lead: accept appends and serve reads in the epoch of the state.
	Lead Role = iota + 1
	// Follow: fetch from the state's leader; where that is NoBroker, wait.
	Follow
	// Stop: neither lead nor follow any more, but keep the log.
	Stop
	// Delete: stop, and remove the log.
	Delete
)

// String is the role's name in lower case.
func (r Role) String() string {
	return [...]string{"none", "lead", "follow", "stop", "delete"}[r]
}

// ReplicaChange is one order to a replica on this broker.
type ReplicaChange struct {
	P.TopicPartition
	// TopicID is zero where the sender does not know ids.
	TopicID P.TopicID
	// Role is what the replica has to become.
	Role Role
	// State is the state to lead or follow by; nil for Stop and Delete.
	State *Partition
	// New is true where the partition has just been made: a replica without a log is then no loss.
	New bool
}

// Empty reports whether the images say the same and no replica has anything to do.
func (d *Delta) Empty() bool {
	return len(d.Created) == 0 && len(d.Deleted) == 0 && len(d.Partitions) == 0 && len(d.Configs) == 0 &&
		len(d.Brokers) == 0 && len(d.Replicas) == 0 && d.From.ClusterID == d.To.ClusterID &&
		d.From.Controller == d.To.Controller && d.From.ControllerEpoch == d.To.ControllerEpoch
}

// Diff says where two images differ. Where one descends from the other it looks only at what they do not
// share.
func Diff(from, to *Image) Delta {
	topics, entities, brokers := map[string]bool{}, map[Entity]bool{}, map[P.BrokerID]bool{}
	differ(from.topics, to.topics, topics, func(a, b *Topic) bool { return a == b })
	differ(from.configs, to.configs, entities, maps.Equal[map[string]string, map[string]string])
	for _, b := range from.sorted {
		brokers[b.ID] = true
	}
	for _, b := range to.sorted {
		brokers[b.ID] = true
	}
	return compare(from, to, topics, entities, brokers)
}

// differ collects the keys whose values differ, without looking into shards that both tables share.
func differ[K comparable, V any](a, b *table[K, V], keys map[K]bool, equal func(V, V) bool) {
	for i := range shards {
		if reflect.ValueOf(a.shards[i]).Pointer() == reflect.ValueOf(b.shards[i]).Pointer() {
			continue
		}
		for key, value := range a.shards[i] {
			if other, ok := b.shards[i][key]; !ok || !equal(value, other) {
				keys[key] = true
			}
		}
		for key := range b.shards[i] {
			if _, ok := a.shards[i][key]; !ok {
				keys[key] = true
			}
		}
	}
}

// compare makes the delta of two images that differ at most in the given keys.
func compare(from, to *Image, topics map[string]bool, entities map[Entity]bool, brokers map[P.BrokerID]bool) Delta {
	d := Delta{From: from, To: to}
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		d.topic(from.Topic(name), to.Topic(name))
	}
	for _, entity := range slices.Sorted(maps.Keys(entities)) {
		if !maps.Equal(from.Config(entity), to.Config(entity)) {
			d.Configs = append(d.Configs, entity)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(brokers)) {
		if !from.Broker(id).equal(to.Broker(id)) {
			d.Brokers = append(d.Brokers, id)
		}
	}
	return d
}

// topic adds the difference of one topic; either side may be nil.
func (d *Delta) topic(from, to *Topic) {
	if from != nil && to != nil && from.ID != to.ID && !from.ID.IsZero() {
		d.topic(from, nil)
		from = nil
	}
	if from == nil && to == nil {
		return
	}
	some := to
	var old, now []*Partition
	if from == nil {
		d.Created = append(d.Created, to)
	} else {
		old = from.Partitions
	}
	if to == nil {
		some = from
		d.Deleted = append(d.Deleted, from)
	} else {
		now = to.Partitions
	}
	for i := range max(len(old), len(now)) {
		a, b := known(old, i), known(now, i)
		if a != b && !a.Equal(b) {
			tp := P.TopicPartition{Topic: some.Name, Partition: int32(i)}
			d.Partitions = append(d.Partitions, PartitionChange{TopicPartition: tp, TopicID: some.ID, Old: a, New: b})
		}
	}
}

func known(partitions []*Partition, i int) *Partition {
	if i >= len(partitions) || !partitions[i].Known() {
		return nil
	}
	return partitions[i]
}
