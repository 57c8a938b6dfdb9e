package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/bench/servers"
)

// patience is how long a step may take.
const patience = 3 * time.Minute

// Stage is a running cluster and the partitions that were made on it. One goroutine uses it.
type Stage struct {
	cluster *servers.Cluster
	asker   *asker
	all     []int32 // ids of the brokers
}

// NewStage looks at a running cluster.
func NewStage(ctx context.Context, c *servers.Cluster) (*Stage, error) {
	a, err := newAsker(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &Stage{cluster: c, asker: a}
	for i := range c.Brokers {
		s.all = append(s.all, int32(i+1))
	}
	return s, nil
}

// Close closes connections; what was made stays, but for what Delete has deleted.
func (s *Stage) Close() { s.asker.close() }

// without are the brokers but one.
func (s *Stage) without(gone int32) []int32 {
	return slices.DeleteFunc(slices.Clone(s.all), func(id int32) bool { return id == gone })
}

// Create makes partitions of three replicas: until every broker shows all of them with a full in-sync set, and until
// all have acknowledged a record to acks=all. The clock starts before the controller is looked for, which gets the request.
func (s *Stage) Create(ctx context.Context, partitions int) ([]Figure, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	if err := s.asker.create(ctx, fmt.Sprintf("t%d", began.UnixMilli()), partitions); err != nil {
		return nil, err
	}
	answered := time.Since(began)
	full, err := s.asker.see(ctx, began, s.all, whole(3))
	if err != nil {
		return nil, err
	}
	acked, err := s.asker.acknowledge(ctx, began, s.all[0])
	if err != nil {
		return nil, err
	}
	return []Figure{seconds("request answered", answered), seconds(inSyncFull, full), seconds("acks=all everywhere", acked)}, nil
}

// Delete deletes the partitions that were made, and waits until no broker has a file of them, so that nobody deletes
// while something is measured.
func (s *Stage) Delete(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	admin := kadm.NewClient(s.asker.kafka)
	admin.SetTimeoutMillis(int32(patience.Milliseconds()))
	deleted, err := admin.DeleteTopics(ctx, s.asker.topics...)
	if err == nil {
		err = deleted.Error()
	}
	if err != nil {
		return err
	}
	for _, broker := range s.cluster.Brokers {
		for _, topic := range s.asker.topics {
			if err := broker.AwaitNoFiles(ctx, topic, 20*time.Millisecond); err != nil {
				return err
			}
		}
	}
	s.asker.topics, s.asker.partitions = nil, 0
	return nil
}

// Victim says which broker is to be lost.
type Victim int

const (
	// Controller is the one that is the controller at that moment.
	Controller Victim = iota
	// Other is one that is not.
	Other
)

// choose finds the victim, and how many partitions it leads.
func (s *Stage) choose(ctx context.Context, victim Victim) (id int32, leaders int, err error) {
	if id, err = s.asker.controller(ctx); err != nil {
		return id, 0, err
	}
	if victim == Other {
		id = s.without(id)[0]
	}
	m, err := s.asker.metadata(ctx, id)
	if err != nil {
		return id, 0, err
	}
	return id, holds(m, func(p *kmsg.MetadataResponseTopicPartition) bool { return p.Leader == id }), nil
}

// restore starts a broker again, waits until all replicas are in sync, and has the preferred ones lead. It returns how
// long the first two took.
func (s *Stage) restore(ctx context.Context, id int32) (time.Duration, error) {
	began := time.Now()
	if err := s.cluster.Brokers[id-1].Start(ctx); err != nil {
		return 0, err
	}
	full, err := s.asker.see(ctx, began, s.all, whole(3))
	if err != nil {
		return 0, err
	}
	controller, err := s.asker.controller(ctx)
	if err != nil {
		return 0, err
	}
	q := kmsg.NewPtrElectLeadersRequest() // for all partitions
	q.TimeoutMillis = 60_000
	response, err := s.asker.kafka.Broker(int(controller)).RetriableRequest(ctx, q) // connections to its earlier life may be left
	if err != nil {
		return 0, err
	}
	if err := kerr.ErrorForCode(response.(*kmsg.ElectLeadersResponse).ErrorCode); err != nil {
		return 0, err
	}
	preferred := func(p *kmsg.MetadataResponseTopicPartition) bool { return p.Leader == p.Replicas[0] }
	_, err = s.asker.see(ctx, began, s.all, preferred)
	return full, err
}
