package admin

import (
	"context"
	"fmt"
	"slices"
)

// Obstacle is a partition that would suffer from the stop of a broker.
type Obstacle struct {
	TopicPartition
	// ISR are the replicas in sync now, MinInSync how many acks=all wants.
	ISR       []int32
	MinInSync int
	// Offline: nobody could lead it, else acks=all would be refused.
	Offline bool
	// Advice says what to do first.
	Advice string
}

// CanStop lists what would suffer if a broker stopped now; none means that it may. The error is about a broker that
// does not live.
//
// What suffers already, whatever becomes of this broker, is not listed: see [Client.Status].
func (c *Client) CanStop(ctx context.Context, broker int32) ([]Obstacle, error) {
	metadata, err := c.newestMetadata(ctx)
	if err != nil {
		return nil, err
	}
	l := &Layout{Cluster: clusterOf(metadata)}
	for i := range metadata.Topics {
		l.Topics = append(l.Topics, topicOf(&metadata.Topics[i]))
	}
	if !l.Alive(broker) {
		return nil, fmt.Errorf("there is no broker %d that runs", broker)
	}
	settings, err := c.topicSettings(ctx, l)
	if err != nil {
		return nil, err
	}
	var all []Obstacle
	for _, t := range l.Topics {
		for _, p := range t.Partitions {
			if o, ok := obstacle(TopicPartition{t.Name, p.Number}, p, max(settings.minInSync[t.Name], 1), broker); ok {
				all = append(all, o)
			}
		}
	}
	slices.SortFunc(all, func(a, b Obstacle) int { return a.Compare(b.TopicPartition) })
	return all, nil
}

// obstacle says what would become of one partition.
//
//	replicas  in sync  minimum   without 1
//	1,2,3     1,2,3    2         nothing happens
//	1,2,3     1,2      2         acks=all is refused: wait for 3
//	1,2       1,2      2         acks=all is refused: the minimum leaves no room for any stop
//	1         1        1         offline
func obstacle(at TopicPartition, p Partition, minInSync int, broker int32) (Obstacle, bool) {
	left := less(p.ISR, []int32{broker})
	if !slices.Contains(p.ISR, broker) || len(left) >= minInSync && len(left) > 0 {
		return Obstacle{}, false
	}
	o := Obstacle{TopicPartition: at, ISR: p.ISR, MinInSync: minInSync, Offline: len(left) == 0}
	behind := less(p.Replicas, p.ISR)
	switch {
	case len(p.Replicas) == 1:
		o.Advice = fmt.Sprintf("it has no other replica: barnabas topic set-replication %s 3, or barnabas cluster drain %d --replicas", at.Topic, broker)
	case len(p.Replicas) <= minInSync:
		o.Advice = fmt.Sprintf("min.insync.replicas=%d leaves no room with %d replicas: barnabas topic set-replication %s %d", minInSync, len(p.Replicas), at.Topic, minInSync+1)
	case len(behind) > 0:
		o.Advice = fmt.Sprintf("wait until %s in sync again", are(behind, ""))
	}
	return o, true
}
