package zookeeper

import (
	"context"
	"fmt"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/jute"
)

// statOf is a Stat of the contract.
func statOf(s *jute.Stat) coordination.Stat {
	return coordination.Stat{
		Czxid: s.Czxid, Mzxid: s.Mzxid, Pzxid: s.Pzxid, EphemeralOwner: s.EphemeralOwner, Ctime: s.Ctime, Mtime: s.Mtime,
		Version: s.Version, Cversion: s.Cversion, NumChildren: s.NumberOfChildren,
	}
}

// read asks for one node and decodes the answer.
func (s *Session) read(ctx context.Context, name, path string, op jute.Op, answer jute.Record) error {
	if err := coordination.ValidatePath(path); err != nil {
		return err
	}
	body, err := s.call(ctx, op, &jute.ReadRequest{Path: s.chroot.Outer(path)}, true)
	if err == nil {
		err = decode(body, answer)
	}
	return wrap(name, path, err)
}

// decode reads a body that a server has sent.
func decode(body []byte, answer jute.Record) error {
	r := jute.NewReader(body)
	answer.Read(r)
	if err := r.Err(); err != nil {
		return fmt.Errorf("%w: %w", coordination.ErrUnknownOutcome, err)
	}
	return nil
}

// Get implements coordination.Session.
func (s *Session) Get(ctx context.Context, path string) ([]byte, coordination.Stat, error) {
	var answer jute.GetDataResponse
	if err := s.read(ctx, "get", path, jute.OpGetData, &answer); err != nil {
		return nil, coordination.Stat{}, err
	}
	return answer.Data, statOf(&answer.Stat), nil
}

// Exists implements coordination.Session.
func (s *Session) Exists(ctx context.Context, path string) (coordination.Stat, bool, error) {
	var answer jute.StatResponse
	err := s.read(ctx, "exists", path, jute.OpExists, &answer)
	switch {
	case isMissing(err):
		return coordination.Stat{}, false, nil
	case err != nil:
		return coordination.Stat{}, false, err
	}
	return statOf(&answer), true, nil
}

// Children implements coordination.Session.
func (s *Session) Children(ctx context.Context, path string) ([]string, coordination.Stat, error) {
	var answer jute.GetChildren2Response
	if err := s.read(ctx, "children", path, jute.OpGetChildren2, &answer); err != nil {
		return nil, coordination.Stat{}, err
	}
	slices.Sort(answer.Names)
	return answer.Names, statOf(&answer.Stat), nil
}

// write carries out one operation on one node.
func (s *Session) write(ctx context.Context, op coordination.Op, answer jute.Record) error {
	if err := s.store.limits.Validate(op); err != nil {
		return unpack(err)
	}
	outer := s.chroot.OuterOp(op)
	if op.Kind == coordination.OpDelete && outer.Path == "/" {
		return wrap("delete", op.Path, coordination.ErrBadOperation)
	}
	code, request := s.request(op, outer)
	body, err := s.call(ctx, code, request, false)
	if err == nil && answer != nil {
		err = decode(body, answer)
	}
	return wrap(op.Kind.String(), op.Path, err)
}

// request is the operation that the server is asked for; outer has the server's path.
func (s *Session) request(op, outer coordination.Op) (jute.Op, jute.Record) {
	switch op.Kind {
	case coordination.OpCheck:
		return jute.OpCheck, &jute.CheckRequest{Path: outer.Path, Version: op.Version}
	case coordination.OpSet:
		return jute.OpSetData, &jute.SetDataRequest{Path: outer.Path, Data: op.Data, Version: op.Version}
	case coordination.OpDelete:
		return jute.OpDelete, &jute.DeleteRequest{Path: outer.Path, Version: op.Version}
	}
	flags := int32(0)
	if op.Options.Ephemeral {
		flags |= jute.FlagEphemeral
	}
	if op.Options.Sequential {
		flags |= jute.FlagSequential
	}
	return jute.OpCreate2, &jute.CreateRequest{
		Path: outer.Path, Data: op.Data, ACL: s.store.acls(op.Path, op.Options.ACL), Flags: flags,
	}
}

// Create implements coordination.Session.
func (s *Session) Create(
	ctx context.Context, path string, data []byte, options coordination.CreateOptions,
) (string, coordination.Stat, error) {
	var answer jute.Create2Response
	if err := s.write(ctx, coordination.Create(path, data, options), &answer); err != nil {
		return "", coordination.Stat{}, err
	}
	return s.chroot.Inner(answer.Path), statOf(&answer.Stat), nil
}

// Set implements coordination.Session.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) (coordination.Stat, error) {
	var answer jute.StatResponse
	if err := s.write(ctx, coordination.Set(path, data, version), &answer); err != nil {
		return coordination.Stat{}, err
	}
	return statOf(&answer), nil
}

// Delete implements coordination.Session.
func (s *Session) Delete(ctx context.Context, path string, version int32) error {
	return s.write(ctx, coordination.Delete(path, version), nil)
}

// Sync implements coordination.Session.
func (s *Session) Sync(ctx context.Context, path string) error {
	if err := coordination.ValidatePath(path); err != nil {
		return err
	}
	_, err := s.call(ctx, jute.OpSync, &jute.PathRecord{Path: s.chroot.Outer(path)}, true)
	return wrap("sync", path, err)
}
