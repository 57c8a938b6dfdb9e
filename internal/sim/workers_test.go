package sim

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// portion is how many seeds a process runs. It is small, so that all are busy until the end.
const portion = 20

// shareSeeds runs the seeds in processes of their own, since a run that can be repeated has only one thread.
func shareSeeds(t *testing.T) {
	portions := make(chan int)
	var running sync.WaitGroup
	var mu sync.Mutex
	totals := map[string]int{}
	dir := t.TempDir()
	for range *workers {
		running.Go(func() {
			for from := range portions {
				counts := runPortion(t, from, min(portion, *seedCount-from), filepath.Join(dir, strconv.Itoa(from)))
				mu.Lock()
				for name, n := range counts {
					totals[name] += n
				}
				mu.Unlock()
			}
		})
	}
	for from := 0; from < *seedCount; from += portion {
		portions <- from
	}
	close(portions)
	running.Wait()
	t.Log(table(totals))
	writeTotals(t, totals)
	if totals["seeds"] != *seedCount {
		t.Errorf("%d of %d seeds were run to their end", totals["seeds"], *seedCount)
	}
}

// runPortion runs seeds in one process and gives their counts.
func runPortion(t *testing.T, from, count int, totals string) (counts map[string]int) {
	seed := strconv.FormatUint(*firstSeed+uint64(from), 10)
	run := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSeeds$", "-test.timeout", "30m",
		"-seed", seed, "-seeds", strconv.Itoa(count), "-replicas", strconv.Itoa(*replicas), "-only", *onlyKind, "-totals", totals)
	if output, err := run.CombinedOutput(); err != nil {
		t.Errorf("seeds from %s: %v\n%s", seed, err, output)
	}
	b, err := os.ReadFile(totals)
	if err == nil {
		err = json.Unmarshal(b, &counts)
	}
	if err != nil {
		t.Errorf("seeds from %s have no counts: %v", seed, err)
	}
	return counts
}
