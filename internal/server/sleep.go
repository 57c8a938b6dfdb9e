package server

import (
	"runtime/debug"
	"sync/atomic"
	"time"
)

// Phase is a second phase that holds no goroutine while it waits: whoever brings what it waits for runs it.
//
// It is for requests that wait by the thousand, or a thousand times a second. A goroutine that is woken for each of
// them costs a thread that is woken, on a core that was idle.
type Phase interface {
	// Run looks whether the request can be answered now, and returns the answer, or nil to go on waiting. It runs
	// once when the request has its place in the queue, and then when there is a reason; never twice at a time, and
	// not after the answer. Whoever has woken it stands still meanwhile, so that it must not block.
	Run(s *Sleep, why Why) *Response
}

// Why says for what reasons a [Phase] is run.
type Why uint32

const (
	// Begun: for the first time, by the connection's reader.
	Begun Why = 1 << iota
	// Woken: by [Sleep.Wake], since it was run last or while it ran.
	Woken
	// TimeUp: [Reply.Timeout] has passed.
	TimeUp
	// Overtaken: another frame has come in behind the request; for a [Reply.Yields] only.
	Overtaken
	// Ended: the connection has ended, or the server stops: an answer must come now, and may find no reader.
	Ended

	// running: somebody runs the phase, or has got its answer from it.
	running
)

// Sleep is a request in its second phase.
//
//	       Begin                Run: nil, and no news
//	made ─────────▶ running ──────────────────────────▶ asleep
//	                  │  ▲ └── news meanwhile: Run again   │
//	                  │  └──────────── Post ───────────────┘
//	                  └─ Run: an answer ─▶ done            who finds it running leaves the reason, and goes on
type Sleep struct {
	phase  Phase
	done   func(r *Response, bug *Bug)
	events atomic.Uint32 // of Why, those that Run has not been told yet
	again  *time.Timer   // of WakeAfter; nil before that. Whoever runs the phase owns it

	alarms *alarms
	// These belong to alarms, under its lock.
	due   time.Time
	place int
}

// Bug is what a phase has panicked with.
type Bug struct {
	Panic any
	Stack []byte // where
}

// NewSleep makes one that has not begun. done is called once, with the answer, or with what Run panicked with.
func NewSleep(phase Phase, done func(r *Response, bug *Bug)) *Sleep {
	return newSleep(new(alarms), phase, done)
}

func newSleep(a *alarms, phase Phase, done func(r *Response, bug *Bug)) *Sleep {
	s := &Sleep{phase: phase, done: done, alarms: a}
	s.events.Store(uint32(running | Begun))
	return s
}

// Begin runs the phase for the first time, and bounds its wait where timeout is above 0.
func (s *Sleep) Begin(timeout time.Duration) {
	if timeout > 0 {
		s.alarms.add(s, time.Now().Add(timeout))
	}
	s.run()
}

// Wake runs the phase, here and now unless somebody does already.
func (s *Sleep) Wake() { s.Post(Woken) }

// WakeAfter wakes after d. Only [Phase.Run] may call it; a later call replaces an earlier one.
func (s *Sleep) WakeAfter(d time.Duration) {
	if s.again == nil {
		s.again = time.AfterFunc(d, s.Wake)
	} else {
		s.again.Reset(d)
	}
}

// Post runs the phase for the given reason.
func (s *Sleep) Post(why Why) {
	if Why(s.events.Or(uint32(why|running)))&running == 0 {
		s.run()
	}
}

// run belongs to whoever has set running. After the answer that stays set: nothing runs any more.
func (s *Sleep) run() {
	for {
		why := Why(s.events.Swap(uint32(running))) &^ running
		response, bug := s.step(why)
		if response != nil || bug != nil {
			s.alarms.remove(s)
			if s.again != nil {
				s.again.Stop()
			}
			s.done(response, bug)
			return
		}
		if s.events.CompareAndSwap(uint32(running), 0) {
			return
		}
	}
}

// step runs the phase once. A panic in it is nothing of whoever has woken it.
func (s *Sleep) step(why Why) (response *Response, bug *Bug) {
	defer func() {
		if r := recover(); r != nil {
			response, bug = nil, &Bug{Panic: r, Stack: debug.Stack()}
		}
	}()
	return s.phase.Run(s, why), nil
}
