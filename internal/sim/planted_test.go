//go:build planted

package sim

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/planted"
)

// TestPlantedBugsAreFound runs seeds with each bug in a process of their own until one fails. The numbers are some
// ten times what it took when they were written. Two are not among them, since no plan aims at what they need:
// [planted.OldLife], a broker that loses its power and is back while a request of another one is on its way, and
// [planted.OpenShard], a coordinator that is killed between its start and the fetch of its follower.
func TestPlantedBugsAreFound(t *testing.T) {
	for _, bug := range []struct {
		name  planted.Bug
		seeds int
	}{
		{planted.EarlyAck, 10}, {planted.WatermarkCut, 40}, {planted.SameEpoch, 40}, {planted.StaleEligible, 40},
	} {
		t.Run(string(bug.name), func(t *testing.T) {
			for seed := range bug.seeds {
				run := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "TestSeeds", "-seed", strconv.Itoa(seed+1), "-seeds", "1")
				run.Env = append(os.Environ(), "BARNABAS_PLANTED="+string(bug.name))
				if output, err := run.CombinedOutput(); err != nil {
					t.Logf("seed %d found it: %s", seed+1, output)
					return
				}
			}
			t.Errorf("%d seeds have not found it", bug.seeds)
		})
	}
}
