package sim

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/leaktest"
)

var (
	firstSeed = flag.Uint64("seed", 1, "the first seed")
	seedCount = flag.Int("seeds", 12, "how many seeds are run")
	workers   = flag.Int("workers", 1, "how many processes share the seeds")
	onlyKind  = flag.String("only", "", "the one kind of faults that there are; all kinds are in plan.go")
	replicas  = flag.Int("replicas", 3, "replicas of each partition; with 1 nothing is replicated")
	journalTo = flag.String("journal", "", "file for what everybody says during the run of one seed")
	totalsTo  = flag.String("totals", "", "file for the counts of all seeds, as JSON")
)

// TestMain prepares for runs that can be repeated: one thread, so that goroutines wake in one order, and collections
// of garbage between the runs only, where they change nothing.
func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	runtime.MemProfileRate = 0
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(2 << 30)
	leaktest.Main(m)
}

// TestSeeds runs clusters through the faults of many seeds.
func TestSeeds(t *testing.T) {
	if *workers > 1 {
		shareSeeds(t)
		return
	}
	totals := map[string]int{}
	for seed := *firstSeed; seed < *firstSeed+uint64(*seedCount); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := runSeed(t, seed, openJournal(t))
			report(t, seed, r)
			for name, n := range r.counts {
				totals[name] += n
			}
			totals["seeds"]++
			totals["virtual seconds"] += int(r.took.Seconds())
		})
	}
	writeTotals(t, totals)
}

// runSeed runs one seed in a bubble.
func runSeed(t *testing.T, seed uint64, journal io.Writer) (r result) {
	cryptotest.SetGlobalRandom(t, seed)
	var packets atomic.Int64
	defer watch(seed, &packets)()
	synctest.Test(t, func(*testing.T) { r = run(seed, *onlyKind, adjust, journal, &packets) })
	runtime.GC()
	return r
}

// watch ends the process, with all stacks, where the virtual clock stands still: somebody spins, or waits for a
// mutex whose holder sleeps.
func watch(seed uint64, packets *atomic.Int64) (stop func()) {
	const patience = 2 * time.Minute
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(patience)
		defer ticker.Stop()
		for last := int64(-1); ; {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			now := packets.Load()
			if now == last {
				debug.SetTraceback("all")
				panic(fmt.Sprintf("seed %d: the virtual clock has stood still for %v, after %d packets", seed, patience, now))
			}
			last = now
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// openJournal is the file of the flag.
func openJournal(t *testing.T) io.Writer {
	if *journalTo == "" {
		return nil
	}
	f, err := os.Create(*journalTo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// adjust applies the flags to a plan.
func adjust(p *plan) {
	if *replicas == p.replicas {
		return
	}
	p.replicas = *replicas
	p.topic = [][2]string{{"min.insync.replicas", "1"}, {"segment.ms", "3000"}}
	p.properties = append(p.properties, "offsets.topic.replication.factor=1", "min.insync.replicas=1")
}

// report fails the test where a rule was broken, and says how to see it again.
func report(t *testing.T, seed uint64, r result) {
	t.Helper()
	t.Log(table(r.counts))
	t.Logf("%8v virtual", r.took.Round(time.Millisecond))
	if len(r.violations) == 0 {
		return
	}
	for _, v := range r.violations {
		t.Error(v)
	}
	t.Errorf("replay: go test ./internal/sim -run TestSeeds -seed %d -seeds 1 -v -journal /tmp/journal", seed)
}

// table lists counts.
func table(counts map[string]int) string {
	var s strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&s, "\n%10d %s", counts[name], name)
	}
	return s.String()
}

func writeTotals(t *testing.T, totals map[string]int) {
	if *totalsTo == "" {
		return
	}
	b, err := json.Marshal(totals)
	if err == nil {
		err = os.WriteFile(*totalsTo, b, 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}
