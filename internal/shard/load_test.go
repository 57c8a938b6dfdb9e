package shard_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/shard"
	"github.com/barnabas-mq/barnabas/internal/shard/shardtest"
)

// filled is a partition in epoch 5 with n batches, each of one record: number i of name a, b, … j.
func filled(t *testing.T, n int) *shardtest.Partition {
	t.Helper()
	p := shardtest.New(5)
	for i := range n {
		b := record.NewBuilder(record.BuilderOptions{ProducerID: -1, ProducerEpoch: -1, Codec: record.Codec(i % 5)})
		r := shard.Number(string(rune('a'+i%10)), int64(i))
		b.Append(int64(i), r.Key, r.Value)
		if _, err := p.Append(bg, b.Build(), 5); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func TestLoadsInSmallReads(t *testing.T) {
	r := unled(t, func(c *shard.Config) { c.LoadBytes = 1 })
	r.Lead(0, 5, filled(t, 100))
	if err := r.Await(bg, 0); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		name := string(rune('a' + i))
		if n, at := get(t, r, name); n != int64(90+i) || at != protocol.Offset(90+i) {
			t.Errorf("%s is %d at %d", name, n, at)
		}
	}
}

func TestLoadsWhatCompactionHasLeft(t *testing.T) {
	for name, drop := range map[string]func(record.Batch) bool{
		"every other": func(b record.Batch) bool { return b.BaseOffset()%2 == 0 },
		"the head":    func(b record.Batch) bool { return b.BaseOffset() < 50 },
		"the tail":    func(b record.Batch) bool { return b.BaseOffset() > 50 },
		"all":         func(record.Batch) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			p := filled(t, 100)
			kept := map[string]int64{}
			for _, b := range p.Batches() {
				if !drop(b) {
					kept[string(rune('a'+b.BaseOffset()%10))] = int64(b.BaseOffset())
				}
			}
			p.Compact(0, drop)
			r := unled(t)
			r.Lead(0, 5, p)
			if err := r.Await(bg, 0); err != nil {
				t.Fatal(err)
			}
			for i := range 10 {
				name := string(rune('a' + i))
				if n, _ := get(t, r, name); n != kept[name] {
					t.Errorf("%s is %d, want %d", name, n, kept[name])
				}
			}
			if err := set(r, "a", 7); err != nil {
				t.Errorf("write behind the hole: %v", err)
			}
		})
	}
}

// movingStart deletes the head of the log under the load's hands.
type movingStart struct {
	*shardtest.Partition
	reads int
}

func (m *movingStart) Read(from protocol.Offset, maxBytes int) ([]byte, error) {
	if m.reads++; m.reads == 3 {
		m.Compact(60, func(record.Batch) bool { return false })
	}
	return m.Partition.Read(from, maxBytes)
}

func TestLoadFollowsTheLogStart(t *testing.T) {
	r := unled(t, func(c *shard.Config) { c.LoadBytes = 1 })
	r.Lead(0, 5, &movingStart{Partition: filled(t, 100)})
	if err := r.Await(bg, 0); err != nil {
		t.Fatal(err)
	}
	if n, _ := get(t, r, "j"); n != 99 {
		t.Errorf("j is %d", n)
	}
}

func TestFailedLoadIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := unled(t)
		p := filled(t, 10)
		p.FailReads(errors.New("no disk"))
		r.Lead(0, 5, p)
		time.Sleep(time.Minute)
		wantCode(t, set(r, "a", 1), protocol.CoordinatorLoadInProgress)
		p.FailReads(nil)
		begin := time.Now()
		if err := r.Await(bg, 0); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begin); waited > 10*time.Second {
			t.Errorf("tried again after %s", waited)
		}
		if n, _ := get(t, r, "j"); n != 9 {
			t.Errorf("j is %d", n)
		}
	})
}

func TestDamageIsNotLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := shardtest.New(5)
		var segment []byte
		for _, b := range filled(t, 3).Batches() {
			segment = append(segment, b...)
		}
		segment[len(segment)-1] ^= 1
		if err := p.Load(segment); err != nil {
			t.Fatal(err)
		}
		r := unled(t)
		r.Lead(0, 5, p)
		time.Sleep(time.Second)
		wantCode(t, set(r, "a", 1), protocol.CoordinatorLoadInProgress)
		r.Resign(0)
		wantCode(t, set(r, "a", 1), protocol.NotCoordinator)
	})
}

func TestBugWhileLoadingIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := shardtest.New(5)
		b := record.NewBuilder(record.BuilderOptions{ProducerID: -1, ProducerEpoch: -1})
		b.Append(0, []byte("poison"), nil)
		if _, err := p.Append(bg, b.Build(), 5); err != nil {
			t.Fatal(err)
		}
		r := unled(t)
		r.Lead(0, 5, p)
		time.Sleep(time.Second)
		wantCode(t, set(r, "a", 1), protocol.CoordinatorLoadInProgress)
	})
}

func TestBugPoisonsTheMachineOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := runtime(t)
		if err := set(r, "a", 1); err != nil {
			t.Fatal(err)
		}
		err := r.Write(bg, 0, func(*shard.Counter, shard.Now) (shard.Decision, error) { panic("bug") })
		wantCode(t, err, protocol.UnknownServerError)
		if err := r.Await(bg, 0); err != nil {
			t.Fatal(err)
		}
		if n, _ := get(t, r, "a"); n != 1 {
			t.Errorf("a is %d in the new machine", n)
		}
		err = r.Write(bg, 0, func(m *shard.Counter, now shard.Now) (shard.Decision, error) {
			m.Poison()
			m.SetDeadline("a", now.Mono+time.Second)
			return m.Set("a", 2), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if n, _ := get(t, r, "a"); n != 2 {
			t.Errorf("a is %d after a bug in a timer", n)
		}
	})
}

func TestCloseInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := runtime(t)
		p.Hold(true)
		waiting := r.Ask(bg, 0, func(m *shard.Counter, now shard.Now, ticket shard.Ticket) shard.Decision {
			m.Wait("a", ticket)
			m.SetDeadline("a", now.Mono+time.Hour)
			return shard.Decision{}
		}, nil)
		loading := shardtest.New(1)
		loading.FailReads(errors.New("no disk"))
		r.Lead(1, 1, loading)
		done := make(chan string)
		go func() { _, err := waiting.Wait(bg); done <- fmt.Sprint(protocol.CodeOf(err).Name()) }()
		synctest.Wait()
		r.Close()
		if got := <-done; got != "NOT_COORDINATOR" {
			t.Errorf("the waiter got %s", got)
		}
		wantCode(t, set(r, "a", 1), protocol.NotCoordinator)
		r.Lead(0, 9, p)
		wantCode(t, r.Await(bg, 0), protocol.NotCoordinator)
	})
}
