package metrics

import (
	"iter"
	"net"
	"strconv"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/logdir"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// ReadPartitions lists the replicas that image gives the broker self, with the state of their logs. A
// replica without a log counts as empty where it may not have one yet, and as offline where offline says so. adding is how
// many replicas of a partition that this broker leads are being added by a reassignment: as in Kafka they do not count
// before it has ended, neither as replicas nor as missing ones.
//
// It walks one image, while logs go on: offsets of one partition belong together, those of two need not.
func ReadPartitions(self protocol.BrokerID, image *metadata.Image, logOf func(protocol.TopicPartition) *log.Log,
	offline func(protocol.TopicPartition) bool, adding func(protocol.TopicPartition) int) iter.Seq[Partition] {
	return func(yield func(Partition) bool) {
		for _, name := range image.Topics() {
			topic := image.Topic(name)
			for number, state := range topic.Partitions {
				if !hosts(state, self) {
					continue
				}
				tp := protocol.TopicPartition{Topic: name, Partition: int32(number)}
				p := readPartition(self, tp, state, logOf(tp), offline(tp))
				if p.Leads {
					p.Replicas -= min(adding(tp), p.Replicas)
				}
				if !yield(p) {
					return
				}
			}
		}
	}
}

// hosts reports whether a broker has a replica.
func hosts(p *metadata.Partition, self protocol.BrokerID) bool {
	for _, id := range p.Replicas {
		if id == self {
			return true
		}
	}
	return false
}

// readPartition is one replica.
func readPartition(self protocol.BrokerID, tp protocol.TopicPartition, state *metadata.Partition, l *log.Log, offline bool) Partition {
	p := Partition{
		Topic: tp.Topic, Partition: tp.Partition, Offline: offline,
		Leads: state.Leader == self, Preferred: state.Leader == state.Preferred(), Leader: int32(state.Leader),
		Replicas: len(state.Replicas), InSync: len(state.ISR), MinInSync: 1,
	}
	if l != nil {
		p.Size = l.Size()
		p.Start, p.HighWatermark, p.End = int64(l.StartOffset()), int64(l.HighWatermark()), int64(l.EndOffset())
		p.MinInSync = l.Config().MinInsyncReplicas
	}
	return p
}

// ReadDirectories lists the log directories.
func ReadDirectories(dirs *logdir.Set) iter.Seq[Directory] {
	return func(yield func(Directory) bool) {
		for _, d := range dirs.Dirs() {
			if !yield(Directory{Path: d.Path, Online: d.Err == nil, Total: d.Total, Free: d.Usable}) {
				return
			}
		}
	}
}

// ReadCluster counts the cluster as self sees it in image.
func ReadCluster(self protocol.BrokerID, image *metadata.Image) Cluster {
	c := Cluster{Controller: image.Controller == self, ControllerEpoch: int32(image.ControllerEpoch), Partitions: image.PartitionCount(), Topics: len(image.Topics())}
	for _, b := range image.Brokers() {
		address := ""
		if len(b.Endpoints) > 0 {
			e := b.Endpoints[0]
			address = net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))
		}
		c.Brokers = append(c.Brokers, Broker{ID: int32(b.ID), Address: address})
	}
	for _, name := range image.Topics() {
		for _, p := range image.Topic(name).Partitions {
			switch p.Leader {
			case protocol.NoBroker:
				c.Offline++
			case p.Preferred():
			default:
				c.Astray++
			}
		}
	}
	return c
}
