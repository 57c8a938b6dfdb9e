package controller

import (
	"maps"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// cluster is what the decisions look at.
type cluster struct {
	// image holds the living brokers with their epochs, and all partitions with their states.
	image *metadata.Image
	// stops says of each living broker how its life before this one ended.
	stops map[P.BrokerID]znode.Stop
	// loads counts what each broker leads and holds.
	loads loads
	// epoch is that of the controller which decides.
	epoch P.ControllerEpoch
	// settling is true for a while after a controller has started cold: brokers that it does not see may
	// be about to register, so they stay in the sets they are in.
	settling bool
	// ends holds what replicas of partitions without a leader have.
	ends map[P.TopicPartition]map[P.BrokerID]logEnd
	// leaving holds the epochs of brokers that have asked to be shut down.
	leaving map[P.BrokerID]P.BrokerEpoch
	// minimum is min.insync.replicas of a topic, as far as it is known; nil means 1 for all.
	minimum func(topic string) int
	// unclean holds the topics that allow a leader which may lack acknowledged records.
	unclean map[string]bool
	// waiting holds since when missing members of in-sync sets are waited for, patience is for how long they are
	// (unclean.recovery.timeout.ms), and now is the present time.
	waiting  waiting
	patience time.Duration
	now      time.Time
}

// loads counts, for every broker, the partitions that it leads and those that it has a replica of.
type loads struct {
	leaders, replicas map[P.BrokerID]int
	// closed brokers are not to have more; nil means that none is.
	closed func(P.BrokerID) bool
}

// open lists the living brokers that new replicas can be placed on.
func (l loads) open(image *metadata.Image) []*metadata.Broker {
	if l.closed == nil {
		return image.Brokers()
	}
	return slices.DeleteFunc(slices.Clone(image.Brokers()), func(b *metadata.Broker) bool { return l.closed(b.ID) })
}

func newLoads() loads {
	return loads{leaders: map[P.BrokerID]int{}, replicas: map[P.BrokerID]int{}}
}

func (l loads) clone() loads {
	return loads{leaders: maps.Clone(l.leaders), replicas: maps.Clone(l.replicas), closed: l.closed}
}

// apply counts the difference between two images.
func (l loads) apply(changes []metadata.PartitionChange) {
	for _, c := range changes {
		l.add(c.Old, -1)
		l.add(c.New, 1)
	}
}

func (l loads) add(p *metadata.Partition, n int) {
	if p == nil {
		return
	}
	if p.Leader != P.NoBroker {
		l.leaders[p.Leader] += n
	}
	for _, id := range p.Replicas {
		l.replicas[id] += n
	}
}
