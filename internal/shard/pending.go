package shard

import (
	"context"
	"errors"

	"github.com/barnabas-mq/barnabas/internal/planted"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Pending is a request whose first phase is over: what it appends is in the log, in the order of the
// requests, and its answer waits. Wait must be called once.
//
//	Submit, Ask     on the connection's goroutine, in the order of its requests; holds the shard's lock
//	Wait            on any goroutine; holds nothing, and may take as long as a rebalance
//
// Splitting the two lets a client pipeline commits: they are appended in order, and their waits overlap.
type Pending struct {
	err   error
	log   Partition
	epoch protocol.LeaderEpoch
	end   protocol.Offset
	limit func() Config

	// For answers that come late:
	answer <-chan delivered
	gone   <-chan struct{}
	cancel func()
}

// failed is a Pending that has come to nothing.
func failed(err error) *Pending { return &Pending{err: err} }

// Wait returns once everything that the request saw and wrote is committed: the late answer of an Ask, nil
// of a Submit. Its error is the reason why the request was refused; NOT_COORDINATOR or
// NOT_LEADER_OR_FOLLOWER where leadership was lost; an exceeded deadline, or that of ctx, where the outcome
// is unknown.
func (p *Pending) Wait(ctx context.Context) (any, error) {
	if p.err != nil {
		return nil, p.err
	}
	value := any(nil)
	if p.answer != nil {
		late, err := p.late(ctx)
		if err != nil {
			return nil, err
		}
		value, p.end = late.value, late.end
	}
	return value, p.committed(ctx)
}

// late waits for the machine's answer.
func (p *Pending) late(ctx context.Context) (delivered, error) {
	select {
	case a := <-p.answer:
		return a, nil
	default:
	}
	select {
	case a := <-p.answer:
		return a, nil
	case <-p.gone:
		return delivered{}, protocol.NotCoordinator
	case <-ctx.Done():
		if p.cancel != nil {
			p.cancel()
		}
		return delivered{}, ctx.Err()
	}
}

// committed waits for the high watermark.
//
// The timeout is offsets.commit.timeout.ms. When it is over the records are in the log all the same, and may
// become committed later: the caller must call the outcome unknown, never failed.
func (p *Pending) committed(ctx context.Context) error {
	if p.log.HighWatermark() < p.end { // otherwise the next call returns at once, and needs no timer
		limited, cancel := context.WithTimeout(ctx, p.limit().CommitTimeout)
		defer cancel()
		ctx = limited
	}
	return p.log.WaitCommitted(ctx, p.epoch, p.end)
}

// Submit decides, appends and applies, and returns with the answer still to be waited for. Requests that are
// submitted one after the other are in the log in this order. An error of decide appends nothing, and comes
// back from Wait. decide must not keep the machine.
func (r *Runtime[M]) Submit(ctx context.Context, partition int32, decide func(m M, now Now) (Decision, error)) *Pending {
	s, err := r.shard(partition)
	if err != nil {
		return failed(err)
	}
	p := s.pending()
	err = s.within(ctx.Done(), func(now Now) error {
		decision, err := decide(s.machine, now)
		if err == nil {
			err = s.carryOut(now, decision)
		}
		p.end = s.end
		return err
	})
	if err != nil {
		return failed(err)
	}
	return p
}

// Ask is Submit for a request that the machine answers when it likes: with an [Answer] to the ticket, in
// decide itself or later. Where the caller goes away before that, gone is called in the shard; it may be nil.
func (r *Runtime[M]) Ask(ctx context.Context, partition int32, decide, gone func(m M, now Now, t Ticket) Decision) *Pending {
	s, err := r.shard(partition)
	if err != nil {
		return failed(err)
	}
	p := s.pending()
	var ticket Ticket
	err = s.within(ctx.Done(), func(now Now) error {
		answer := make(chan delivered, 1)
		ticket = s.ticket(answer)
		p.answer, p.gone = answer, s.context.Done()
		// What the decision comes to is in the answer: a machine that answers late learns of a refusal.
		if err := s.carryOut(now, decide(s.machine, now, ticket)); err != nil && s.phase == dropped {
			return err
		}
		return nil
	})
	if err != nil {
		return failed(err)
	}
	p.cancel = func() { s.forget(ticket, gone) }
	return p
}

// pending makes the second phase of a request.
func (s *shard[M]) pending() *Pending {
	return &Pending{log: s.log, epoch: s.epoch, limit: s.runtime.config}
}

// ticket registers somebody who waits.
func (s *shard[M]) ticket(answer chan delivered) Ticket {
	s.last++
	if s.waiting == nil {
		s.waiting = map[Ticket]chan delivered{}
	}
	s.waiting[s.last] = answer
	return s.last
}

// forget strikes out somebody who waits no more.
func (s *shard[M]) forget(ticket Ticket, gone func(m M, now Now, t Ticket) Decision) {
	// An error means that the shard, and with it the ticket, is gone already.
	_ = s.within(nil, func(now Now) error {
		delete(s.waiting, ticket)
		if gone == nil {
			return nil
		}
		return s.carryOut(now, gone(s.machine, now, ticket))
	})
}

// Write is Submit and Wait in one.
func (r *Runtime[M]) Write(ctx context.Context, partition int32, decide func(m M, now Now) (Decision, error)) error {
	_, err := r.Submit(ctx, partition, decide).Wait(ctx)
	return err
}

// Read runs read in the shard, and returns once all that it can have seen is committed. read must neither
// change nor keep the machine.
func (r *Runtime[M]) Read(ctx context.Context, partition int32, read func(m M, now Now) error) error {
	if planted.In(planted.OpenShard) {
		var refused error
		err := r.Peek(ctx, partition, func(m M, now Now) { refused = read(m, now) })
		return errors.Join(err, refused)
	}
	return r.Write(ctx, partition, func(m M, now Now) (Decision, error) { return Decision{}, read(m, now) })
}

// Peek is Read without the wait: what it sees may not be committed yet. It is for metrics.
func (r *Runtime[M]) Peek(ctx context.Context, partition int32, read func(m M, now Now)) error {
	s, err := r.shard(partition)
	if err != nil {
		return err
	}
	return s.within(ctx.Done(), func(now Now) error { read(s.machine, now); return nil })
}

// EndTransaction appends a transaction marker and applies it, and returns once it is committed.
func (r *Runtime[M]) EndTransaction(ctx context.Context, partition int32, m Marker) error {
	s, err := r.shard(partition)
	if err != nil {
		return err
	}
	p := s.pending()
	err = s.within(ctx.Done(), func(now Now) error {
		err := s.mark(now, m)
		p.end = s.end
		return err
	})
	if err != nil {
		return err
	}
	_, err = p.Wait(ctx)
	return err
}
