package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The topics of the load: orders has a replica on every broker and has to be served all the time; moved has two
// replicas, which an admin moves around.
const (
	orders = "orders"
	moved  = "moved"
	// movedPartitions is how many partitions moved has.
	movedPartitions = 4
)

// How long clients may wait to be served, or sets to be whole.
const patience = 3 * time.Minute

// load is all clients of a run.
//
//	producers, idempotent   kgo's, many records in flight, retried by the client
//	producers, plain        one request at a time, never sent again: each record has one outcome
//	consumers               a group, whose members come and go and commit what they have read
//	admin                   creates, alters, grows, deletes topics; moves partitions
//	observers               the high watermarks; ZooKeeper's tree
type load struct {
	cluster    *cluster
	addresses  []string
	partitions int
	history    *history
	client     *kgo.Client
	admin      *kadm.Client
	topics     *topicModel
	// log is what all clients say.
	log *os.File

	// Producers end before consumers, which read what is left, and before the rest.
	producing, consuming, others stage
}

// stage is goroutines that are told together to end.
type stage struct {
	done    chan struct{}
	running sync.WaitGroup
}

// end tells them, and waits.
func (s *stage) end() {
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	s.running.Wait()
}

// newLoad creates the topics, and begins when all replicas are in sync.
func newLoad(ctx context.Context, c *cluster) (*load, error) {
	l := &load{cluster: c, addresses: c.addresses(), partitions: c.settings.partitions, history: newHistory(), topics: newTopicModel()}
	for _, s := range []*stage{&l.producing, &l.consuming, &l.others} {
		s.done = make(chan struct{})
	}
	var err error
	if l.log, err = os.Create(filepath.Join(c.dir, "clients.log")); err != nil {
		return nil, err
	}
	if l.client, err = l.newClient("admin"); err != nil {
		return nil, err
	}
	l.admin = kadm.NewClient(l.client)
	minimum := fmt.Sprint(c.settings.minISR)
	if err := l.create(ctx, orders, l.partitions, 3, minimum); err != nil {
		return nil, err
	}
	if err := l.create(ctx, moved, movedPartitions, 2, fmt.Sprint(c.settings.movedMinISR)); err != nil {
		return nil, err
	}
	if err := l.whole(ctx); err != nil {
		return nil, err
	}
	return l, l.start(ctx, c)
}

func (l *load) create(ctx context.Context, topic string, partitions, replicas int, minimum string) error {
	_, err := l.admin.CreateTopic(ctx, int32(partitions), int16(replicas), map[string]*string{
		"min.insync.replicas": &minimum, "segment.bytes": new("1048576"),
	}, topic)
	return err
}

// start starts all clients.
func (l *load) start(ctx context.Context, c *cluster) error {
	number := uint32(0)
	for _, topic := range []string{orders, moved} {
		for range 2 {
			if err := l.startIdempotent(ctx, number, topic); err != nil {
				return err
			}
			if err := l.startPlain(ctx, number+1, topic); err != nil {
				return err
			}
			number += 2
		}
	}
	for member := range 3 {
		l.consuming.running.Go(func() { l.consume(ctx, member) })
	}
	if !c.settings.unchanged {
		client, err := l.newClient("administrator")
		if err != nil {
			return err
		}
		random := c.fork()
		l.others.running.Go(func() {
			defer client.Close()
			l.administrate(ctx, kadm.NewClient(client), random)
		})
	}
	l.others.running.Go(func() { l.observeWatermarks(ctx) })
	l.others.running.Go(func() { l.observeTree(ctx, c) })
	return nil
}

// newClient makes a client that is quick to come back.
func (l *load) newClient(name string, options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(l.addresses...), kgo.MetadataMinAge(20 * time.Millisecond), kgo.DialTimeout(2 * time.Second),
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }), kgo.RequestTimeoutOverhead(3 * time.Second),
		kgo.RetryTimeout(patience), kgo.ClientID(name),
		kgo.WithLogger(kgo.BasicLogger(l.log, kgo.LogLevelInfo, func() string { return time.Now().Format("15:04:05.000 ") + name + " " })),
	}, options...)...)
}

// note writes into the log of the clients.
func (l *load) note(format string, args ...any) {
	fmt.Fprintf(l.log, time.Now().Format("15:04:05.000 ")+format+"\n", args...)
}

// until tries again and again, for as long as clients may have to wait.
func (l *load) until(ctx context.Context, what string, try func(context.Context) error) error {
	return l.within(ctx, patience, what, try)
}

// within tries again and again for so long.
func (l *load) within(ctx context.Context, long time.Duration, what string, try func(context.Context) error) error {
	limit := time.After(long)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := try(limited)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case broken := <-l.history.broken:
			return broken
		case <-limit:
			return fmt.Errorf("waiting for %s: %w", what, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// served returns when every partition of orders has acknowledged something that was produced from now on, and
// how long that took.
func (l *load) served(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	err := l.until(ctx, "acknowledgements in every partition", func(context.Context) error {
		return l.history.servedSince(orders, l.partitions, began)
	})
	return time.Since(began), err
}

// heads are the leader of partition 0 of orders and the controller.
func (l *load) heads(ctx context.Context) (leader, controller int, err error) {
	err = l.until(ctx, "a leader and a controller", func(ctx context.Context) error {
		metadata, err := l.admin.Metadata(ctx, orders)
		if err != nil {
			return err
		}
		if len(metadata.Topics[orders].Partitions) == 0 {
			return fmt.Errorf("%s is not there", orders)
		}
		leader, controller = int(metadata.Topics[orders].Partitions[0].Leader), int(metadata.Controller)
		if leader < 0 || controller < 0 {
			return fmt.Errorf("leader %d, controller %d", leader, controller)
		}
		return nil
	})
	return leader, controller, err
}

// stop ends the load, waits until all sets are whole, and until the group has read everything.
func (l *load) stop(ctx context.Context) error {
	l.producing.end()
	l.others.end()
	if err := l.settled(ctx); err != nil {
		return err
	}
	if err := l.whole(ctx); err != nil {
		return err
	}
	if err := l.until(ctx, "the group to commit the ends of all partitions", l.caughtUp); err != nil {
		return err
	}
	l.consuming.end()
	select {
	case err := <-l.history.broken:
		return err
	default:
		return nil
	}
}

// caughtUp compares what the group has committed with the ends of the partitions, and with what it was told.
func (l *load) caughtUp(ctx context.Context) error {
	ends, err := l.admin.ListEndOffsets(ctx, orders, moved)
	if err = errors.Join(err, ends.Error()); err != nil {
		return err
	}
	told := map[topicPartition]int64{} // before the question, so that the answer cannot be less
	for topic, partitions := range ends {
		for partition := range partitions {
			tp := topicPartition{topic, partition}
			told[tp] = l.history.committed(tp)
		}
	}
	committed, err := l.admin.FetchOffsets(ctx, group)
	if err = errors.Join(err, committed.Error()); err != nil {
		return err
	}
	for topic, partitions := range ends {
		for partition, end := range partitions {
			tp := topicPartition{topic, partition}
			has, _ := committed.Lookup(topic, partition)
			if told[tp] > has.At {
				l.history.contradict("%v: the group is at %d, after a commit of %d was acknowledged", tp, has.At, told[tp])
			}
			if has.At != end.Offset {
				return fmt.Errorf("%v: the group is at %d of %d", tp, has.At, end.Offset)
			}
		}
	}
	return nil
}
