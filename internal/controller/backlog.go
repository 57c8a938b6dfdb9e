package controller

import (
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// round is what one broker is told in one go: LeaderAndIsr, then UpdateMetadata, then StopReplica.
type round struct {
	// image is the newest one, for the living brokers.
	image *metadata.Image
	// lead holds the partitions for LeaderAndIsr.
	lead map[P.TopicPartition]told
	// show holds the partitions for UpdateMetadata, which also goes out empty where refresh is true.
	show    map[P.TopicPartition]told
	refresh bool
	// full says that show holds all there is: what is not in it does not exist any more.
	full bool
	// stop and erase hold the replicas for the two StopReplicas: keeping the log, and deleting it.
	stop, erase map[P.TopicPartition]P.LeaderEpoch
}

// told is one partition's state on its way to a broker.
type told struct {
	topicID P.TopicID
	// state is nil in UpdateMetadata for a partition that is being deleted.
	state *metadata.Partition
	// old is the state before the deletion.
	old *metadata.Partition
	// fresh is true where the partition has just been made.
	fresh bool
}

// During a deletion these stand for the leader in UpdateMetadata and the leader epoch in StopReplica.
const (
	leaderDuringDelete P.BrokerID    = -2
	epochDuringDelete  P.LeaderEpoch = -2
)

// backlog is what a broker has yet to be told. Orders about one partition merge to the newest, so that a
// hung broker costs as much as its partitions, not as much as what happened meanwhile. Two that must not
// merge stand in different rounds: one about a partition of another topic id, and a state behind a stop,
// since StopReplica knows no ids.
type backlog struct{ rounds []*round }

// last is the newest round, made if there is none; with anew it is always made.
func (b *backlog) last(image *metadata.Image, anew bool) *round {
	if len(b.rounds) == 0 || anew {
		b.rounds = append(b.rounds, &round{
			lead: map[P.TopicPartition]told{}, show: map[P.TopicPartition]told{},
			stop: map[P.TopicPartition]P.LeaderEpoch{}, erase: map[P.TopicPartition]P.LeaderEpoch{},
		})
	}
	r := b.rounds[len(b.rounds)-1]
	r.image = image
	return r
}

// take removes the oldest round; nil where there is none.
func (b *backlog) take() *round {
	if len(b.rounds) == 0 {
		return nil
	}
	r := b.rounds[0]
	b.rounds = b.rounds[1:]
	return r
}

// replica tells the broker the state of a partition that it has a replica of.
func (b *backlog) replica(image *metadata.Image, tp P.TopicPartition, t told) {
	r := b.last(image, false)
	earlier, pending := r.lead[tp]
	if r.stops(tp) || pending && earlier.topicID != t.topicID {
		r = b.last(image, true)
		earlier = told{}
	}
	t.fresh = t.fresh || earlier.fresh
	r.lead[tp] = t
}

// amend replaces the state in an order that has not left yet. The order itself stands in the same leader
// epoch.
func (b *backlog) amend(tp P.TopicPartition, t told) {
	for _, r := range b.rounds {
		if earlier, pending := r.lead[tp]; pending && earlier.topicID == t.topicID && earlier.state.LeaderEpoch == t.state.LeaderEpoch {
			t.fresh = earlier.fresh
			r.lead[tp] = t
		}
	}
}

// metadata tells the broker the state of any partition.
func (b *backlog) metadata(image *metadata.Image, tp P.TopicPartition, t told) {
	r := b.last(image, false)
	if earlier, pending := r.show[tp]; pending && earlier.topicID != t.topicID {
		r = b.last(image, true)
	}
	r.show[tp] = t
}

// refresh tells the broker who lives.
func (b *backlog) refresh(image *metadata.Image) { b.last(image, false).refresh = true }

// stop tells the broker that it has no replica any more: to stop, and with erase then to delete the log.
func (b *backlog) stop(image *metadata.Image, tp P.TopicPartition, epoch P.LeaderEpoch, erase bool) {
	r := b.last(image, false)
	r.stop[tp] = epoch
	if erase {
		r.erase[tp] = epoch
	}
}

func (r *round) stops(tp P.TopicPartition) bool {
	_, stop := r.stop[tp]
	_, erase := r.erase[tp]
	return stop || erase
}
