package controller

import (
	"slices"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// deletion is one topic on its way out:
//
//	/admin/delete_topics/T is there
//	  → UpdateMetadata with leader -2 to all: clients no longer see the topic
//	  → StopReplica to every replica, first keeping the log, then deleting it
//	  → all replicas have answered: the topic's znodes go, last the request itself
//
// A replica whose broker is dead holds the end back until it returns, since it would otherwise bring the
// topic's log back. A new controller starts over from the request; every step may be done twice.
type deletion struct {
	topic *metadata.Topic
	// left holds the replicas that have not confirmed yet.
	left map[replica]bool
	// done is closed when the topic is gone.
	done chan struct{}
}

// replica is one replica of one partition of a topic.
type replica struct {
	partition int32
	broker    P.BrokerID
}

func newDeletion(topic *metadata.Topic) *deletion {
	d := &deletion{topic: topic, left: map[replica]bool{}, done: make(chan struct{})}
	for i, p := range topic.Partitions {
		for _, id := range p.Replicas {
			d.left[replica{int32(i), id}] = true
		}
	}
	return d
}

// on lists the partitions whose replica on a broker has not confirmed, sorted.
func (d *deletion) on(broker P.BrokerID) []P.TopicPartition {
	var partitions []P.TopicPartition
	for i := range d.topic.Partitions {
		if d.left[replica{int32(i), broker}] {
			partitions = append(partitions, P.TopicPartition{Topic: d.topic.Name, Partition: int32(i)})
		}
	}
	return partitions
}

// brokers lists those that have not confirmed all, sorted.
func (d *deletion) brokers() []P.BrokerID {
	seen := map[P.BrokerID]bool{}
	var ids []P.BrokerID
	for r := range d.left {
		if !seen[r.broker] {
			seen[r.broker] = true
			ids = append(ids, r.broker)
		}
	}
	slices.Sort(ids)
	return ids
}

// confirm notes that a broker no longer has a replica, and reports whether none is left anywhere.
func (d *deletion) confirm(broker P.BrokerID, partition int32) bool {
	delete(d.left, replica{partition, broker})
	return len(d.left) == 0
}

// held reports whether a dead broker holds the deletion back.
func (d *deletion) held(image *metadata.Image) bool {
	return slices.ContainsFunc(d.brokers(), func(id P.BrokerID) bool { return !image.Alive(id) })
}
