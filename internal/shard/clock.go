package shard

import (
	"sync"
	"time"
)

// Two clocks go wrong in different ways. Timeouts on the wall clock fired all at once, or never, when it
// stepped (KAFKA-4051); ages cannot be measured without it, since what is in the log was stamped by another
// process. So timeouts go by Mono, and ages by a wall clock that is believed only after a while:
//
//	step seen                 Earliest and Latest part: one follows the wall clock, the other goes on as before
//	for 15 minutes            an offset is as old as the younger of the two says
//	stepped back meanwhile    nothing has happened
//	stayed                    the wall clock is the time again
//
// Without that, an NTP server that is a week off for a minute would expire every group's offsets.

const (
	// stepTolerance is how far the wall clock may be off the elapsed time without its being a step. Slewing
	// by NTP, at most 0.05 %, stays far below.
	stepTolerance = 5 * time.Second
	// stepDoubt is how long a step of the wall clock is doubted.
	stepDoubt = 15 * time.Minute
)

// clock makes Now. It compares the wall clock with the elapsed time whenever it is asked.
type clock struct {
	wall  func() time.Time
	start time.Time // by the process's own clock: only its monotonic reading counts

	mu struct {
		sync.Mutex
		// atWall and atMono are a pair of readings from before the step that is in doubt, or the latest.
		atWall int64
		atMono time.Duration
		// doubted is the size of the step in doubt, in ms, first seen at since; 0 where there is none.
		doubted int64
		since   time.Duration
	}
}

func newClock(wall func() time.Time) *clock {
	c := &clock{wall: wall, start: time.Now()}
	c.mu.atWall = wall().UnixMilli()
	return c
}

// now reads both clocks.
func (c *clock) now() Now {
	mono, wall := time.Since(c.start), c.wall().UnixMilli()
	c.mu.Lock()
	defer c.mu.Unlock()
	expected := c.mu.atWall + (mono - c.mu.atMono).Milliseconds()
	step := wall - expected
	switch {
	case within(step, 0):
		c.mu.doubted = 0
	case !within(step, c.mu.doubted) || c.mu.doubted == 0:
		c.mu.doubted, c.mu.since = step, mono // a step, or a step on top of one
	case mono-c.mu.since >= stepDoubt:
		c.mu.doubted = 0 // it has stayed: that is the time now
	}
	if c.mu.doubted == 0 {
		c.mu.atWall, c.mu.atMono = wall, mono
		expected = wall
	}
	return Now{Mono: mono, Wall: wall, Earliest: min(wall, expected), Latest: max(wall, expected)}
}

func within(a, b int64) bool {
	return max(a-b, b-a) <= stepTolerance.Milliseconds()
}
