package sim

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

var (
	firstSeed = flag.Uint64("seed", 1, "the first seed")
	seedCount = flag.Int("seeds", 12, "how many seeds are run")
	replicas  = flag.Int("replicas", 3, "replicas of each partition; with 1 nothing is replicated")
	journalTo = flag.String("journal", "", "file for what everybody says during the run of one seed")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSeeds runs clusters through the faults of many seeds.
func TestSeeds(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+uint64(*seedCount); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			journal := openJournal(t)
			synctest.Test(t, func(t *testing.T) { check(t, seed, run(seed, adjust, journal)) })
		})
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

// check fails the test where a rule was broken, and says how to see it again.
func check(t *testing.T, seed uint64, r result) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(r.counts)) {
		t.Logf("%8d %s", r.counts[name], name)
	}
	t.Logf("%8v virtual", r.took.Round(time.Millisecond))
	if len(r.violations) == 0 {
		return
	}
	for _, v := range r.violations {
		t.Error(v)
	}
	t.Errorf("replay: go test ./internal/sim -run TestSeeds -seed %d -seeds 1 -v -journal /tmp/journal", seed)
}
