package shard_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/leaktest"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
	"github.com/barnabas-mq/barnabas/internal/shard/shardtest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var bg = context.Background()

// runtime makes a runtime of one partition, which is led in epoch 5.
func runtime(t *testing.T, change ...func(*shard.Config)) (*shard.Runtime[*shard.Counter], *shardtest.Partition) {
	t.Helper()
	r := unled(t, change...)
	p := shardtest.New(5)
	r.Lead(0, 5, p)
	if err := r.Await(bg, 0); err != nil {
		t.Fatal(err)
	}
	return r, p
}

func unled(t *testing.T, change ...func(*shard.Config)) *shard.Runtime[*shard.Counter] {
	r := shard.NewRuntime(shard.Options[*shard.Counter]{
		Topic: "__numbers", Partitions: 2, Machine: shard.NewCounter,
		Config: func() shard.Config {
			var c shard.Config
			for _, f := range change {
				f(&c)
			}
			return c
		},
	})
	t.Cleanup(r.Close)
	return r
}

func set(r *shard.Runtime[*shard.Counter], name string, n int64) error {
	return r.Write(bg, 0, func(m *shard.Counter, _ shard.Now) (shard.Decision, error) { return m.Set(name, n), nil })
}

func get(t *testing.T, r *shard.Runtime[*shard.Counter], name string) (n int64, at protocol.Offset) {
	t.Helper()
	err := r.Read(bg, 0, func(m *shard.Counter, _ shard.Now) error { n, at = m.Get(name); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return n, at
}

func wantCode(t *testing.T, err error, want protocol.Code) {
	t.Helper()
	if got := protocol.CodeOf(err); got != want {
		t.Fatalf("got %v, want %s", err, want.Name())
	}
}

func TestWriteReadReload(t *testing.T) {
	r, p := runtime(t)
	for i, name := range []string{"a", "b", "a"} {
		if err := set(r, name, int64(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	if n, at := get(t, r, "a"); n != 3 || at != 2 {
		t.Errorf("a is %d at offset %d, want 3 at 2", n, at)
	}
	p.SetEpoch(6, false)
	r.Lead(0, 6, p)
	if err := r.Await(bg, 0); err != nil {
		t.Fatal(err)
	}
	if n, at := get(t, r, "b"); n != 2 || at != 1 {
		t.Errorf("after a reload b is %d at offset %d, want 2 at 1", n, at)
	}
}

// A new epoch of the same leader, as when a replica leaves the in-sync set, costs no reload: it could not even be read.
func TestNextEpochOfTheSameLeader(t *testing.T) {
	r, p := runtime(t)
	if err := set(r, "a", 1); err != nil {
		t.Fatal(err)
	}
	p.FailReads(errors.New("nobody reads"))
	p.GoOn(6)
	if err := set(r, "a", 2); err != nil { // before the runtime has heard of it
		t.Fatal(err)
	}
	r.Lead(0, 6, p)
	p.GoOn(7)
	r.Lead(0, 7, p)
	if n, at := get(t, r, "a"); n != 2 || at != 1 {
		t.Errorf("a is %d at offset %d, want 2 at 1", n, at)
	}
	if err := set(r, "a", 3); err != nil {
		t.Fatal(err)
	}
	for i, epoch := range []protocol.LeaderEpoch{5, 6, 7} {
		if b := p.Batches()[i]; b.LeaderEpoch() != epoch {
			t.Errorf("batch %d is of epoch %d, want %d", i, b.LeaderEpoch(), epoch)
		}
	}
	p.FailReads(nil)
	p.SetEpoch(9, true)
	r.Lead(0, 9, p)
	if err := r.Await(bg, 0); err != nil {
		t.Fatal(err)
	}
	if n, _ := get(t, r, "a"); n != 3 {
		t.Errorf("after another leader a is %d, want 3", n)
	}
}

func TestBatchesLookLikeKafkas(t *testing.T) {
	r, p := runtime(t)
	if err := set(r, "a", 1); err != nil {
		t.Fatal(err)
	}
	b := p.Batches()[0]
	if b.ProducerID() != -1 || b.ProducerEpoch() != -1 || b.BaseSequence() != 0 || b.LeaderEpoch() != 5 || b.Transactional() || !b.ValidCRC() {
		t.Errorf("producer %d epoch %d sequence %d leader epoch %d", b.ProducerID(), b.ProducerEpoch(), b.BaseSequence(), b.LeaderEpoch())
	}
}

func TestNotLed(t *testing.T) {
	r, p := runtime(t)
	wantCode(t, r.Write(bg, 1, nil), protocol.NotCoordinator)
	wantCode(t, r.Write(bg, -1, nil), protocol.NotCoordinator)
	wantCode(t, r.Write(bg, 2, nil), protocol.NotCoordinator)
	r.Resign(0)
	wantCode(t, set(r, "a", 1), protocol.NotCoordinator)
	wantCode(t, r.Await(bg, 0), protocol.NotCoordinator)
	r.Lead(0, 5, p)
	if err := r.Await(bg, 0); err != nil {
		t.Errorf("after a new lead: %v", err)
	}
}

func TestOlderLeadIsIgnored(t *testing.T) {
	r, p := runtime(t)
	if err := set(r, "a", 1); err != nil {
		t.Fatal(err)
	}
	r.Lead(0, 4, shardtest.New(4))
	r.Lead(0, 5, shardtest.New(5))
	if n, _ := get(t, r, "a"); n != 1 {
		t.Errorf("a is %d: an older or equal lead has replaced the shard", n)
	}
	_ = p
}

// A shard must not answer before what it has loaded is committed.
func TestOpensWhenTheWatermarkHasPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := runtime(t)
		p.Hold(true)
		pending := r.Submit(bg, 0, func(m *shard.Counter, _ shard.Now) (shard.Decision, error) { return m.Set("a", 1), nil })
		p.SetEpoch(6, false)
		r.Lead(0, 6, p)
		synctest.Wait()
		wantCode(t, set(r, "b", 1), protocol.CoordinatorLoadInProgress)
		if _, err := pending.Wait(bg); protocol.CodeOf(err) != protocol.NotLeaderOrFollower {
			t.Errorf("a write of the old epoch: %v", err)
		}
		p.Hold(false)
		if err := r.Await(bg, 0); err != nil {
			t.Fatal(err)
		}
		if n, _ := get(t, r, "a"); n != 1 {
			t.Errorf("a is %d", n)
		}
	})
}

// Nobody may see what can still be lost: reads wait for what was written before them.
func TestReadWaitsForEarlierWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := runtime(t)
		p.Hold(true)
		r.Submit(bg, 0, func(m *shard.Counter, _ shard.Now) (shard.Decision, error) { return m.Set("a", 1), nil })
		done := make(chan error)
		go func() {
			done <- r.Read(bg, 0, func(m *shard.Counter, _ shard.Now) error { return nil })
		}()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("read returned %v before the write was committed", err)
		default:
		}
		p.Hold(false)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestLostLeadershipFailsWaitersAndForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := runtime(t)
		if err := set(r, "a", 1); err != nil {
			t.Fatal(err)
		}
		p.Hold(true)
		done := make(chan error)
		go func() { done <- set(r, "a", 2) }()
		synctest.Wait()
		p.SetEpoch(6, true)
		wantCode(t, <-done, protocol.NotLeaderOrFollower)
		wantCode(t, set(r, "a", 3), protocol.NotLeaderOrFollower) // found out by the append
		wantCode(t, set(r, "a", 3), protocol.NotCoordinator)
		p.Hold(false)
		r.Lead(0, 6, p)
		if err := r.Await(bg, 0); err != nil {
			t.Fatal(err)
		}
		if n, _ := get(t, r, "a"); n != 1 {
			t.Errorf("a is %d, want the 1 that was committed", n)
		}
	})
}

func TestWaitTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := runtime(t, func(c *shard.Config) { c.CommitTimeout = 3 * time.Second })
		p.Hold(true)
		begin := time.Now()
		wantCode(t, set(r, "a", 1), protocol.RequestTimedOut)
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("took %s, want 3s", took)
		}
		p.Hold(false)
		if n, _ := get(t, r, "a"); n != 1 {
			t.Errorf("a is %d: the outcome of a timeout is unknown, but the state must agree with the log", n)
		}
	})
}

func TestRefusedAppendKeepsTheMachine(t *testing.T) {
	r, p := runtime(t)
	if err := set(r, "a", 1); err != nil {
		t.Fatal(err)
	}
	p.Refuse(protocol.NotEnoughReplicas)
	wantCode(t, set(r, "a", 2), protocol.NotEnoughReplicas)
	p.Refuse(nil)
	refused := 0
	err := r.Read(bg, 0, func(m *shard.Counter, _ shard.Now) error { refused = m.Refused(); return nil })
	if err != nil || refused != 1 {
		t.Errorf("refusals told to the machine: %d, %v", refused, err)
	}
	if n, _ := get(t, r, "a"); n != 1 {
		t.Errorf("a is %d, want 1", n)
	}
}

func TestUnknownAppendReloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := runtime(t)
		if err := set(r, "a", 1); err != nil {
			t.Fatal(err)
		}
		p.Refuse(errors.New("disk on fire"))
		wantCode(t, set(r, "a", 2), protocol.UnknownServerError)
		p.Refuse(nil)
		if err := r.Await(bg, 0); err != nil {
			t.Fatal(err)
		}
		refused, n := -1, int64(0)
		if err := r.Read(bg, 0, func(m *shard.Counter, _ shard.Now) error { refused = m.Refused(); n, _ = m.Get("a"); return nil }); err != nil {
			t.Fatal(err)
		}
		if refused != 0 || n != 1 {
			t.Errorf("a is %d in a machine that knows %d refusals: want a new machine with 1", n, refused)
		}
	})
}

func TestTooLargeIsRefusedBeforeTheLog(t *testing.T) {
	r, p := runtime(t, func(c *shard.Config) { c.MaxBatchBytes = 200 })
	long := string(make([]byte, 200))
	wantCode(t, set(r, long, 1), protocol.RecordListTooLarge)
	if n := len(p.Batches()); n != 0 {
		t.Errorf("%d batches in the log", n)
	}
	err := r.Write(bg, 0, func(m *shard.Counter, _ shard.Now) (shard.Decision, error) {
		d := shard.Decision{Split: true}
		for i := range 20 {
			d.Records = append(d.Records, m.Set(string(rune('a'+i)), int64(i)).Records...)
		}
		return d, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	batches := p.Batches()
	if len(batches) < 2 {
		t.Errorf("20 records in %d batches of at most 200 bytes", len(batches))
	}
	for _, b := range batches {
		if b.Length() > 200 {
			t.Errorf("batch of %d bytes", b.Length())
		}
	}
	if n, at := get(t, r, "t"); n != 19 || at != 19 {
		t.Errorf("t is %d at %d", n, at)
	}
}

func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := runtime(t)
		err := r.Write(bg, 0, func(m *shard.Counter, now shard.Now) (shard.Decision, error) {
			m.SetDeadline("a", now.Mono+10*time.Second)
			return m.Set("a", 7), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		pending := r.Ask(bg, 0, func(m *shard.Counter, _ shard.Now, ticket shard.Ticket) shard.Decision {
			m.Wait("a", ticket)
			return shard.Decision{}
		}, nil)
		begin := time.Now()
		answer, err := pending.Wait(bg)
		if err != nil || answer != "a was 7" || time.Since(begin) != 10*time.Second {
			t.Errorf("got %v, %v after %s", answer, err, time.Since(begin))
		}
		if n, _ := get(t, r, "a"); n != 0 {
			t.Errorf("a is %d after its timer", n)
		}
	})
}

func TestAnswersWaitForTheWatermark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := runtime(t)
		pending := r.Ask(bg, 0, func(m *shard.Counter, now shard.Now, ticket shard.Ticket) shard.Decision {
			m.Wait("a", ticket)
			m.SetDeadline("a", now.Mono+time.Second)
			return shard.Decision{}
		}, nil)
		p.Hold(true)
		done := make(chan error)
		go func() { _, err := pending.Wait(bg); done <- err }()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("answered (%v) although what the answer rests on is not committed", err)
		default:
		}
		p.Hold(false)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestAskEndsWithTheShardOrTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := runtime(t)
		gone := 0
		ask := func(ctx context.Context) *shard.Pending {
			return r.Ask(ctx, 0, func(m *shard.Counter, _ shard.Now, ticket shard.Ticket) shard.Decision {
				m.Wait("a", ticket)
				return shard.Decision{}
			}, func(*shard.Counter, shard.Now, shard.Ticket) shard.Decision { gone++; return shard.Decision{} })
		}
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		if _, err := ask(ctx).Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("caller gone: %v", err)
		}
		if gone != 1 {
			t.Errorf("the machine was told %d times", gone)
		}
		pending := ask(bg)
		r.Resign(0)
		_, err := pending.Wait(bg)
		wantCode(t, err, protocol.NotCoordinator)
		_ = p
	})
}

func TestTransactions(t *testing.T) {
	r, p := runtime(t)
	write := func(producer protocol.ProducerID, name string, n int64) {
		t.Helper()
		err := r.Write(bg, 0, func(m *shard.Counter, _ shard.Now) (shard.Decision, error) {
			d := m.Set(name, n)
			d.Producer = &shard.Producer{ID: producer, Epoch: 3}
			return d, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	end := func(producer protocol.ProducerID, commit bool) {
		t.Helper()
		m := shard.Marker{Producer: shard.Producer{ID: producer, Epoch: 4}, CoordinatorEpoch: 9, Commit: commit}
		if err := r.EndTransaction(bg, 0, m); err != nil {
			t.Fatal(err)
		}
	}
	write(1, "a", 1)
	write(2, "b", 2)
	write(3, "c", 3)
	if n, _ := get(t, r, "a"); n != 0 {
		t.Errorf("a is %d before its transaction ends", n)
	}
	end(1, true)
	end(2, false)
	check := func() {
		t.Helper()
		for name, want := range map[string]int64{"a": 1, "b": 0, "c": 0} {
			if n, _ := get(t, r, name); n != want {
				t.Errorf("%s is %d, want %d", name, n, want)
			}
		}
	}
	check()
	p.SetEpoch(6, false)
	r.Lead(0, 6, p)
	if err := r.Await(bg, 0); err != nil {
		t.Fatal(err)
	}
	check()
	end(3, true) // was open across the reload
	if n, _ := get(t, r, "c"); n != 3 {
		t.Errorf("c is %d", n)
	}
	marker := p.Batches()[3]
	if !marker.Control() || !marker.Transactional() || marker.ProducerID() != 1 || marker.ProducerEpoch() != 4 || marker.BaseSequence() != -1 {
		t.Errorf("marker %v", marker)
	}
}
