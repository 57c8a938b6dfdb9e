package replica

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/partition"
	"github.com/barnabas-mq/barnabas/internal/peer"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Proposals of all partitions go to the controller in one request at a time (AlterPartition, KIP-497): what comes
// up while one is under way goes with the next. A proposal that gets no definite answer is sent again, the same,
// with growing pauses, for as long as its partition waits for it.
//
//	broker, broker epoch                                 version
//	topics [ name (to 1) | id (2)
//	  partitions [ number  leader epoch  the set (to 2) | { broker, broker epoch } (3)
//	    recovery state (1)  partition epoch that the set is to replace ] ]
//
// The answer has the state as it is then; where it is one of ours, also the eligible replicas, in a tag.
const (
	proposalsMost     = 2000                   // in one request
	proposalTimeout   = 10 * time.Second       // of one request
	proposalPause     = 20 * time.Millisecond  // after the first failure
	proposalPauseMost = 200 * time.Millisecond // after many
)

// sentProposal is a proposal and whose it is.
type sentProposal struct {
	partition *Partition
	proposal  *partition.Proposal
}

// proposals are those that wait to be sent.
type proposals struct {
	wake chan struct{} // one slot

	mu      sync.Mutex
	waiting []sentProposal
}

func (q *proposals) add(one ...sentProposal) {
	if len(one) == 0 {
		return
	}
	q.mu.Lock()
	q.waiting = append(q.waiting, one...)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take takes the oldest ones out, and wakes whoever takes the rest.
func (q *proposals) take() []sentProposal {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), proposalsMost)
	batch := q.waiting[:n:n]
	if q.waiting = q.waiting[n:]; len(q.waiting) == 0 {
		q.waiting = nil
		return batch
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return batch
}

// refusal is the partitions whose proposals were refused together, which are looked at again when their hold-off is over.
type refusal struct {
	due        time.Time
	partitions []*Partition
}

// refusals are in the order in which they are due.
type refusals []refusal

// next is readable when the first one is due; nil where there is none.
func (r refusals) next() <-chan time.Time {
	if len(r) == 0 {
		return nil
	}
	return time.After(time.Until(r[0].due))
}

// sendProposals sends proposals until ctx ends.
func (r *Replicas) sendProposals(ctx context.Context) {
	pause := time.Duration(0)
	var refused refusals
	for {
		select {
		case <-r.options.proposals.wake:
		case <-refused.next():
			for _, p := range refused[0].partitions {
				p.checkFollowers()
			}
			refused = refused[1:]
		case <-ctx.Done():
			return
		}
		batch := r.options.proposals.take()
		if len(batch) == 0 {
			continue
		}
		again, no := r.sendBatch(ctx, batch)
		if len(no) > 0 {
			refused = append(refused, refusal{time.Now().Add(partition.HoldOff), no})
		}
		if len(again) == 0 {
			pause = 0
			continue
		}
		pause = min(max(2*pause, proposalPause), proposalPauseMost)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		r.options.proposals.add(again...)
	}
}

// sendBatch sends proposals and hands the answers out. It returns those that are to be sent again, and whose were
// refused. One that succeeds in another leader epoch counts as refused: this leader's may be over, or the answer be that of
// a controller which knew less.
//
// Nobody waits any more for one that was to be sent again and has become void meanwhile. With it a request could name a
// partition twice, and its answer would pass for that to the present one.
func (r *Replicas) sendBatch(ctx context.Context, batch []sentProposal) (again []sentProposal, refused []*Partition) {
	batch = slices.DeleteFunc(batch, func(s sentProposal) bool { return !s.partition.waits(s.proposal) })
	// Topic ids came with version 2; a cluster that is older than they are has none.
	named, byID := splitByID(batch)
	again, refused = r.sendPart(ctx, named, 1)
	more, also := r.sendPart(ctx, byID, 3)
	return append(again, more...), append(refused, also...)
}

// sendPart sends proposals in one request of the given version.
func (r *Replicas) sendPart(ctx context.Context, part []sentProposal, version int16) (again []sentProposal, refused []*Partition) {
	if len(part) == 0 {
		return nil, nil
	}
	answers := r.askController(ctx, part, version)
	for _, s := range part {
		answer, ok := answers[s.partition]
		if !ok {
			answer = partition.Answer{Lost: true}
		}
		if s.partition.answered(s.proposal, answer) {
			again = append(again, s)
		} else if answer.Code != protocol.None || answer.State.LeaderEpoch != s.proposal.LeaderEpoch {
			refused = append(refused, s.partition)
		}
	}
	return again, refused
}

func splitByID(batch []sentProposal) (named, byID []sentProposal) {
	for _, s := range batch {
		if s.partition.id.IsZero() {
			named = append(named, s)
		} else {
			byID = append(byID, s)
		}
	}
	return named, byID
}

// askController sends one request and gives the answers that came.
func (r *Replicas) askController(ctx context.Context, batch []sentProposal, version int16) map[*Partition]partition.Answer {
	ctx, cancel := context.WithTimeout(ctx, proposalTimeout)
	defer cancel()
	response, err := r.options.Controller(ctx, r.alterPartition(batch, version))
	answers := map[*Partition]partition.Answer{}
	alter, ok := response.(*kmsg.AlterPartitionResponse)
	switch {
	case err != nil || !ok:
		code := protocol.CodeOf(err)
		for _, s := range batch {
			answers[s.partition] = partition.Answer{Code: code, Lost: code != protocol.NotController}
		}
		return answers
	case alter.ErrorCode != 0:
		for _, s := range batch {
			answers[s.partition] = partition.Answer{Code: protocol.Code(alter.ErrorCode)}
		}
		return answers
	}
	type name struct { // by id or by name, as the version goes
		topic     string
		id        protocol.TopicID
		partition int32
	}
	partitions := map[name]*Partition{}
	for _, s := range batch {
		if version >= 2 {
			partitions[name{id: s.partition.id, partition: s.partition.tp.Partition}] = s.partition
		} else {
			partitions[name{topic: s.partition.tp.Topic, partition: s.partition.tp.Partition}] = s.partition
		}
	}
	for _, topic := range alter.Topics {
		for i := range topic.Partitions {
			one := &topic.Partitions[i]
			if p := partitions[name{topic.Topic, topic.TopidID, one.Partition}]; p != nil {
				answers[p] = answerOf(one)
			}
		}
	}
	return answers
}

// answerOf reads the controller's answer about one partition.
func answerOf(one *kmsg.AlterPartitionResponseTopicPartition) partition.Answer {
	state := metadata.Partition{
		Leader: protocol.BrokerID(one.LeaderID), LeaderEpoch: protocol.LeaderEpoch(one.LeaderEpoch),
		Epoch: protocol.PartitionEpoch(one.PartitionEpoch), Eligible: peer.Eligible(&one.UnknownTags),
	}
	for _, id := range one.ISR {
		state.ISR = append(state.ISR, protocol.BrokerID(id))
	}
	return partition.Answer{Code: protocol.Code(one.ErrorCode), State: state}
}

// alterPartition makes the request.
func (r *Replicas) alterPartition(batch []sentProposal, version int16) *kmsg.AlterPartitionRequest {
	q := kmsg.NewPtrAlterPartitionRequest()
	q.SetVersion(version)
	q.BrokerID, q.BrokerEpoch = int32(r.options.Self), int64(r.options.BrokerEpoch())
	topics := map[string]int{}
	for _, s := range batch {
		at, ok := topics[s.partition.tp.Topic]
		if !ok {
			at = len(q.Topics)
			topics[s.partition.tp.Topic] = at
			topic := kmsg.NewAlterPartitionRequestTopic()
			if topic.TopicID = s.partition.id; version < 2 {
				topic.Topic = s.partition.tp.Topic
			}
			q.Topics = append(q.Topics, topic)
		}
		one := asRequested(s.partition.tp.Partition, s.proposal)
		for i := range one.NewEpochISR {
			if member := &one.NewEpochISR[i]; member.BrokerID == q.BrokerID {
				member.BrokerEpoch = q.BrokerEpoch // of now: it may have registered anew since it began to lead
			}
		}
		q.Topics[at].Partitions = append(q.Topics[at].Partitions, one)
	}
	return q
}

func asRequested(number int32, proposal *partition.Proposal) kmsg.AlterPartitionRequestTopicPartition {
	one := kmsg.NewAlterPartitionRequestTopicPartition()
	one.Partition, one.LeaderEpoch, one.PartitionEpoch = number, int32(proposal.LeaderEpoch), int32(proposal.PartitionEpoch)
	for _, m := range proposal.InSync {
		one.NewISR = append(one.NewISR, int32(m.ID))
		member := kmsg.NewAlterPartitionRequestTopicPartitionNewEpochISR()
		member.BrokerID, member.BrokerEpoch = int32(m.ID), int64(m.Epoch)
		one.NewEpochISR = append(one.NewEpochISR, member)
	}
	return one
}
