package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// verifyLimit bounds the comparison after a start.
const verifyLimit = 3 * time.Minute

// group is the consumer group that commits.
const group = "killers"

// retentionFrom is the first value of the property that is raised.
const retentionFrom = 1 << 40

// admin changes metadata and commits offsets, and remembers what was acknowledged.
//
// Each promise has two bounds: what was acknowledged must hold, and what was asked for may hold although its
// answer was lost. After a kill anything in between is right, anything outside is a bug.
type admin struct {
	client *kadm.Client

	mu    sync.Mutex
	turn  int64
	acked promises
	// asked is what was asked for, acknowledged or not.
	asked struct {
		committed, retention int64
		deleted              map[string]bool
	}
	trimmedTo map[int32]int64 // partitions of trimmed: records below may be gone by DeleteRecords
	verified  int
}

// promises is what was acknowledged.
type promises struct {
	topics               map[string]kadm.TopicID
	deleted              map[string]bool
	committed, retention int64
}

func newAdmin(client *kgo.Client) *admin {
	a := &admin{client: kadm.NewClient(client), trimmedTo: map[int32]int64{}}
	a.client.SetTimeoutMillis(5000)
	a.acked = promises{topics: map[string]kadm.TopicID{}, deleted: map[string]bool{}, committed: -1}
	a.asked.deleted = map[string]bool{}
	return a
}

// snapshot is a copy of what was acknowledged so far.
func (a *admin) snapshot() promises {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.acked
	p.topics, p.deleted = maps.Clone(p.topics), maps.Clone(p.deleted)
	return p
}

// insist repeats what the kills interrupt, until it is done. done are errors that say that it is done already:
// the answer to an earlier try may have been lost.
func insist(ctx context.Context, do func(context.Context) error, done ...error) error {
	for {
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := do(limited)
		cancel()
		if err == nil {
			return nil
		}
		for _, d := range done {
			if errors.Is(err, d) {
				return nil
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if coded, ok := errors.AsType[*kerr.Error](err); ok && !coded.Retriable {
			return err
		}
	}
}

// kept is how many topics are kept for a while: a start has to open them all.
const kept = 10

// topics makes a topic, raises a property of another, and deletes a topic: every other one at once, the rest
// later.
func (a *admin) topics(ctx context.Context) error {
	a.mu.Lock()
	a.turn++
	turn := a.turn
	a.asked.retention = retentionFrom + turn
	a.mu.Unlock()
	if err := a.create(ctx, turn); err != nil {
		return err
	}
	if err := a.alter(ctx, retentionFrom+turn); err != nil {
		return fmt.Errorf("altering %s: %w", plain, err)
	}
	if turn%2 == 0 {
		return a.remove(ctx, turn)
	}
	return a.remove(ctx, turn-kept)
}

// made is the name of the topic of a turn.
func made(turn int64) string { return fmt.Sprint("made-", turn) }

func (a *admin) create(ctx context.Context, turn int64) error {
	name := made(turn)
	err := insist(ctx, func(ctx context.Context) error {
		_, err := a.client.CreateTopic(ctx, 2, 1, nil, name)
		return err
	}, kerr.TopicAlreadyExists)
	if err != nil {
		return fmt.Errorf("creating %s: %w", name, err)
	}
	var id kadm.TopicID
	err = insist(ctx, func(ctx context.Context) error {
		listed, err := a.client.ListTopics(ctx, name)
		if err == nil {
			id, err = listed[name].ID, listed[name].Err
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s was created, and then: %w", name, err)
	}
	a.mu.Lock()
	a.acked.topics[name] = id
	a.mu.Unlock()
	return nil
}

// remove deletes the topic of a turn; there is none of turns below 1.
func (a *admin) remove(ctx context.Context, turn int64) error {
	if turn < 1 {
		return nil
	}
	name := made(turn)
	a.mu.Lock()
	a.asked.deleted[name] = true
	a.mu.Unlock()
	err := insist(ctx, func(ctx context.Context) error {
		_, err := a.client.DeleteTopic(ctx, name)
		return err
	}, kerr.UnknownTopicOrPartition)
	if err != nil {
		return fmt.Errorf("deleting %s: %w", name, err)
	}
	a.mu.Lock()
	a.acked.deleted[name] = true
	a.mu.Unlock()
	return nil
}

func (a *admin) alter(ctx context.Context, retention int64) error {
	value := strconv.FormatInt(retention, 10)
	err := insist(ctx, func(ctx context.Context) error {
		altered, err := a.client.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.ms", Value: &value}}, plain)
		if err == nil {
			err = altered[0].Err
		}
		return err
	})
	if err == nil {
		a.mu.Lock()
		a.acked.retention = retention
		a.mu.Unlock()
	}
	return err
}

// commit commits an offset that rises.
func (a *admin) commit(ctx context.Context) error {
	a.mu.Lock()
	a.asked.committed++
	next := a.asked.committed
	a.mu.Unlock()
	offsets := kadm.Offsets{}
	offsets.AddOffset(plain, 0, next, -1)
	err := insist(ctx, func(ctx context.Context) error { return a.client.CommitAllOffsets(ctx, group, offsets) })
	if err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	a.mu.Lock()
	a.acked.committed = next
	a.mu.Unlock()
	return nil
}

// trim deletes the older half of the records of trimmed.
func (a *admin) trim(ctx context.Context) error {
	err := insist(ctx, func(ctx context.Context) error {
		starts, err := offsetsOf(a.client.ListStartOffsets(ctx, trimmed))
		if err != nil {
			return err
		}
		ends, err := offsetsOf(a.client.ListEndOffsets(ctx, trimmed))
		if err != nil {
			return err
		}
		offsets := kadm.Offsets{}
		a.mu.Lock()
		for partition, end := range ends {
			middle := (starts[partition] + end) / 2
			a.trimmedTo[partition] = max(a.trimmedTo[partition], middle)
			offsets.AddOffset(trimmed, partition, middle, -1)
		}
		a.mu.Unlock()
		deleted, err := a.client.DeleteRecords(ctx, offsets)
		if err == nil {
			err = deleted.Error()
		}
		return err
	}, kerr.OffsetOutOfRange)
	if err != nil {
		return fmt.Errorf("deleting records: %w", err)
	}
	select {
	case <-time.After(200 * time.Millisecond):
	case <-ctx.Done():
	}
	return nil
}

// verify compares what the broker says with what was acknowledged before it was asked.
func (a *admin) verify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	before := a.snapshot()
	if err := a.verifyTopics(ctx, before); err != nil {
		return err
	}
	var committed int64
	err := insist(ctx, func(ctx context.Context) error {
		offsets, err := a.client.FetchOffsets(ctx, group)
		if err == nil {
			err = offsets.Error()
		}
		committed = -1
		if o, ok := offsets.Lookup(plain, 0); ok {
			committed = o.At
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("reading committed offsets: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if committed < before.committed || committed > a.asked.committed {
		return fmt.Errorf("offset %d is committed, acknowledged was %d, asked for at most %d", committed, before.committed, a.asked.committed)
	}
	a.verified++
	return nil
}

func (a *admin) verifyTopics(ctx context.Context, before promises) error {
	var listed kadm.TopicDetails
	var configs kadm.ResourceConfigs
	err := insist(ctx, func(ctx context.Context) (err error) {
		if listed, err = a.client.ListTopics(ctx); err == nil {
			configs, err = a.client.DescribeTopicConfigs(ctx, plain)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("listing topics: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, id := range before.topics {
		there := listed.Has(name)
		switch {
		case before.deleted[name] && there:
			return fmt.Errorf("topic %s is there, its deletion was acknowledged", name)
		case !there && !a.asked.deleted[name]:
			return fmt.Errorf("topic %s is not there, its creation was acknowledged", name)
		case there && (listed[name].ID != id || len(listed[name].Partitions) != 2):
			return fmt.Errorf("topic %s has id %v and %d partitions, acknowledged were %v and 2", name, listed[name].ID, len(listed[name].Partitions), id)
		}
	}
	for _, entry := range configs[0].Configs {
		if entry.Key != "retention.ms" || before.retention == 0 {
			continue
		}
		got, err := strconv.ParseInt(entry.MaybeValue(), 10, 64)
		if err != nil || got < before.retention || got > a.asked.retention {
			return fmt.Errorf("retention.ms is %s, acknowledged was %d, asked for at most %d", entry.MaybeValue(), before.retention, a.asked.retention)
		}
	}
	return nil
}

// report says how much was done.
func (a *admin) report() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Sprintf("%d topics made, %d deleted, %d commits, compared %d times",
		len(a.acked.topics), len(a.acked.deleted), a.acked.committed+1, a.verified)
}
