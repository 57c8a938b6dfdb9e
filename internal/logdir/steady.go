package logdir

import (
	"sync"
	"time"
)

// Steady is a wall clock for decisions that delete: a step of the system's clock reaches it only after
// stepHold, so that an administrator's slip, a broken time server or a resumed machine deletes nothing
// before somebody could notice. Between steps it follows the system's clock, slow corrections included.
//
//	system clock  12:00 … 12:05 | a step of a day | +1d 12:05 … +1d 12:20 | +1d 12:20 …
//	Steady        12:00 … 12:05 |                 |     12:05 …     12:20 | +1d 12:20 …
//
// It must be asked now and then (a few times an hour at least) to tell a step from slow drift. It is safe
// for concurrent use.
type Steady struct {
	now func() time.Time

	mu struct {
		sync.Mutex
		wall    time.Time // trusted wall clock time at the moment since
		since   time.Time // carries the monotonic clock
		step    time.Duration
		stepped time.Time // when a step was first seen; zero without one
	}
}

const (
	// stepHold is how long a step is not believed. Whoever asks every five minutes sees a step up to five
	// minutes late, and then has ten more.
	stepHold = 15 * time.Minute
	// stepMin is the smallest difference that is a step: more than slewing or a leap second makes, less
	// than any retention time that matters.
	stepMin = 30 * time.Second
)

// NewSteady makes a Steady that starts at now(), the system's wall clock.
func NewSteady(now func() time.Time) *Steady {
	s := &Steady{now: now}
	s.mu.wall, s.mu.since = now().Round(0), time.Now()
	return s
}

// Now is the trusted wall clock time.
func (s *Steady) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Round takes the monotonic clock out of the wall clock's reading, or Sub would not see a step.
	wall, monotonic := s.now().Round(0), time.Now()
	expected := s.mu.wall.Add(monotonic.Sub(s.mu.since))
	step := wall.Sub(expected)
	switch {
	case step.Abs() < stepMin:
		s.mu.stepped = time.Time{} // none, or somebody has set the clock right again
	// A second step, while the first is held, begins the wait anew.
	case s.mu.stepped.IsZero() || (step-s.mu.step).Abs() >= stepMin:
		s.mu.stepped, s.mu.step = monotonic, step
		return expected
	case monotonic.Sub(s.mu.stepped) < stepHold:
		return expected
	default:
		s.mu.stepped = time.Time{} // it has lasted: so it was meant
	}
	s.mu.wall, s.mu.since = wall, monotonic
	return wall
}
