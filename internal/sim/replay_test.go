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

// TestReplay runs seeds twice: the journals must be the same, line by line.
func TestReplay(t *testing.T) {
	for seed := *firstSeed; seed < *firstSeed+uint64(*replays); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			var first, second bytes.Buffer
			runSeed(t, seed, &first)
			runSeed(t, seed, &second)
			if at, a, b := difference(first.String(), second.String()); at > 0 {
				t.Errorf("line %d was\n%s\nand is\n%s", at, a, b)
			}
		})
	}
}

// difference is the first line in which two journals differ, from 1; 0 where they do not. Lines of one instant are
// compared as a set.
func difference(first, second string) (at int, a, b string) {
	one, two := inOrder(first), inOrder(second)
	for i := range max(len(one), len(two)) {
		a, b = "(the end)", "(the end)"
		if i < len(one) {
			a = one[i]
		}
		if i < len(two) {
			b = two[i]
		}
		if a != b {
			return i + 1, a, b
		}
	}
	return 0, "", ""
}

// inOrder sorts the lines of each instant.
func inOrder(journal string) []string {
	lines := strings.Split(journal, "\n")
	slices.SortStableFunc(lines, strings.Compare)
	return lines
}
