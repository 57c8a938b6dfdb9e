package replica

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

func TestWait(t *testing.T) {
	s := newStage(t)
	p := s.lead("t", 1)
	last := s.write(p, 1, AcksAll)
	s.must(p.Wait(context.Background(), 1, last+1))
	wantCode(t, "an earlier epoch", p.Wait(context.Background(), 0, 0), protocol.NotLeaderOrFollower)
	wantCode(t, "a later epoch", p.Wait(context.Background(), 2, 5), protocol.NotLeaderOrFollower)
	if n := len(p.commits.waiting); n != 0 {
		t.Errorf("%d waiters are left", n)
	}
}

func TestWaitEnds(t *testing.T) {
	for _, end := range []struct {
		name string
		by   func(s *stage)
		want protocol.Code
	}{
		{"committed", func(s *stage) { s.lead("t", 1, 1) }, protocol.None},
		{"follower", func(s *stage) { s.tell(s.order("t", metadata.Follow, 2)) }, protocol.NotLeaderOrFollower},
		{"deleted", func(s *stage) { s.tell(s.order("t", metadata.Delete, 2)) }, protocol.NotLeaderOrFollower},
		// Nobody else can have led in between: that would have been another epoch.
		{"next epoch", func(s *stage) { s.lead("t", 2, 1) }, protocol.None},
		// Leads again, but perhaps not without a break.
		{"a later epoch", func(s *stage) { s.lead("t", 3, 1) }, protocol.NotLeaderOrFollower},
		{"back again", func(s *stage) { s.tell(s.order("t", metadata.Follow, 2)); s.lead("t", 3, 1) }, protocol.NotLeaderOrFollower},
		// Nobody is heard any more who could let the watermark rise.
		{"the broker stops", func(s *stage) { close(s.draining) }, protocol.NotLeaderOrFollower},
		{"time", func(*stage) {}, protocol.RequestTimedOut},
	} {
		t.Run(end.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				p := s.lead("t", 1, 1, 2)
				last := s.write(p, 1, AcksAll)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				done := make(chan error, 1)
				go func() { done <- p.Wait(ctx, 1, last+1) }()
				synctest.Wait()
				end.by(s)
				wantCode(t, "the wait", <-done, end.want)
				if n := len(p.commits.waiting); n != 0 {
					t.Errorf("%d waiters are left", n)
				}
			})
		})
	}
}

// When the time is up in the same moment in which the record is committed, it is committed.
func TestCommitBeatsTheDeadline(t *testing.T) {
	s := newStage(t)
	p := s.lead("t", 1, 1, 2)
	last := s.write(p, 1, AcksAll)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.Wait(over, 1, last+1); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want canceled", err)
	}
	s.lead("t", 1, 1)
	for range 100 {
		s.must(p.Wait(over, 1, last+1))
	}
}

// TestWaitersAndLeadershipChanges is for the race detector: a wait either ends with success while the replica
// has led without a break, or with an error, and never hangs.
func TestWaitersAndLeadershipChanges(t *testing.T) {
	s := newStage(t)
	p := s.lead("t", 1)
	const writers, each = 4, 50
	done := make(chan int, writers)
	for range writers {
		batches := s.validated(p, 1)
		go func() {
			committed := 0
			for range each {
				v := batches
				v.Batch = append(v.Batch[:0:0], batches.Batch...)
				appended, epoch, err := p.Append(context.Background(), v, AcksAll)
				if err != nil {
					continue
				}
				if p.Wait(context.Background(), epoch, appended.Last+1) == nil {
					committed++
				}
			}
			done <- committed
		}()
	}
	for epoch := protocol.LeaderEpoch(2); epoch < 40; epoch += 2 {
		s.tell(s.order("t", metadata.Follow, epoch))
		s.lead("t", epoch+1)
	}
	committed := 0
	for range writers {
		committed += <-done
	}
	if end := p.Bounds().End; protocol.Offset(committed) > end {
		t.Errorf("%d waits ended well, the log ends at %d", committed, end)
	}
}
