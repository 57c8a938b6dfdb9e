package controller

import (
	"context"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Altered is what became of one Alteration.
type Altered struct {
	P.TopicPartition
	// TopicID is the topic's id, as the request named it.
	TopicID P.TopicID
	// State is the partition's state afterwards; nil where there is an error.
	State *metadata.Partition
	// Err carries Kafka's code; nil for success.
	Err error
}

// AlterPartition changes in-sync sets as leader, in that life of its broker, asks for. The results stand in
// the order of alterations; the error concerns all of them. After a REQUEST_TIMED_OUT the changes may have
// been made: the leader has to ask again until it hears.
func (c *Controller) AlterPartition(ctx context.Context, leader P.BrokerID, epoch P.BrokerEpoch, alterations []Alteration) ([]Altered, error) {
	type outcome struct {
		results []Altered
		err     error
	}
	o, err := ask(ctx, c, func(t *term) (outcome, error) {
		results, refusal, err := t.alterPartitions(leader, epoch, alterations)
		if refusal == nil {
			refusal = failed(err)
		}
		return outcome{results, refusal}, err
	})
	if err != nil {
		return nil, err
	}
	return o.results, o.err
}

// alterPartitions writes what leader may change, many partitions in one transaction. The last error is one of
// the store.
func (t *term) alterPartitions(leader P.BrokerID, epoch P.BrokerEpoch, alterations []Alteration) ([]Altered, error, error) {
	if b := t.cluster.image.Broker(leader); b == nil || b.Epoch != epoch {
		t.look.brokers = true // it may have registered just now
		return nil, P.StaleBrokerEpoch, nil
	}
	results := make([]Altered, len(alterations))
	var all []decided
	at := map[P.TopicPartition]int{}
	for i := range alterations {
		a := alterations[i]
		r := &results[i]
		r.TopicPartition, r.TopicID = a.TopicPartition, a.TopicID
		topic, err := t.meant(&a)
		if err != nil {
			r.Err = err
			continue
		}
		p := topic.Partition(a.Partition)
		if _, twice := at[a.TopicPartition]; p == nil || t.look.state[a.TopicPartition] || twice {
			r.Err = P.UnknownTopicOrPartition
			if p != nil {
				r.Err = errAskAgain // its state has to be read first
			}
			continue
		}
		next, err := alter(&t.cluster, leader, p, a)
		switch {
		case err != nil:
			r.Err = err
			t.look.brokers = t.look.brokers || P.CodeOf(err) == P.IneligibleReplica
		case next == nil:
			r.State = p
		default:
			at[a.TopicPartition] = i
			all = append(all, decided{TopicPartition: a.TopicPartition, topicID: topic.ID, from: p, to: next, why: whyAltered(p, next)})
		}
	}
	written, err := t.write(all)
	for _, d := range all {
		if r := &results[at[d.TopicPartition]]; written[d.TopicPartition] {
			r.State = d.to
		} else {
			r.Err = errAskAgain
		}
	}
	return results, nil, err
}

// errAskAgain answers for a partition whose state could not be written as this controller knew it. The leader
// asks again: after INVALID_UPDATE_VERSION it would wait to be told a newer state, and there may be none.
const errAskAgain = P.RequestTimedOut

// meant finds the topic that an alteration is about, and names it.
func (t *term) meant(a *Alteration) (*metadata.Topic, error) {
	topic, unknown := t.cluster.image.Topic(a.Topic), P.UnknownTopicOrPartition
	if !a.TopicID.IsZero() {
		topic, unknown = t.cluster.image.TopicByID(a.TopicID), P.UnknownTopicID
	}
	if topic == nil || t.deletions[topic.Name] != nil {
		return nil, unknown
	}
	a.Topic = topic.Name
	return topic, nil
}

// whyAltered is the reason for the log.
func whyAltered(from, to *metadata.Partition) string {
	switch {
	case len(to.ISR) < len(from.ISR):
		return "in-sync set shrunk by the leader"
	case len(to.ISR) > len(from.ISR):
		return "in-sync set grown"
	case from.Recovering != to.Recovering:
		return "the leader has recovered"
	case len(from.Eligible) > len(to.Eligible):
		return "the leader commits without the eligible replicas"
	}
	return "in-sync set changed"
}
