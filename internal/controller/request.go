package controller

import (
	"context"
	"errors"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// ask lets the active term carry out f and waits for what comes out, until ctx ends. What f has begun goes
// on when nobody waits any more: a client whose time is up may find later that it succeeded. Where ctx has
// ended before, f is begun all the same, as Kafka creates a topic whose time is up from the start, and the
// answer is the end of ctx however quick f was. It fails with NOT_CONTROLLER where another broker leads, and
// where the term ends first.
func ask[T any](ctx context.Context, c *Controller, f func(*term) (T, error)) (T, error) {
	var nothing T
	t := c.term.Load()
	if t == nil {
		return nothing, P.NotController
	}
	expired := ctx.Err()
	result := make(chan T, 1)
	request := func() error {
		r, err := f(t)
		result <- r
		return err
	}
	select {
	case t.requests <- request:
	default:
		select {
		case t.requests <- request:
		case <-t.done:
			return nothing, P.NotController
		case <-ctx.Done():
			return nothing, ctx.Err()
		}
	}
	if expired != nil {
		return nothing, expired
	}
	select {
	case r := <-result:
		return r, nil
	case <-ctx.Done():
		return nothing, ctx.Err()
	case <-t.done:
	}
	select {
	case r := <-result:
		return r, nil
	default:
		return nothing, P.NotController
	}
}

// failed gives an error of the store the code that a client acts on.
func failed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, coordination.ErrFenced), errors.Is(err, coordination.ErrSessionLost):
		return P.NotController
	case errors.Is(err, coordination.ErrTooLarge):
		return P.Errorf(P.PolicyViolation, "This is more than the coordination store takes in one znode: %w", err)
	case errors.Is(err, coordination.ErrNotSent), errors.Is(err, coordination.ErrUnknownOutcome):
		return P.Errorf(P.RequestTimedOut, "The coordination store did not answer: %w", err)
	}
	return err
}

// repeated finds the items of a request that name the same thing as another one.
func repeated[T any, K comparable](items []T, key func(T) K) map[K]bool {
	seen, twice := map[K]bool{}, map[K]bool{}
	for _, item := range items {
		k := key(item)
		if seen[k] {
			twice[k] = true
		}
		seen[k] = true
	}
	return twice
}
