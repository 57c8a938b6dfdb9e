package sim

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/memory"
)

// What an operation of the store takes.
const (
	storeMin = 100 * time.Microsecond
	storeMax = time.Millisecond
)

// storage is the store as the machines see it. Every operation takes a time of its own, so that no two brokers ask
// at the same instant, and a session's operations are carried out in their order, as ZooKeeper does.
type storage struct {
	*memory.Store
	dice dice
	// trouble makes operations slow and forgets some; nil where there is none.
	trouble atomic.Pointer[trouble]

	mu struct {
		sync.Mutex
		callers map[int64]*caller // by session
	}
}

// caller is a life as the store knows it.
type caller struct {
	who   string
	count uint64    // operations so far
	last  time.Time // when the newest one is carried out
}

// trouble is a time in which the store answers badly.
type trouble struct {
	slowest time.Duration
	losses  float64 // the share of operations that fail, or of which the outcome is not told
}

func newStorage(d dice) *storage {
	s := &storage{Store: memory.New(memory.Options{}), dice: d}
	s.mu.callers = map[int64]*caller{}
	s.Inject(s.fault)
	return s
}

// fault decides about one operation.
func (s *storage) fault(o memory.Operation) memory.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mu.callers[o.Session]
	if c == nil { // a session is opened, or ended by the simulator
		return memory.Fault{}
	}
	c.count++
	f := memory.Fault{Delay: s.dice.between(storeMin, storeMax, c.who, c.count)}
	if t := s.trouble.Load(); t != nil {
		f.Delay = s.dice.between(storeMin, t.slowest, "slow for "+c.who, c.count)
		if o.Name != "close" && s.dice.chance(t.losses, "lost for "+c.who, c.count) {
			f.Outcome = memory.Outcome(1 + s.dice.throw("outcome for "+c.who, c.count)%3)
		}
	}
	due := time.Now().Add(f.Delay)
	if !due.After(c.last) {
		due = c.last.Add(time.Nanosecond)
	}
	c.last, f.Delay = due, time.Until(due)
	return f
}

// sessions is the store as one life sees it: it remembers the sessions.
type sessions struct {
	*storage
	life *life
}

// Open implements coordination.Store.
func (s sessions) Open(ctx context.Context, o coordination.SessionOptions) (coordination.Session, error) {
	session, err := s.Store.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	s.life.sessions.Lock()
	s.life.sessions.ids = append(s.life.sessions.ids, session.ID())
	who := s.life.name()
	s.life.sessions.Unlock()
	s.mu.Lock()
	s.mu.callers[session.ID()] = &caller{who: who}
	s.mu.Unlock()
	if s.life.dead.Load() {
		s.Suspend(session.ID())
	}
	return session, nil
}
