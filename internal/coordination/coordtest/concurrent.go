package coordtest

import (
	"errors"
	"strconv"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/coordination"
)

var concurrentCases = []testCase{
	{"compare and set loses no update", func(e *env) {
		const workers, rounds = 6, 20
		e.create(e.open(), "/counter", "0")
		var wg sync.WaitGroup
		for range workers {
			s := e.open()
			wg.Go(func() {
				for range rounds {
					if err := increment(e, s); err != nil {
						e.Errorf("increment: %v", err)
						return
					}
				}
			})
		}
		wg.Wait()
		s := e.open()
		e.sync(s)
		e.equal("version", e.holds(s, "/counter", strconv.Itoa(workers*rounds)).Version, int32(workers*rounds))
	}},
	{"sequence numbers are given once", func(e *env) {
		const workers, rounds = 6, 20
		e.create(e.open(), "/q", "")
		var wg sync.WaitGroup
		for range workers {
			s := e.open()
			wg.Go(func() {
				for range rounds {
					_, _, err := s.Create(e.ctx, "/q/", nil, coordination.CreateOptions{Sequential: true})
					if err != nil {
						e.Errorf("create: %v", err)
					}
				}
			})
		}
		wg.Wait()
		s := e.open()
		e.sync(s)
		names := e.children(s, "/q")
		e.equal("number", len(names), workers*rounds)
		e.equal("last", names[len(names)-1], "0000000119")
	}},
	{"transactions are seen whole", func(e *env) {
		a, b := e.open(), e.open()
		e.create(a, "/x", "")
		e.create(a, "/y", "")
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range int32(200) {
				if _, err := a.Txn(e.ctx, coordination.Set("/x", nil, i), coordination.Set("/y", nil, i)); err != nil {
					e.Errorf("txn: %v", err)
				}
			}
		}()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			before := e.stat(b, "/x").Version
			if after := e.stat(b, "/y").Version; after < before {
				e.Fatalf("y has version %d after x had %d", after, before)
			}
		}
	}},
	{"one session, many callers", func(e *env) {
		s := e.open()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				path := "/n" + strconv.Itoa(i)
				if _, _, err := s.Create(e.ctx, path, []byte(path), persistent); err != nil {
					e.Errorf("create: %v", err)
				}
				if data, _, err := s.Get(e.ctx, path); err != nil || string(data) != path {
					e.Errorf("get: %q, %v", data, err)
				}
			})
		}
		wg.Wait()
		e.equal("children", len(e.children(s, "/")), 100)
	}},
}

// increment adds one to the counter, however often somebody else is faster.
func increment(e *env, s coordination.Session) error {
	for {
		data, stat, err := s.Get(e.ctx, "/counter")
		if err != nil {
			return err
		}
		value, err := strconv.Atoi(string(data))
		if err != nil {
			return err
		}
		_, err = s.Set(e.ctx, "/counter", []byte(strconv.Itoa(value+1)), stat.Version)
		if !errors.Is(err, coordination.ErrBadVersion) {
			return err
		}
	}
}
