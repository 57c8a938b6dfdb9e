package admin

import (
	"context"
	"errors"
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

// CanStop lists what would suffer if a broker stopped now; none means that it may. The error says why that is not
// known: the broker does not live, nobody could take over from it for want of a controller with its store, or a
// topic's minimum cannot be read.
//
// What suffers already, whatever becomes of this broker, is not listed: see [Client.Status].
func (c *Client) CanStop(ctx context.Context, broker int32) ([]Obstacle, error) {
	metadata, err := c.newestMetadata(ctx, nil)
	if err != nil {
		return nil, err
	}
	l := layoutOf(metadata)
	if !l.Alive(broker) {
		return nil, fmt.Errorf("there is no broker %d that runs", broker)
	}
	if err := c.canElect(ctx, l); err != nil {
		return nil, err
	}
	settings, err := c.topicSettings(ctx, l)
	if err != nil {
		return nil, err
	}
	var all []Obstacle
	for _, t := range l.Topics {
		minInSync, err := settings.minimum(t.Name)
		if err != nil {
			return nil, err
		}
		for _, p := range t.Partitions {
			if o, ok := l.obstacle(TopicPartition{t.Name, p.Number}, p, minInSync, broker); ok {
				all = append(all, o)
			}
		}
	}
	slices.SortFunc(all, func(a, b Obstacle) int { return a.Compare(b.TopicPartition) })
	return all, nil
}

// canElect says why nobody could take over from a broker that stops. Metadata names a controller also after that has
// lost its store, so it is asked for something that it answers only with one.
func (c *Client) canElect(ctx context.Context, l *Layout) error {
	if l.Cluster.Controller < 0 {
		return errors.New("there is no controller: nobody could take over from a broker that stops")
	}
	asking, cancel := c.limitOne(ctx)
	defer cancel()
	if _, err := c.Reassignments(asking); err != nil {
		return fmt.Errorf("no controller with its store answers, nobody could take over from a broker that stops (is ZooKeeper there?): %w", err)
	}
	return nil
}

// obstacle says what would become of one partition. A member of the in-sync set that is not there, or whose disk has
// failed, does not count: it will leave the set, or could not lead.
//
//	replicas  in sync  minimum   without 1
//	1,2,3     1,2,3    2         nothing happens
//	1,2,3     1,2      2         acks=all is refused: wait for 3
//	1,2       1,2      2         acks=all is refused: the minimum leaves no room for any stop
//	1         1        1         offline
func (l *Layout) obstacle(at TopicPartition, p Partition, minInSync int, broker int32) (Obstacle, bool) {
	_, _, left := l.condition(p, less(p.ISR, []int32{broker}))
	if !slices.Contains(p.ISR, broker) || len(left) >= minInSync && len(left) > 0 {
		return Obstacle{}, false
	}
	o := Obstacle{TopicPartition: at, ISR: p.ISR, MinInSync: minInSync, Offline: len(left) == 0}
	behind := less(less(p.Replicas, left), []int32{broker})
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
