package metadata

import (
	"slices"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// MaxPartitions bounds the partitions of one topic, so that a partition number that lies cannot make an
// image allocate gigabytes. Whoever takes numbers from outside checks them against it.
const MaxPartitions = 1_000_000

// Topic is one topic with all its partitions. It is immutable.
type Topic struct {
	// Name is the topic's name.
	Name string
	// ID tells a topic from an earlier one of the same name; zero in clusters older than Kafka 2.8.
	ID P.TopicID
	// Partitions is indexed by the partition's number and holds no nil: a partition that nobody told of
	// yet has neither leader nor replicas (see [Partition.Known]).
	Partitions []*Partition
	// Config is what was set on the topic itself; nil where nothing was.
	Config map[string]string
}

// Partition is the state of one partition. It is immutable, and so are its slices.
type Partition struct {
	// Leader is NoBroker while no eligible replica is alive.
	Leader P.BrokerID
	// LeaderEpoch rises with every change of leader, and whenever the controller takes a replica out of
	// the in-sync set.
	LeaderEpoch P.LeaderEpoch
	// Epoch is the data version of the partition's state znode.
	Epoch P.PartitionEpoch
	// ControllerEpoch is that of the controller that wrote the state last.
	ControllerEpoch P.ControllerEpoch
	// Modified is the transaction of the store that wrote the state last. A member of the in-sync set whose
	// broker epoch is higher has restarted since. Only the controller knows it; it is 0 in a broker's view.
	Modified int64
	// Replicas is the assignment, the preferred leader first; during a reassignment it holds the old and
	// the new replicas.
	Replicas []P.BrokerID
	// ISR is the set of replicas that are in sync; never empty once the partition has been created.
	ISR []P.BrokerID
	// Adding and Removing are the replicas that a reassignment adds and takes away.
	Adding, Removing []P.BrokerID
	// Offline lists the replicas on dead brokers or failed directories, as the controller saw them.
	Offline []P.BrokerID
	// Doubtful lists the members of the ISR, and eligible replicas, that may have lost records by a restart while
	// the partition had no leader. Only the controller knows them; they are nil where there is a leader.
	Doubtful []P.BrokerID
	// Eligible lists replicas outside of the ISR that have all that was ever committed, since the ISR has been
	// smaller than min.insync.replicas ever after they left it (KIP-966). While there are any, the leader's
	// watermark stands still; to move it the leader has them forgotten first, by an AlterPartition that asks
	// for the ISR as it is. In a broker's view only LeaderAndIsr fills it.
	Eligible []P.BrokerID
	// Recovering is true after an unclean election until the leader has cleaned up (KIP-704).
	Recovering bool
	// UncleanEpoch is the leader epoch of the last unclean election: a replica whose records are all older may have
	// committed ones that the leaders since have never had. 0 where there was none, as nobody is elected in epoch 0.
	// In a broker's view only LeaderAndIsr fills it.
	UncleanEpoch P.LeaderEpoch
}

// unknown stands where a partition's number is known to exist but nothing else about it.
func unknown() *Partition {
	return &Partition{Leader: P.NoBroker, LeaderEpoch: P.NoLeaderEpoch, Epoch: P.AnyEpoch}
}

// Known reports whether anything was ever told about the partition.
func (p *Partition) Known() bool { return len(p.Replicas) > 0 }

// Preferred is the replica that should lead when everything is well.
func (p *Partition) Preferred() P.BrokerID {
	if len(p.Replicas) == 0 {
		return P.NoBroker
	}
	return p.Replicas[0]
}

// Equal reports whether both states are the same in every field.
func (p *Partition) Equal(o *Partition) bool {
	if p == o {
		return true
	}
	return p != nil && o != nil && p.Leader == o.Leader && p.LeaderEpoch == o.LeaderEpoch && p.Epoch == o.Epoch &&
		p.ControllerEpoch == o.ControllerEpoch && p.Modified == o.Modified && p.Recovering == o.Recovering && p.UncleanEpoch == o.UncleanEpoch &&
		slices.Equal(p.Replicas, o.Replicas) && slices.Equal(p.ISR, o.ISR) && slices.Equal(p.Adding, o.Adding) &&
		slices.Equal(p.Removing, o.Removing) && slices.Equal(p.Offline, o.Offline) &&
		slices.Equal(p.Doubtful, o.Doubtful) && slices.Equal(p.Eligible, o.Eligible)
}

// Partition finds one partition by its number; nil where the topic has fewer or nobody told of it.
func (t *Topic) Partition(number int32) *Partition {
	if number < 0 || int(number) >= len(t.Partitions) || !t.Partitions[number].Known() {
		return nil
	}
	return t.Partitions[number]
}
