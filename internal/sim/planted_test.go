//go:build planted

package sim

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/planted"
)

// TestPlantedBugsAreFound runs seeds with each bug until one fails, in processes of their own, since a process has
// one bug. The seeds have the kind of faults that tells the bug's story, or with -wide all kinds.
func TestPlantedBugsAreFound(t *testing.T) {
	for _, bug := range []struct {
		name planted.Bug
		kind string
		wide int // how many seeds of all kinds it may take
	}{
		{planted.EarlyAck, "followers lag", 100}, {planted.WatermarkCut, "leaders fail", 100}, {planted.SameEpoch, "bounce", 100},
		{planted.OldLife, "old life", 300}, {planted.StaleEligible, "eligible", 300}, {planted.OpenShard, "coordinators fail", 300},
	} {
		t.Run(string(bug.name), func(t *testing.T) {
			t.Parallel()
			kind, seeds := bug.kind, aimed
			if *wide {
				kind, seeds = "", bug.wide
			}
			last := *firstSeed + uint64(seeds) - 1
			for seed := *firstSeed; seed <= last; seed += plantedPortion {
				count := min(plantedPortion, last-seed+1)
				if found, output := findBug(t, bug.name, kind, seed, count); found > 0 {
					t.Logf("it took %d seeds; seed %d says:\n%.2000s", found-*firstSeed+1, found, output)
					return
				}
			}
			t.Errorf("%d seeds have not found it", seeds)
		})
	}
}

// aimed is how many seeds with its own kind of faults a bug may take.
const aimed = 20

var wide = flag.Bool("wide", false, "look for the planted bugs with all kinds of faults")

// plantedPortion is how many seeds one process runs with a bug.
const plantedPortion = 5

// failedSeed is how a run tells which seed failed.
var failedSeed = regexp.MustCompile(`--- FAIL: TestSeeds/seed_(\d+)`)

// findBug runs some seeds with a bug, and gives the first that fails, with what it says.
func findBug(t *testing.T, bug planted.Bug, only string, seed, count uint64) (found uint64, output []byte) {
	run := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-test.run", "^TestSeeds$", "-test.failfast", "-only", only,
		"-seed", strconv.FormatUint(seed, 10), "-seeds", strconv.FormatUint(count, 10), "-totals", filepath.Join(t.TempDir(), "totals"))
	run.Env = append(os.Environ(), "BARNABAS_PLANTED="+string(bug))
	output, err := run.CombinedOutput()
	if err == nil {
		return 0, nil
	}
	failed := failedSeed.FindSubmatch(output)
	if failed == nil {
		t.Fatalf("seeds from %d: %v\n%s", seed, err, output)
	}
	found, _ = strconv.ParseUint(string(failed[1]), 10, 64) // the expression takes digits only
	return found, output
}
