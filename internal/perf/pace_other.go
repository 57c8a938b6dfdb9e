//go:build !linux

package perf

import "time"

// sleeper sleeps as the runtime's timers do.
type sleeper struct{}

func (s *sleeper) begin() {}

func (s *sleeper) end() {}

func (s *sleeper) sleep(d time.Duration) { <-time.After(d) }
