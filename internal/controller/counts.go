package controller

import (
	"sync/atomic"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// elections counts over all terms of one controller.
type elections struct{ all, unclean atomic.Int64 }

// add counts the leaders among states that have been written: those that were not it before. The first leader of a new
// partition is none that was elected.
func (e *elections) add(written []decided) {
	for _, d := range written {
		if d.to.Leader == P.NoBroker || d.from == nil || d.from.Epoch == P.AnyEpoch || d.from.Leader == d.to.Leader {
			continue
		}
		e.all.Add(1)
		if d.to.Recovering {
			e.unclean.Add(1)
		}
	}
}

// Elections counts the leaders that this controller has elected since it was made, in all its terms, and those of them
// that may lack acknowledged records.
func (c *Controller) Elections() (all, unclean int64) {
	return c.elections.all.Load(), c.elections.unclean.Load()
}

// Moving counts the partitions that are being reassigned; 0 where this controller is not active.
func (c *Controller) Moving() int {
	image, n := c.Image(), 0
	if image == nil {
		return 0
	}
	for _, name := range image.Topics() {
		for _, p := range image.Topic(name).Partitions {
			if moving(p) {
				n++
			}
		}
	}
	return n
}
