//go:build planted

package sim

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/planted"
)

// TestPlantedBugsAreFound runs seeds with each bug until one fails, in processes of their own, since a process has
// one bug. Two need one story and hardly anything else, so their seeds have the faults that tell it.
func TestPlantedBugsAreFound(t *testing.T) {
	for _, bug := range []struct {
		name  planted.Bug
		only  string // the kind of faults; "" is all of them
		seeds int
	}{
		{planted.EarlyAck, "", 50}, {planted.WatermarkCut, "", 100}, {planted.SameEpoch, "", 100},
		{planted.OldLife, "old life", 100}, {planted.StaleEligible, "", 300}, {planted.OpenShard, "coordinators fail", 100},
	} {
		t.Run(string(bug.name), func(t *testing.T) {
			t.Parallel()
			last := *firstSeed + uint64(bug.seeds) - 1
			for seed := *firstSeed; seed <= last; seed += plantedPortion {
				count := min(plantedPortion, last-seed+1)
				if found, output := findBug(t, bug.name, bug.only, seed, count); found > 0 {
					t.Logf("it took %d seeds; seed %d says:\n%.2000s", found-*firstSeed+1, found, output)
					return
				}
			}
			t.Errorf("%d seeds have not found it", bug.seeds)
		})
	}
}

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
