package local

import (
	"bytes"
	"context"
	"errors"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/tree"
)

// view admits a read and returns the tree to read from and the path in it.
//
// The read is from the newest tree, which no lock guards: it is a pointer to a value that never changes. A session
// that has ended reads nothing, although it could: its holder must not act on what it sees any more.
func (s *Session) view(ctx context.Context, read, path string) (*tree.Tree, string, error) {
	if err := coordination.ValidatePath(path); err != nil {
		return nil, "", err
	}
	if err := s.admit(ctx, read, path); err != nil {
		return nil, "", wrap(read, path, err)
	}
	return s.hub.Tree(), s.chroot.Outer(path), nil
}

// admit waits until the store lets a read through.
func (s *Session) admit(ctx context.Context, read, path string) error {
	if err := s.alive(); err != nil {
		return err
	}
	return s.hub.backend.Admit(ctx, s, read, path)
}

// Get implements coordination.Session.
func (s *Session) Get(ctx context.Context, path string) ([]byte, coordination.Stat, error) {
	t, outer, err := s.view(ctx, "get", path)
	if err != nil {
		return nil, coordination.Stat{}, err
	}
	data, stat, err := t.Get(outer)
	return data, stat, wrap("get", path, err)
}

// GetMany implements coordination.Session; here it is one consistent picture.
//
// One load of the tree serves all paths, so no change falls between them. A path that is missing is an error of that
// result and not of the call.
func (s *Session) GetMany(ctx context.Context, paths []string) ([]coordination.GetResult, error) {
	if err := s.admit(ctx, "get", ""); err != nil {
		return nil, err
	}
	t := s.hub.Tree()
	results := make([]coordination.GetResult, len(paths))
	for i, path := range paths {
		r := &results[i]
		if r.Err = coordination.ValidatePath(path); r.Err != nil {
			continue
		}
		r.Data, r.Stat, r.Err = t.Get(s.chroot.Outer(path))
		r.Err = wrap("get", path, r.Err)
	}
	return results, nil
}

// Exists implements coordination.Session.
func (s *Session) Exists(ctx context.Context, path string) (coordination.Stat, bool, error) {
	t, outer, err := s.view(ctx, "exists", path)
	if err != nil {
		return coordination.Stat{}, false, err
	}
	_, stat, err := t.Get(outer)
	return stat, err == nil, nil
}

// Children implements coordination.Session.
func (s *Session) Children(ctx context.Context, path string) ([]string, coordination.Stat, error) {
	t, outer, err := s.view(ctx, "children", path)
	if err != nil {
		return nil, coordination.Stat{}, err
	}
	names, stat, err := t.Children(outer)
	return names, stat, wrap("children", path, err)
}

// Create implements coordination.Session.
func (s *Session) Create(
	ctx context.Context, path string, data []byte, options coordination.CreateOptions,
) (string, coordination.Stat, error) {
	result, err := s.single(ctx, coordination.Create(path, data, options))
	return result.Path, result.Stat, err
}

// Set implements coordination.Session.
func (s *Session) Set(
	ctx context.Context, path string, data []byte, version int32,
) (coordination.Stat, error) {
	result, err := s.single(ctx, coordination.Set(path, data, version))
	return result.Stat, err
}

// Delete implements coordination.Session.
func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	_, err := s.single(ctx, coordination.Delete(path, version))
	return err
}

// single carries out one operation and unpacks its error.
func (s *Session) single(ctx context.Context, op coordination.Op) (coordination.OpResult, error) {
	results, err := s.Txn(ctx, op)
	var txn *coordination.TxnError
	if errors.As(err, &txn) {
		return coordination.OpResult{}, txn.Err
	}
	if err != nil {
		return coordination.OpResult{}, wrap(op.Kind.String(), op.Path, err)
	}
	return results[0], nil
}

// Txn implements coordination.Session.
//
// Data is cloned, since it becomes part of the tree, which outlives the call; paths are the store's from here on, and
// the session's again in results and errors.
func (s *Session) Txn(ctx context.Context, ops ...coordination.Op) ([]coordination.OpResult, error) {
	if err := s.hub.limits.Validate(ops...); err != nil {
		return nil, err
	}
	if len(ops) == 0 {
		return nil, s.alive()
	}
	outer := make([]coordination.Op, len(ops))
	for i, op := range ops {
		outer[i] = s.chroot.OuterOp(op)
		outer[i].Data = bytes.Clone(op.Data)
	}
	result, err := s.commit(ctx, tree.Command{Kind: tree.Transaction, Ops: outer})
	var txn *coordination.TxnError
	if errors.As(err, &txn) {
		op := ops[txn.Index]
		return nil, &coordination.TxnError{Index: txn.Index, Err: wrap(op.Kind.String(), op.Path, txn.Err)}
	}
	if err != nil {
		return nil, err
	}
	for i := range result.Ops {
		result.Ops[i].Path = s.chroot.Inner(result.Ops[i].Path)
	}
	return result.Ops, nil
}

// commit carries out a command of this session.
//
// The time is this process's, and is stored with the command: the tree takes ctime and mtime from there. An error of
// the communication and a refusal by the tree are one error here, told apart by what it wraps.
func (s *Session) commit(ctx context.Context, c tree.Command) (tree.Result, error) {
	if err := s.alive(); err != nil {
		return tree.Result{}, err
	}
	c.Session, c.Time = s.id, s.hub.now().UnixMilli()
	result, err := s.hub.backend.Commit(ctx, s, c)
	if err == nil {
		err = result.Err
	}
	return result, err
}

// Sync implements coordination.Session.
func (s *Session) Sync(ctx context.Context, path string) error {
	if err := coordination.ValidatePath(path); err != nil {
		return err
	}
	if err := s.alive(); err != nil {
		return wrap("sync", path, err)
	}
	return wrap("sync", path, s.hub.backend.Sync(ctx, s))
}

// Watch implements coordination.Session.
//
// It is entered before this returns, and then tells of every change from here on, merged where the reader is slow:
// read after you have it, and nothing is missed.
func (s *Session) Watch(
	ctx context.Context, path string, mode coordination.Mode,
) (coordination.Watch, error) {
	if mode < coordination.Node || mode > coordination.Subtree {
		return nil, wrap("watch", path, coordination.ErrBadOperation)
	}
	_, outer, err := s.view(ctx, "watch", path)
	if err != nil {
		return nil, err
	}
	w, err := s.addWatch(outer, mode)
	if err != nil {
		return nil, wrap("watch", path, err)
	}
	return w, nil
}

// Close implements coordination.Session.
//
// closing is set first, so that the end which the commit brings about is told as a close and not as a loss.
func (s *Session) Close() error {
	s.mu.Lock()
	closing := s.mu.closing
	s.mu.closing = true
	s.mu.Unlock()
	if closing || s.alive() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	_, err := s.commit(ctx, tree.Command{Kind: tree.CloseSession})
	s.End(coordination.ErrSessionLost)
	if errors.Is(err, coordination.ErrSessionLost) {
		return nil
	}
	return err
}
