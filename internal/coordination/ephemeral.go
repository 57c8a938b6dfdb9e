package coordination

import (
	"context"
	"errors"
	"fmt"
)

// EnsurePath creates a persistent node without data, and those above it that are missing. Nodes that
// exist stay as they are.
func EnsurePath(ctx context.Context, s Session, path string) error {
	if err := ValidatePath(path); err != nil {
		return err
	}
	err := ensure(ctx, s, path)
	for errors.Is(err, ErrNoNode) && path != "/" {
		if err = EnsurePath(ctx, s, Parent(path)); err == nil {
			err = ensure(ctx, s, path)
		}
	}
	return err
}

// ensure creates one persistent node, unless it is there.
func ensure(ctx context.Context, s Session, path string) error {
	_, ok, err := s.Exists(ctx, path)
	if err != nil || ok {
		return err
	}
	_, _, err = s.Create(ctx, path, nil, CreateOptions{})
	switch {
	case errors.Is(err, ErrNodeExists):
		return nil
	case errors.Is(err, ErrUnknownOutcome) && ctx.Err() == nil:
		return ensure(ctx, s, path)
	}
	return err
}

// CreateEphemeralChecked makes sure that this session owns an ephemeral node with data, as a broker's
// registration is: it creates the node without data and sets it, in one transaction, which is what Kafka
// does and gives data version 1. Where also is given it stands behind the two in the same transaction.
//
// A node that an earlier session left behind is waited for until it is gone; when ctx ends first, the
// error is ErrNodeExists and names the session. It is never deleted: its owner may live. Where this session
// ends first the error is that alone: the next one may find the node gone. After an unknown outcome it looks
// whether the node is this session's.
func CreateEphemeralChecked(ctx context.Context, s Session, path string, data []byte, also ...Op) (Stat, error) {
	w, err := s.Watch(ctx, path, Node)
	if err != nil {
		return Stat{}, err
	}
	defer w.Close()
	for {
		results, err := s.Txn(ctx, append([]Op{Create(path, nil, CreateOptions{Ephemeral: true}), Set(path, data, 0)}, also...)...)
		switch {
		case err == nil:
			return results[1].Stat, nil
		case !errors.Is(err, ErrNodeExists) && !errors.Is(err, ErrUnknownOutcome):
			return Stat{}, err
		}
		stat, ok, err := s.Exists(ctx, path)
		switch {
		case err != nil:
			return Stat{}, err
		case !ok:
			continue
		case stat.EphemeralOwner == s.ID():
			return stat, nil
		case stat.EphemeralOwner == 0:
			return Stat{}, &OpError{Op: "create", Path: path, Err: fmt.Errorf("%w: a persistent one", ErrNodeExists)}
		}
		if err := awaitChange(ctx, s, w); err != nil {
			if ctx.Err() == nil {
				return Stat{}, &OpError{Op: "create", Path: path, Err: err}
			}
			return Stat{}, &OpError{Op: "create", Path: path, Err: fmt.Errorf(
				"%w: it belongs to session %#x: %w", ErrNodeExists, stat.EphemeralOwner, err)}
		}
	}
}

// awaitChange waits for an event of w.
func awaitChange(ctx context.Context, s Session, w Watch) error {
	select {
	case _, ok := <-w.Events():
		if !ok {
			<-s.Done() // a watch that nobody else closes ends with its session
			return s.Err()
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
