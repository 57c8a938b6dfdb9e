//go:build !race

// The race detector has goroutines wake in a random order, on purpose.

package sim

import (
	"bytes"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
)

var replays = flag.Int("replays", 3, "how many seeds are run twice")

// TestReplay runs seeds twice. Until the first fault the journals must be the same, line by line and to the nanosecond;
// how far they are the same behind it is told.
func TestReplay(t *testing.T) {
	whole := 0
	for seed := *firstSeed; seed < *firstSeed+uint64(*replays); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			var first, second bytes.Buffer
			runSeed(t, seed, &first)
			runSeed(t, seed, &second)
			one, two := inOrder(first.String()), inOrder(second.String())
			at := difference(one, two)
			fault := slices.IndexFunc(one, func(line string) bool { return strings.Contains(line, " FAULT: ") })
			switch {
			case at == len(one) && at == len(two):
				whole++
			case at <= fault:
				t.Errorf("line %d was\n%s\nand is\n%s", at+1, lineAt(one, at), lineAt(two, at))
			default:
				t.Logf("the same for %d of %d lines; then\n%s\nor\n%s", at, len(one), lineAt(one, at), lineAt(two, at))
			}
		})
	}
	t.Logf("%d of %d seeds have the same journal twice", whole, *replays)
}

// difference is the number of lines that two journals have in common from their start.
func difference(one, two []string) int {
	for at := range min(len(one), len(two)) {
		if one[at] != two[at] {
			return at
		}
	}
	return min(len(one), len(two))
}

func lineAt(lines []string, at int) string {
	if at < len(lines) {
		return lines[at]
	}
	return "(the end)"
}

// inOrder sorts the lines: those of one instant may come in any order.
func inOrder(journal string) []string {
	lines := strings.Split(journal, "\n")
	slices.Sort(lines)
	return lines
}
