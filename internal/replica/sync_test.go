package replica

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/partition"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// syncedTopic has this broker lead a topic with flush.messages=1. Its log's syncs stand still until free is closed.
func (s *stage) syncedTopic(free chan struct{}, inSync ...protocol.BrokerID) (p *Partition, syncs *atomic.Int32) {
	s.t.Helper()
	s.set(metadata.TopicEntity("t"), map[string]string{"flush.messages": "1"})
	p = s.lead("t", 1, inSync...)
	syncs = new(atomic.Int32)
	s.disk.Inject(vfs.Fault{Op: vfs.OpSync, Path: "*.log", Hook: func(vfs.Op, string) {
		syncs.Add(1)
		<-free
	}})
	return p, syncs
}

// appending is an append in a goroutine of its own.
func (s *stage) appending(p *Partition) <-chan error {
	outcome, v := make(chan error, 1), s.validated(p, 1)
	go func() {
		_, _, err := p.Append(context.Background(), v, AcksLeader)
		outcome <- err
	}()
	return outcome
}

// Producers that wait for a sync do not keep others from appending, and share the next one. Nothing is committed before.
func TestProducersShareASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		free := make(chan struct{})
		p, syncs := s.syncedTopic(free)
		var all []<-chan error
		for range 21 {
			all = append(all, s.appending(p))
		}
		synctest.Wait()
		if b := p.Bounds(); b.End != 21 || b.HighWatermark != 0 || syncs.Load() != 1 {
			t.Errorf("%+v with %d syncs", b, syncs.Load())
		}
		for _, outcome := range all {
			if len(outcome) > 0 {
				t.Error("an append has returned before its sync")
			}
		}
		close(free)
		for _, outcome := range all {
			s.must(<-outcome)
		}
		if b := p.Bounds(); b.HighWatermark != 21 || syncs.Load() > 3 {
			t.Errorf("%+v with %d syncs", b, syncs.Load())
		}
	})
}

// Followers need not wait for the leader's disk, and what they have does not count before the leader has it, too.
func TestFollowersFetchDuringTheSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		free := make(chan struct{})
		p, _ := s.syncedTopic(free, s.self, 2)
		woken := false
		w := p.Watch(NewWatcher(func() { woken = true }), 0, true)
		defer w.Close()
		w.Arm()
		outcome := s.appending(p)
		synctest.Wait()
		if !woken {
			t.Error("the follower was not woken")
		}
		s.must(p.Followed(context.Background(), partition.Fetch{Replica: 2, Epoch: 22, Offset: 1}, 1))
		if b := p.Bounds(); b.End != 1 || b.HighWatermark != 0 {
			t.Errorf("%+v before the sync", b)
		}
		if r, _ := p.Replication([]protocol.BrokerID{2}); r.Lags[0] != 0 {
			t.Errorf("lag %d of a follower that is ahead of the sync", r.Lags[0])
		}
		close(free)
		s.must(<-outcome)
		if b := p.Bounds(); b.HighWatermark != 1 {
			t.Errorf("%+v after the sync", b)
		}
	})
}

// What happens to the leadership during a sync decides about the append.
func TestLeadershipChangesDuringTheSync(t *testing.T) {
	for name, c := range map[string]struct {
		orders []metadata.ReplicaChange
		want   protocol.Code
	}{
		"it leads on":             {nil, protocol.None},
		"in the next epoch":       {[]metadata.ReplicaChange{{Role: metadata.Lead, State: &metadata.Partition{LeaderEpoch: 2}}}, protocol.None},
		"after another leader":    {[]metadata.ReplicaChange{{Role: metadata.Lead, State: &metadata.Partition{LeaderEpoch: 3}}}, protocol.NotLeaderOrFollower},
		"it follows":              {[]metadata.ReplicaChange{{Role: metadata.Follow, State: &metadata.Partition{LeaderEpoch: 2}}}, protocol.NotLeaderOrFollower},
		"the partition goes away": {[]metadata.ReplicaChange{{Role: metadata.Delete, State: &metadata.Partition{}}}, protocol.UnknownTopicOrPartition},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				free := make(chan struct{})
				p, _ := s.syncedTopic(free)
				outcome := s.appending(p)
				synctest.Wait()
				told := make(chan struct{})
				go func() { // a deletion waits for the sync
					defer close(told)
					for _, change := range c.orders {
						s.tell(s.order("t", change.Role, change.State.LeaderEpoch))
					}
				}()
				synctest.Wait()
				close(free)
				<-told
				wantCode(t, "the append", <-outcome, c.want)
				if _, leads := p.Leader(); leads {
					s.write(p, 1, AcksAll)
					if b := p.Bounds(); b.End != 2 || b.HighWatermark != 2 {
						t.Errorf("%+v after another append", b)
					}
				}
			})
		})
	}
}

// A log that moves to another directory during the sync has its copy synced.
func TestLogMovesDuringTheSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		free := make(chan struct{})
		p, syncs := s.syncedTopic(free)
		copied := s.lead("copied", 1) // an equal log
		s.write(copied, 1, AcksAll)
		outcome := s.appending(p)
		synctest.Wait()
		s.must(p.SwapLog(func() (*log.Log, error) { return copied.Log(), nil }))
		close(free)
		s.must(<-outcome)
		if at := p.Log().RecoveryPoint(); p.Log() != copied.Log() || at != 1 || syncs.Load() != 2 {
			t.Errorf("recovery point %d of the log that counts, after %d syncs", at, syncs.Load())
		}
	})
}

// A failed sync is no acknowledgement, and nothing of it is committed.
func TestAppendIsNotSynced(t *testing.T) {
	s := newStage(t)
	s.broken = true
	free := make(chan struct{})
	close(free)
	p, _ := s.syncedTopic(free)
	defer s.disk.Inject(vfs.Fault{Op: vfs.OpSync, Path: "*.log", Times: 1, Err: syscall.EIO})()
	wantCode(t, "the append", <-s.appending(p), protocol.KafkaStorageError)
	if b := p.Bounds(); b.HighWatermark != 0 {
		t.Errorf("%+v", b)
	}
}

// A batch was appended, and then the disk was too full for the leader epoch that it begins, so that its producer was told of
// an error. When there is space the producer sends it again: it is there already, and counts from then on.
func TestRetryAfterASyncThatFailed(t *testing.T) {
	s := newStage(t)
	s.set(metadata.TopicEntity("t"), map[string]string{"flush.messages": "1"})
	p := s.lead("t", 1)
	heal := s.disk.Inject(vfs.Fault{Op: vfs.OpCreate, Path: "*leader-epoch-checkpoint*", Err: syscall.ENOSPC})
	send := func() (log.Appended, error) {
		b := record.NewBuilder(record.BuilderOptions{ProducerID: 7})
		b.Append(1_700_000_000_000, nil, []byte("value"))
		v, err := p.Validate(b.Build(), record.FromClient, 9, time.UnixMilli(1_700_000_000_000))
		s.must(err)
		appended, _, err := p.Append(context.Background(), v, AcksAll)
		return appended, err
	}
	if _, err := send(); protocol.CodeOf(err) != protocol.KafkaStorageError || p.Bounds().End != 1 {
		t.Fatalf("%v, and the log ends at %d", err, p.Bounds().End)
	}
	_, err := p.AppendIn(context.Background(), s.validated(p, 1), 1)
	wantCode(t, "a coordinator's append that is in the log", err, protocol.NotLeaderOrFollower)
	heal()
	appended, err := send()
	s.must(err)
	if b := p.Bounds(); !appended.Duplicate || b.HighWatermark < 1 {
		t.Errorf("%+v; %+v, want it to be committed", appended, b)
	}
}
