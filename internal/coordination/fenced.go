package coordination

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Guard is a node and the version that it must have for a write to count: with the version that an
// election gave, only the newest leader's writes land, however late an older one wakes up.
type Guard struct {
	Path    string
	Version int32
}

// FencedTxn carries out ops if the guard holds, all or none. If it does not hold, the error is ErrFenced.
// Results and TxnError.Index count without the guard.
func FencedTxn(ctx context.Context, s Session, guard Guard, ops ...Op) ([]OpResult, error) {
	all := make([]Op, 0, len(ops)+1)
	all = append(all, Check(guard.Path, guard.Version))
	results, err := s.Txn(ctx, append(all, ops...)...)
	if err == nil {
		return results[1:], nil
	}
	var txn *TxnError
	switch {
	case !errors.As(err, &txn):
		return nil, err
	case txn.Index > 0:
		return nil, &TxnError{Index: txn.Index - 1, Err: txn.Err}
	case errors.Is(err, ErrBadVersion), errors.Is(err, ErrNoNode):
		return nil, fmt.Errorf("%w by %s: %w", ErrFenced, guard.Path, txn.Err)
	}
	return nil, txn.Err
}

// What BatchFenced puts into one transaction at most. ZooKeeper's throughput rises until a few hundred
// operations a transaction; 256 KiB leave its limit of 1 MiB far away.
const (
	batchOps   = 500
	batchBytes = 256 << 10
)

// BatchResult is what became of one operation of a batch.
type BatchResult struct {
	Result OpResult
	Err    error
}

// BatchFenced carries out operations that are independent of each other, many in one transaction, in their
// order. One that fails, say because its version does not match, leaves the others alone: the
// transaction is split around it. The results stand in the order of ops.
//
// The error is nil if every operation was answered. Otherwise it says why it stopped: ErrFenced,
// ErrSessionLost, ErrUnknownOutcome, …; the results say then which operations may have happened
// (ErrUnknownOutcome) and which did not (ErrNotSent).
func BatchFenced(ctx context.Context, s Session, guard Guard, ops []Op) ([]BatchResult, error) {
	b := batch{session: s, guard: guard, ops: ops}
	return b.runAll(ctx, 1)
}

// batchesInFlight is how many transactions of a BatchPremised are under way at a time: the store syncs several of them
// to its disk at once, and none waits for an answer on its way. More than a few only queue there.
const batchesInFlight = 8

// BatchPremised is BatchFenced for operations that were decided from what premise checks: where that does not
// hold any more, nothing more is written, and the error is ErrPremise. The order in which the transactions take effect
// is not certain, as several are under way at a time; which one failed is told by the results.
func BatchPremised(ctx context.Context, s Session, guard Guard, premise, ops []Op) ([]BatchResult, error) {
	b := batch{session: s, guard: guard, premise: premise, ops: ops}
	return b.runAll(ctx, batchesInFlight)
}

// failures are why transactions of one batch failed, by where they begin.
type failures struct {
	mu   sync.Mutex
	errs map[int]error
}

func (f *failures) add(at int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && f.errs == nil {
		f.errs = map[int]error{}
	}
	if err != nil {
		f.errs[at] = err
	}
}

func (f *failures) any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.errs) > 0
}

// worst is the first error by order of the operations; one after which the session or the leadership is over comes
// before any other.
func (f *failures) worst() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var first error
	for _, at := range slices.Sorted(maps.Keys(f.errs)) {
		switch err := f.errs[at]; {
		case errors.Is(err, ErrFenced), errors.Is(err, ErrSessionLost):
			return err
		case first == nil:
			first = err
		}
	}
	return first
}

// batch is a BatchFenced or BatchPremised under way.
type batch struct {
	session Session
	guard   Guard
	premise []Op
	ops     []Op
	results []BatchResult
}

// runAll carries out all operations, with so many transactions under way at a time; after one that failed none is begun.
func (b *batch) runAll(ctx context.Context, inFlight int) ([]BatchResult, error) {
	b.results = make([]BatchResult, len(b.ops))
	var failures failures
	var running sync.WaitGroup
	slots := make(chan struct{}, inFlight)
	for from := 0; from < len(b.ops); {
		slots <- struct{}{}
		if failures.any() {
			b.stopped(from, len(b.ops), ErrNotSent)
			break
		}
		first, last := from, b.chunk(from)
		running.Go(func() {
			failures.add(first, b.run(ctx, first, last))
			<-slots
		})
		from = last
	}
	running.Wait()
	return b.results, failures.worst()
}

// chunk is where the transaction that starts at operation from ends.
func (b *batch) chunk(from int) int {
	size := 0
	for i := from; i < len(b.ops); i++ {
		size += b.ops[i].Size()
		if i > from && (i-from == batchOps || size > batchBytes) {
			return i
		}
	}
	return len(b.ops)
}

// run carries out operations [from, to). One that the store refuses is noted; those before it and those
// after it are tried again without it.
func (b *batch) run(ctx context.Context, from, to int) error {
	for from < to {
		results, err := FencedTxn(ctx, b.session, b.guard, slices.Concat(b.premise, b.ops[from:to])...)
		var txn *TxnError
		switch {
		case err == nil:
			for i, result := range results[len(b.premise):] {
				b.results[from+i].Result = result
			}
			return nil
		case !errors.As(err, &txn):
			b.stopped(from, to, err)
			return err
		case txn.Index < len(b.premise):
			b.stopped(from, to, ErrNotSent)
			return fmt.Errorf("%w: %w", ErrPremise, txn.Err)
		}
		refused := from + txn.Index - len(b.premise)
		b.results[refused].Err = txn.Err
		if err := b.run(ctx, from, refused); err != nil {
			b.stopped(refused+1, to, ErrNotSent)
			return err
		}
		from = refused + 1
	}
	return nil
}

// stopped notes for operations [from, to) whether they may have happened.
func (b *batch) stopped(from, to int, err error) {
	if !errors.Is(err, ErrUnknownOutcome) {
		err = ErrNotSent
	}
	for i := from; i < to; i++ {
		b.results[i].Err = err
	}
}
