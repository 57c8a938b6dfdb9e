package shard

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// lived is how long an open shard must have lived for its earlier failures to be forgotten.
const lived = time.Minute

// phase is where a shard is in its life; it only goes up.
type phase int8

const (
	loading phase = iota
	open
	dropped
)

// shard is one partition in one load: the leader's epoch and the machine stay together. It is replaced, not
// changed, when either changes.
//
// The lock is a channel and no mutex since taking it can be given up with the caller's context: an append may
// take as long as a disk does. Fields above it never change, but for failures, which is guarded too.
type shard[M Machine] struct {
	runtime   *Runtime[M]
	partition int32
	epoch     protocol.LeaderEpoch
	log       Partition
	// failures counts the loads before this one that ended badly, in a row.
	failures int
	// context ends when the shard is dropped.
	context context.Context
	cancel  context.CancelFunc
	// ready is closed when the shard opens.
	ready chan struct{}

	// lock is held by whoever is in it: the fields below are his. It may be held over the partition's
	// file I/O, and nothing slower.
	lock    chan struct{}
	phase   phase
	cause   protocol.Code // of being dropped
	machine M
	opened  time.Duration
	// end is the log end after the shard's last append: answers wait for the watermark to reach it.
	end protocol.Offset
	// waiting holds those whom the machine has not answered yet.
	waiting map[Ticket]chan delivered
	last    Ticket
	// timer fires at armed; it is nil until there is a deadline.
	timer *time.Timer
	armed time.Duration
}

// delivered is an answer on its way to who waits for it.
type delivered struct {
	value any
	end   protocol.Offset
}

func newShard[M Machine](r *Runtime[M], partition int32, epoch protocol.LeaderEpoch, log Partition) *shard[M] {
	_, end := log.Bounds()
	s := &shard[M]{
		runtime: r, partition: partition, epoch: epoch, log: log, end: end, armed: never,
		ready: make(chan struct{}), lock: make(chan struct{}, 1),
	}
	s.context, s.cancel = context.WithCancel(r.context)
	return s
}

// enter takes the lock of an open shard. It fails with COORDINATOR_LOAD_IN_PROGRESS while it loads, with
// NOT_COORDINATOR or the like once it is dropped. Who has entered must leave.
func (s *shard[M]) enter(done <-chan struct{}) error {
	select {
	case s.lock <- struct{}{}:
	case <-done:
		return protocol.RequestTimedOut
	}
	switch s.phase {
	case open:
		return nil
	case loading:
		<-s.lock
		return protocol.CoordinatorLoadInProgress
	}
	cause := s.cause
	<-s.lock
	return cause
}

// within runs step in the shard and then everything that follows from it: answers are handed out, the timer
// is set. A panic in it poisons the machine, which is loaded again, and is an error for the caller.
func (s *shard[M]) within(done <-chan struct{}, step func(now Now) error) (err error) {
	if err := s.enter(done); err != nil {
		return err
	}
	failed := true
	defer func() {
		if failed {
			err = s.poisoned(recover())
		}
		<-s.lock
	}()
	err = step(s.runtime.clock.now())
	if s.phase == open {
		s.deliver()
		s.arm()
	}
	failed = false
	return err
}

// poisoned drops the machine after a panic, which is a bug of ours.
func (s *shard[M]) poisoned(cause any) error {
	s.runtime.logger.Error("bug in a coordinator: it is loaded again", "partition", s.partition, "epoch", s.epoch,
		"cause", cause, "stack", string(debug.Stack()))
	s.fail()
	if v, ok := cause.(invariant.Violation); ok {
		return fmt.Errorf("coordinator of %s-%d: %w", s.runtime.options.Topic, s.partition, v)
	}
	return fmt.Errorf("coordinator of %s-%d: %v", s.runtime.options.Topic, s.partition, cause)
}

// abandon drops the shard, whose lock is held, for an error of its partition: where that leads no more in
// this epoch it never will again, otherwise the shard is loaded anew.
func (s *shard[M]) abandon(err error) {
	switch protocol.CodeOf(err) {
	case protocol.NotLeaderOrFollower, protocol.FencedLeaderEpoch:
		if s.phase != dropped {
			s.finish(protocol.NotCoordinator)
		}
	default:
		s.fail()
	}
}

// fail drops the shard, whose lock is held, and has it loaded again.
func (s *shard[M]) fail() {
	if s.phase == dropped {
		return
	}
	if s.phase == open && s.runtime.clock.now().Mono-s.opened > lived {
		s.failures = 0
	}
	s.runtime.reload(s)
	s.finish(protocol.NotCoordinator)
}

// drop ends the shard from outside.
func (s *shard[M]) drop(cause protocol.Code) {
	s.lock <- struct{}{}
	if s.phase != dropped {
		s.finish(cause)
	}
	<-s.lock
}

// finish is the last thing that happens to a shard. The machine is let go, since waiters may keep the shard.
//
// Who still waits is told by the context: Wait sees it ended and says NOT_COORDINATOR.
func (s *shard[M]) finish(cause protocol.Code) {
	s.phase, s.cause = dropped, cause
	if s.timer != nil {
		s.timer.Stop()
	}
	var none M
	s.machine, s.waiting = none, nil
	s.cancel()
}

// open lets callers in.
func (s *shard[M]) open(machine M) {
	s.lock <- struct{}{}
	defer func() { <-s.lock }()
	if s.phase != loading {
		return
	}
	now := s.runtime.clock.now()
	s.phase, s.machine, s.opened = open, machine, now.Mono
	s.machine.Loaded(now)
	s.deliver()
	s.arm()
	close(s.ready)
}

// deliver hands out the answers that the machine has made.
//
// An answer takes the shard's end of this moment with it, not the end of the decision it came of: it may tell
// of things that other requests have written meanwhile, which must be committed too before anybody hears of
// them.
func (s *shard[M]) deliver() {
	for _, a := range s.machine.Answers() {
		if to, ok := s.waiting[a.To]; ok {
			delete(s.waiting, a.To)
			to <- delivered{a.Value, s.end}
		}
	}
}

// ended reports whether the shard was dropped without another's taking its place.
func (s *shard[M]) ended() bool {
	current, err := s.runtime.shard(s.partition)
	return err != nil || current == s
}
