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
//
// What is written is fenced; a refusal, and a state that is so already, are not. A controller that may have been deposed
// gives neither: the leader goes by it, and would count by a set that is not the present one.
func (t *term) alterPartitions(leader P.BrokerID, epoch P.BrokerEpoch, alterations []Alteration) ([]Altered, error, error) {
	if !t.certain() {
		return nil, P.NotController, nil
	}
	if b := t.cluster.image.Broker(leader); b == nil || b.Epoch != epoch {
		t.look.brokers = true // it may have registered just now
		return nil, P.StaleBrokerEpoch, nil
	}
	results := make([]Altered, len(alterations))
	var all []decided
	at := map[P.TopicPartition]int{}
	for i := range alterations {
		d, err := t.planAlteration(leader, &alterations[i], &results[i])
		if _, twice := at[d.TopicPartition]; err == nil && twice && d.to != nil {
			err = errAskAgain
		}
		switch results[i].Err = err; {
		case err != nil:
			t.look.brokers = t.look.brokers || P.CodeOf(err) == P.IneligibleReplica
		case d.to == nil:
			results[i].State = d.from
		default:
			at[d.TopicPartition] = i
			all = append(all, d)
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

// planAlteration says what one partition becomes; no new state where it is so already.
func (t *term) planAlteration(leader P.BrokerID, a *Alteration, r *Altered) (decided, error) {
	r.TopicPartition, r.TopicID = a.TopicPartition, a.TopicID
	topic, err := t.meant(a)
	if err != nil {
		return decided{}, err
	}
	p := topic.Partition(a.Partition)
	switch {
	case p == nil:
		return decided{}, P.UnknownTopicOrPartition
	case t.look.state[a.TopicPartition]: // it has to be read first
		return decided{}, errAskAgain
	}
	next, err := alter(&t.cluster, leader, p, *a)
	if err != nil || next == nil {
		return decided{TopicPartition: a.TopicPartition, from: p}, err
	}
	return decided{TopicPartition: a.TopicPartition, topicID: topic.ID, from: p, to: next, why: whyAltered(p, next)}, nil
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
