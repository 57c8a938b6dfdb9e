package shard

import (
	"math"
	"time"
)

// never is the time of a timer that is not armed.
const never = time.Duration(math.MaxInt64)

// arm sets the shard's timer for the machine's nearest deadline. A timer that would fire before that is left
// as it is: a timeout that is always put off, like a session's, then costs nothing.
//
// The deadline may have moved away since: expire then finds nothing due, and arms the timer anew.
func (s *shard[M]) arm() {
	at, ok := s.machine.Deadline()
	if !ok || at >= s.armed {
		return
	}
	wait := max(at-s.runtime.clock.now().Mono, 0)
	s.armed = at
	if s.timer == nil {
		s.timer = time.AfterFunc(wait, s.expire)
		return
	}
	s.timer.Reset(wait)
}

// expire does what is due.
func (s *shard[M]) expire() {
	// An error means that the shard is dropped, or was by this: either is told elsewhere.
	_ = s.within(nil, func(now Now) error {
		s.armed = never
		for s.phase == open {
			decision, due := s.machine.Expire(now)
			if !due {
				break
			}
			if err := s.carryOut(now, decision); err != nil {
				s.runtime.logger.Warn("coordinator could not write what timed out", "partition", s.partition, "error", err)
			}
			s.deliver()
		}
		return nil
	})
}
