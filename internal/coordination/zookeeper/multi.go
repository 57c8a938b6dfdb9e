package zookeeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/jute"
)

// isMissing tells that a node is not there.
func isMissing(err error) bool { return errors.Is(err, coordination.ErrNoNode) }

// unpack takes the index off the error of a single operation.
func unpack(err error) error {
	var txn *coordination.TxnError
	if errors.As(err, &txn) {
		return txn.Err
	}
	return err
}

// Txn implements coordination.Session.
func (s *Session) Txn(ctx context.Context, ops ...coordination.Op) ([]coordination.OpResult, error) {
	if err := s.store.limits.Validate(ops...); err != nil {
		return nil, err
	}
	if len(ops) == 0 {
		return nil, s.alive()
	}
	multi := jute.MultiRequest{Ops: make([]jute.MultiOp, len(ops))}
	for i, op := range ops {
		outer := s.chroot.OuterOp(op)
		if op.Kind == coordination.OpDelete && outer.Path == "/" {
			return nil, &coordination.TxnError{Index: i, Err: wrap("delete", op.Path, coordination.ErrBadOperation)}
		}
		multi.Ops[i].Op, multi.Ops[i].Request = s.request(op, outer)
	}
	r := newRequest(jute.OpMulti, &multi, false)
	body, err := s.do(ctx, r)
	if err != nil {
		return nil, err
	}
	var answer jute.MultiResponse
	if err := decode(body, &answer); err != nil {
		return nil, err
	}
	if err := refusal(ops, answer.Results); err != nil {
		return nil, err
	}
	return s.results(ops, answer.Results, r.zxid), nil
}

// refusal is the error of a transaction that failed: of the operations beside the culprit those before it look
// as if they had happened, and those behind it are inconsistent.
func refusal(ops []coordination.Op, answers []jute.MultiResult) error {
	if len(answers) != len(ops) {
		return fmt.Errorf("%w: %d answers to %d operations", coordination.ErrUnknownOutcome, len(answers), len(ops))
	}
	failed := false
	for i := range answers {
		if answers[i].Op != jute.OpError {
			continue
		}
		failed = true
		if code := answers[i].Err; code != jute.OK && code != jute.RuntimeInconsistency {
			return &coordination.TxnError{Index: i, Err: wrap(ops[i].Kind.String(), ops[i].Path, errorOf(code))}
		}
	}
	if failed {
		return fmt.Errorf("%w: the server refused a transaction without a reason", coordination.ErrNotSent)
	}
	return nil
}

// results are those of a transaction that was committed as zxid. Servers tell the Stat of a Set, and not that
// of a node that a transaction creates; but all there is to know of a new node follows from the transaction,
// except for the time on the servers' clock.
func (s *Session) results(ops []coordination.Op, answers []jute.MultiResult, zxid int64) []coordination.OpResult {
	id := s.ID()
	for i := range answers {
		if answers[i].Op == jute.OpSetData {
			zxid = answers[i].Stat.Mzxid // as sure as can be; the answer's own number is the same
		}
	}
	results := make([]coordination.OpResult, len(ops))
	for i := range answers {
		result := coordination.OpResult{Path: ops[i].Path, Stat: statOf(&answers[i].Stat)}
		if ops[i].Kind == coordination.OpCreate {
			result.Path = s.chroot.Inner(answers[i].Path)
			if answers[i].Op == jute.OpCreate {
				result.Stat = coordination.Stat{Czxid: zxid, Mzxid: zxid, Pzxid: zxid}
				if ops[i].Options.Ephemeral {
					result.Stat.EphemeralOwner = id
				}
			}
		}
		results[i] = result
	}
	return results
}

// How many nodes one request of GetMany reads at most, and how many bytes their paths take.
const (
	readBatch      = 1000
	readBatchBytes = 256 << 10
)

// GetMany implements coordination.Session: batches of reads, all under way at once.
func (s *Session) GetMany(ctx context.Context, paths []string) ([]coordination.GetResult, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, cancelled(ctx, coordination.ErrNotSent)
	}
	results := make([]coordination.GetResult, len(paths))
	var requests []*request
	var wanted [][]int // of each request, the positions that it reads
	for _, batch := range s.batches(paths, results) {
		multi := jute.MultiRequest{Ops: make([]jute.MultiOp, len(batch))}
		for i, at := range batch {
			multi.Ops[i] = jute.MultiOp{Op: jute.OpGetData, Request: &jute.ReadRequest{Path: s.chroot.Outer(paths[at])}}
		}
		requests, wanted = append(requests, newRequest(jute.OpMultiRead, &multi, true)), append(wanted, batch)
	}
	if err := s.submit(requests...); err != nil {
		return nil, err
	}
	for i, r := range requests {
		body, err := s.await(ctx, r)
		if err == nil {
			err = gather(results, paths, wanted[i], body)
		}
		if err != nil {
			for _, rest := range requests[i+1:] {
				_ = s.abandon(rest) // reads: nothing to be unsure of
			}
			return nil, err
		}
	}
	return results, nil
}

// batches splits positions in paths into requests; invalid paths get their error at once.
func (s *Session) batches(paths []string, results []coordination.GetResult) (batches [][]int) {
	size := readBatchBytes
	for at, path := range paths {
		if results[at].Err = coordination.ValidatePath(path); results[at].Err != nil {
			continue
		}
		length := len(path) + len(s.chroot) + 16
		if size += length; size > readBatchBytes || len(batches[len(batches)-1]) == readBatch {
			batches, size = append(batches, make([]int, 0, min(readBatch, len(paths)-at))), length
		}
		last := len(batches) - 1
		batches[last] = append(batches[last], at)
	}
	return batches
}

// gather takes the results out of one answer. Data is copied: one node that is kept would otherwise keep them all.
func gather(results []coordination.GetResult, paths []string, wanted []int, body []byte) error {
	var answer jute.MultiResponse
	if err := decode(body, &answer); err != nil {
		return err
	}
	if len(answer.Results) != len(wanted) {
		return fmt.Errorf("%w: %d answers to %d reads", coordination.ErrNotSent, len(answer.Results), len(wanted))
	}
	for i, at := range wanted {
		switch got := &answer.Results[i]; got.Op {
		case jute.OpGetData:
			results[at] = coordination.GetResult{Data: bytes.Clone(got.Data), Stat: statOf(&got.Stat)}
		default:
			results[at].Err = wrap("get", paths[at], errorOf(got.Err))
		}
	}
	return nil
}
