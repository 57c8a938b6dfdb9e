package logdir

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// promise is what a broker has answered: partitions that exist, and records in each.
type promise struct {
	appended map[protocol.TopicPartition][]string // acknowledged
	synced   map[protocol.TopicPartition]int      // how many of them are flushed
	deleted  []protocol.TopicPartition
	quiet    bool // what happens now is another test's story
}

func (p *promise) copy() promise {
	c := promise{map[protocol.TopicPartition][]string{}, map[protocol.TopicPartition]int{}, slices.Clone(p.deleted), false}
	for tp, values := range p.appended {
		c.appended[tp] = slices.Clone(values)
		c.synced[tp] = p.synced[tp]
	}
	return c
}

// crashed is a file system as a crash left it, and what had been promised until then.
type crashed struct {
	files   *vfs.Memory
	power   bool
	promise promise
	where   string
}

// crashWorld runs a story on two directories and takes clones before every operation that changes the
// disk: one as the kill of the process leaves it, and some as a power cut may.
func crashWorld(t *testing.T, story func(w *world, p *promise)) []crashed {
	m := vfs.NewMemory()
	f := vfs.NewFaulty(m)
	w := newWorld(t, f, "/a", "/b")
	p := &promise{appended: map[protocol.TopicPartition][]string{}, synced: map[protocol.TopicPartition]int{}}
	var mu sync.Mutex // a clean stop closes several logs at a time
	var clones []crashed
	f.BeforeMutation(func(n int64, op vfs.Op, path string) {
		mu.Lock()
		defer mu.Unlock()
		if p.quiet {
			return
		}
		where := fmt.Sprintf("before operation %d, %s %s", n, op, path)
		clones = append(clones, crashed{m.CrashClone(rand.New(rand.NewPCG(0, uint64(n))), 1), false, p.copy(), where + " (kill)"})
		for seed, keep := range []float64{0, 0.5, 0.8} {
			rng := rand.New(rand.NewPCG(uint64(seed), uint64(n)))
			clones = append(clones, crashed{m.CrashClone(rng, keep), true, p.copy(), fmt.Sprintf("%s (power cut %d)", where, seed)})
		}
	})
	story(w, p)
	return clones
}

// check starts a broker on what is left and holds it to what was promised.
func (c *crashed) check(t *testing.T) {
	t.Helper()
	w := newWorld(t, c.files, "/a", "/b")
	if c.power {
		w.options.BootID = "boot-2"
	}
	s, err := Open(w.options)
	if err != nil {
		t.Fatalf("%s: %v", c.where, err)
	}
	defer kill(s)
	must(t, s.Load(t.Context(), w.all))
	if offline := s.Offline(); len(offline) > 0 {
		t.Errorf("%s: offline: %v, %v", c.where, offline, s.Err(offline[0]))
	}
	for tp, want := range c.promise.appended {
		l := s.Get(tp)
		if l == nil {
			t.Errorf("%s: %s is gone", c.where, tp)
			continue
		}
		got := abridged(values(t, l))
		if len(got) > 0 && got[0] == "(deleted)" { // DeleteRecords may be undone
			got = got[1:]
		}
		least := len(want)
		if c.power {
			least = c.promise.synced[tp]
		}
		if len(got) < least || !slices.Equal(got[:min(len(got), len(want))], want[:min(len(got), len(want))]) {
			t.Errorf("%s: %s holds %v, want at least %d of %v", c.where, tp, got, least, want)
		}
		if hw, end := l.HighWatermark(), l.EndOffset(); hw > end {
			t.Errorf("%s: high watermark %d above the end %d", c.where, hw, end)
		}
	}
	for _, tp := range c.promise.deleted {
		if s.Get(tp) != nil {
			t.Errorf("%s: %s is back", c.where, tp)
		}
	}
}

// abridged shortens long values, for readable errors.
func abridged(values []string) []string {
	for i, value := range values {
		values[i] = value[:min(len(value), 10)]
	}
	return values
}

func (w *world) makeBoth(t *testing.T, s *Set, p *promise, topic string) {
	for i := range int32(2) {
		tp := partition(topic, i)
		w.make(t, s, tp)
		p.appended[tp] = nil
	}
}

func (p *promise) append(t *testing.T, s *Set, tp protocol.TopicPartition, values ...string) {
	must(t, appendValues(s.Get(tp), values...))
	p.appended[tp] = append(p.appended[tp], abridged(values)...)
}

func (p *promise) flush(t *testing.T, s *Set, tp protocol.TopicPartition) {
	must(t, s.Get(tp).Flush())
	p.synced[tp] = len(p.appended[tp])
}

func TestCrashAtEveryOperation(t *testing.T) {
	long := strings.Repeat("long ", 2000) // several pages
	clones := crashWorld(t, func(w *world, p *promise) {
		s := w.start(t)
		w.makeBoth(t, s, p, "t")
		w.makeBoth(t, s, p, "gone")
		t0, t1 := partition("t", 0), partition("t", 1)
		must(t, appendValues(s.Get(t0), "(deleted)"))
		p.append(t, s, t0, "b")
		p.append(t, s, t1, long)
		p.append(t, s, partition("gone", 0), "x", long)
		p.flush(t, s, t0)
		must(t, s.Checkpoint())
		p.append(t, s, t0, "c", long)
		must(t, s.Get(t0).AdvanceStart(1))
		must(t, s.Checkpoint())
		p.append(t, s, t0, "d")

		both := []protocol.TopicPartition{partition("gone", 0), partition("gone", 1)}
		for _, tp := range both {
			delete(p.appended, tp) // it may be there or not until Delete has returned
		}
		must(t, s.Delete(both...))
		p.deleted = append(p.deleted, both...)
		s.mu.Lock()
		for i := range s.mu.deletions {
			s.mu.deletions[i].due = s.mu.deletions[i].due.Add(-w.topic.FileDeleteDelay)
		}
		s.mu.Unlock()
		if next := s.removeDue(t.Context()); next != forever {
			t.Errorf("deleted folders are left for %s", next)
		}
		p.append(t, s, t1, "e")
		stop(t, s)
		p.synced[t0], p.synced[t1] = len(p.appended[t0]), len(p.appended[t1])

		s = w.start(t) // and once more, from a clean stop
		p.append(t, s, t0, "f")
		p.flush(t, s, t0)
		must(t, s.Checkpoint())
		p.append(t, s, t0, long)
		stop(t, s)
		p.synced[t0] = len(p.appended[t0])
	})
	if len(clones) < 500 {
		t.Errorf("only %d crashes", len(clones))
	}
	for i := range clones {
		clones[i].check(t)
	}
}

// A stop with many changed logs syncs their volume once. Wherever it is cut short, the next start finds what was
// promised, and trusts nothing that was not synced.
func TestCrashInAStopWithManyLogs(t *testing.T) {
	const many = 2 * (syncedAlone + 1) // in two directories
	clones := crashWorld(t, func(w *world, p *promise) {
		p.quiet = true
		s := w.start(t)
		for i := range int32(many) {
			tp := partition("t", i)
			w.make(t, s, tp)
			p.append(t, s, tp, "a")
		}
		must(t, s.Checkpoint())
		p.quiet = false
		stop(t, s)
		for tp, values := range p.appended {
			p.synced[tp] = len(values)
		}
		s = w.start(t)
		p.append(t, s, partition("t", 0), "b")
		p.quiet = true
		stop(t, s)
	})
	if len(clones) < 4*many {
		t.Errorf("only %d crashes", len(clones))
	}
	for i := 0; i < len(clones); i += 3 { // each has many logs to look at; in the long run all kinds of crashes come
		clones[i].check(t)
	}
}
