package controller

import (
	"context"
	"time"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// ElectionType is what ElectLeaders is asked for, with the numbers of the request.
type ElectionType int8

// The types of elections.
const (
	// PreferredElection makes the first replica of the assignment the leader, if it is in sync.
	PreferredElection ElectionType = 0
	// UncleanElection gives a leader to partitions without one, even if records are lost by it.
	UncleanElection ElectionType = 1
)

// ElectionResult is what became of the election of one partition.
type ElectionResult struct {
	P.TopicPartition
	// Err carries Kafka's code and sentence; nil where a new leader was elected.
	Err error
}

// ElectLeaders elects the leaders of partitions anew. With nil it does so for all that need it, and returns
// only those.
func (c *Controller) ElectLeaders(ctx context.Context, kind ElectionType, partitions []P.TopicPartition) []ElectionResult {
	results, err := ask(ctx, c, func(t *term) ([]ElectionResult, error) { return t.electLeaders(kind, partitions) })
	if err != nil {
		results = make([]ElectionResult, len(partitions))
		for i, tp := range partitions {
			results[i] = ElectionResult{tp, err}
		}
	}
	return results
}

func (t *term) electLeaders(kind ElectionType, partitions []P.TopicPartition) ([]ElectionResult, error) {
	all := partitions == nil
	if all {
		partitions = t.all()
	}
	scratch := t.cluster
	scratch.loads, scratch.now = scratch.loads.clone(), time.Now()
	var results []ElectionResult
	var elected []decided
	at := map[P.TopicPartition]int{}
	for _, tp := range partitions {
		d, err := electOne(&scratch, kind, tp)
		switch {
		case err == nil:
			at[tp] = len(results)
			elected = append(elected, d)
		case all && P.CodeOf(err) == P.ElectionNotNeeded:
			continue
		}
		results = append(results, ElectionResult{tp, err})
	}
	for i := range elected {
		elected[i].to.Eligible = scratch.eligible(elected[i].Topic, elected[i].from, elected[i].to)
	}
	written, err := t.write(elected)
	for tp, i := range at {
		if !written[tp] {
			results[i].Err = P.Errorf(P.RequestTimedOut, "The partition's state has just changed, or the store did not answer.")
		}
	}
	return results, err
}

// electOne is the state of one partition after an election.
func electOne(c *cluster, kind ElectionType, tp P.TopicPartition) (decided, error) {
	topic := c.image.Topic(tp.Topic)
	if topic == nil {
		return decided{}, P.Errorf(P.UnknownTopicOrPartition, "No such topic as %s", tp.Topic)
	}
	p := topic.Partition(tp.Partition)
	if p == nil || p.Epoch == P.AnyEpoch {
		return decided{}, P.Errorf(P.UnknownTopicOrPartition, "No such partition as %s", tp)
	}
	d := decided{TopicPartition: tp, topicID: topic.ID, from: p}
	switch kind {
	case PreferredElection:
		if p.Leader == p.Preferred() {
			return d, P.ElectionNotNeeded
		}
		next, ok := preferLeader(c, p)
		if !ok {
			return d, P.PreferredLeaderNotAvailable
		}
		d.to, d.why = next, "preferred leader elected"
	case UncleanElection:
		if p.Leader != P.NoBroker {
			return d, P.ElectionNotNeeded
		}
		forced := *c
		forced.settling, forced.unclean = false, map[string]bool{tp.Topic: true}
		if _, all := forced.recover(tp, p); !all { // who is there will say at once what it holds
			forced.waiting, forced.patience = waiting{tp: forced.now}, 0
		}
		v := decide(&forced, tp, p)
		if v.next == nil || v.next.Leader == P.NoBroker {
			return d, P.EligibleLeadersNotAvailable
		}
		d.to, d.why = v.next, v.why
	default:
		return d, P.Errorf(P.InvalidRequest, "Election type %d is not known.", kind)
	}
	return d, nil
}
