package memory

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
)

// slow is a session whose transactions take 10 ms, as a store's do that syncs its log.
type slow struct{ coordination.Session }

const slowTxn = 10 * time.Millisecond

func (s slow) Txn(ctx context.Context, ops ...coordination.Op) ([]coordination.OpResult, error) {
	<-time.After(slowTxn)
	return s.Session.Txn(ctx, ops...)
}

// The states of 10,000 partitions are twenty transactions. Eight are under way at a time, so that they cost three round
// trips to the store.
func TestBatchesAreUnderWayTogether(t *testing.T) {
	bubble(t, func(t *testing.T, store *Store) {
		s := slow{open(t, store)}
		if err := errors.Join(create(s, "/guard"), create(s, "/premise"), create(s, "/parent")); err != nil {
			t.Fatal(err)
		}
		var ops []coordination.Op
		for i := range 10_000 {
			ops = append(ops, coordination.Create(fmt.Sprintf("/parent/%d", i), nil, coordination.CreateOptions{}))
		}
		premise := []coordination.Op{coordination.Check("/premise", 0)}
		began := time.Now()
		results, err := coordination.BatchPremised(ctx, s, coordination.Guard{Path: "/guard"}, premise, ops)
		if took := time.Since(began); err != nil || took != 3*slowTxn {
			t.Errorf("%v after %v, want the time of three transactions", err, took)
		}
		for i, r := range results {
			if r.Err != nil || r.Result.Stat.Czxid == 0 {
				t.Fatalf("operation %d: %+v", i, r)
			}
		}
		results, err = coordination.BatchPremised(ctx, s, coordination.Guard{Path: "/guard"}, []coordination.Op{coordination.Check("/premise", 1)}, ops)
		if !errors.Is(err, coordination.ErrPremise) || !errors.Is(results[0].Err, coordination.ErrNotSent) || !errors.Is(results[9_999].Err, coordination.ErrNotSent) {
			t.Errorf("without its premise: %v, %v … %v", err, results[0].Err, results[9_999].Err)
		}
		_, err = coordination.BatchPremised(ctx, s, coordination.Guard{Path: "/guard", Version: 1}, premise, ops)
		if !errors.Is(err, coordination.ErrFenced) {
			t.Errorf("without its guard: %v", err)
		}
	})
}
