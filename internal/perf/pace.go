package perf

import (
	"context"
	"time"
)

// Pace says when each of a sequence of things is due, and waits for it. One goroutine uses it.
type Pace struct {
	began time.Time
	rate  float64
	late  time.Duration
	sleep sleeper
}

// NewPace begins now, with so many things a second. It ties the goroutine to its thread, until End: a thread of its
// own can be woken to a few microseconds, where the runtime's timers are late by up to a millisecond.
func NewPace(rate float64) *Pace {
	p := &Pace{rate: rate}
	p.sleep.begin()
	p.began = time.Now()
	return p
}

// End gives the thread back.
func (p *Pace) End() { p.sleep.end() }

// Await waits until thing i is due, and returns that time; a thing that is late is let through at once.
func (p *Pace) Await(ctx context.Context, i int64) time.Time {
	due := p.began.Add(time.Duration(float64(i) / p.rate * float64(time.Second)))
	for ctx.Err() == nil {
		wait := time.Until(due)
		if wait <= 0 {
			p.late = max(p.late, -wait)
			break
		}
		// In pieces, to notice the end of ctx.
		p.sleep.sleep(min(wait, 100*time.Millisecond))
	}
	return due
}

// Forget forgets how late things were, where the first of them do not count.
func (p *Pace) Forget() { p.late = 0 }

// Late is by how much a thing was let through after its time, at most: what the generator itself adds to latencies.
func (p *Pace) Late() time.Duration { return p.late }
