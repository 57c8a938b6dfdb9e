package controller

import (
	"time"

	"github.com/barnabas-mq/barnabas/internal/balance"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

const (
	// fillAfter is how long after a broker has joined it gets its share: brokers that start together are seen together.
	fillAfter = 10 * time.Second
	// fillEvery is how often a controller looks whether there is anything to fill, fillPoll whether a batch has ended.
	fillEvery = time.Minute
	fillPoll  = time.Second
	// fillAtOnce is how many partitions are on their way at a time.
	fillAtOnce = 10
)

// filling is the controller's own moving of partitions to brokers that hold too few (auto.balance.enable).
//
//	wake ──▶ nothing is being reassigned ──▶ plan, beside the term ──▶ a batch ──▶ wake … ──▶ nothing left: throttles go
//
// There is no state beyond a term: a new controller carries on the reassignments that it finds, and plans what is left
// when they have ended. What stays in the store between two batches is the throttle (see fill_throttle.go).
type filling struct {
	// wake fires at due.
	wake <-chan time.Time
	due  time.Time
	// planned receives the plan that is being made; nil where none is.
	planned chan []balance.Move
	// queue is what is left of the plan, and moved what the last batch was.
	queue []balance.Move
	moved []P.TopicPartition
	// slowed is false where it is known that there are no throttles of ours.
	slowed bool
}

// armFill sets when to look next.
func (t *term) armFill(after time.Duration) {
	t.filling.wake, t.filling.due = time.After(after), time.Now().Add(after)
}

// fill looks whether brokers hold too few replicas, and moves the next few. It waits for every reassignment, also one
// that somebody else has begun, and for every broker that has replicas: who restarts is not replaced.
func (t *term) fill() error {
	f := &t.filling
	paused := time.Since(f.due) > late
	t.armFill(fillEvery)
	switch {
	case paused, t.cluster.settling, t.looking():
		t.armFill(fillAfter)
		return nil
	case len(t.moving)+len(t.ending) > 0:
		t.armFill(fillPoll)
		return nil
	}
	if err := t.leadMoved(); err != nil {
		return err
	}
	if !t.controller.options.Config().Bool("auto.balance.enable") || t.missing() {
		f.queue = nil
		return t.endFill()
	}
	batch := t.nextBatch()
	if len(batch) > 0 {
		t.armFill(fillPoll)
		return t.moveBatch(batch)
	}
	if f.planned == nil {
		t.planFill()
	}
	return nil
}

// planFill makes a plan beside the term, which for thousands of partitions takes a while.
func (t *term) planFill() {
	image, closed, planned := t.cluster.image, t.controller.options.Closed, make(chan []balance.Move, 1)
	t.filling.planned = planned
	go func() { planned <- shares(image, closed) }()
}

// filled takes a plan over.
func (t *term) filled(plan []balance.Move) error {
	t.filling.planned, t.filling.queue = nil, plan
	if len(plan) == 0 {
		return t.endFill()
	}
	t.controller.options.Logger.Info("controller: brokers get their share", "partitions", len(plan))
	t.armFill(0)
	return nil
}

// nextBatch takes the next moves out of the queue, without those that the plan is not good for any more.
func (t *term) nextBatch() []balance.Move {
	var batch []balance.Move
	f := &t.filling
	for len(f.queue) > 0 && len(batch) < fillAtOnce {
		m := f.queue[0]
		f.queue = f.queue[1:]
		if t.deletions[m.Topic] == nil && !t.look.state[m.TopicPartition] && whole(&t.cluster, t.cluster.image.Partition(m.TopicPartition), m.From) {
			batch = append(batch, m)
		}
	}
	return batch
}

// moveBatch slows replication down and begins the moves.
func (t *term) moveBatch(batch []balance.Move) error {
	if rate := t.controller.options.Config().Long("auto.balance.throttled.rate"); rate > 0 {
		if err := t.slowDown(batch, rate); err != nil {
			t.filling.queue = nil // planned anew at the next look
			return err
		}
	}
	moves := make([]Reassignment, 0, len(batch))
	for _, m := range batch {
		moves = append(moves, Reassignment{m.TopicPartition, m.To})
	}
	results, err := t.reassign(moves, true)
	for _, r := range results {
		if r.Err != nil {
			t.controller.options.Logger.Warn("controller: a partition stays where it is", "partition", r.String(), "error", r.Err)
		} else {
			t.filling.moved = append(t.filling.moved, r.TopicPartition)
		}
	}
	return err
}

// leadMoved gives leadership to the first replicas of what has been moved.
func (t *term) leadMoved() error {
	moved := t.filling.moved
	t.filling.moved = nil
	if len(moved) == 0 {
		return nil
	}
	_, err := t.electLeaders(PreferredElection, moved)
	return err
}
