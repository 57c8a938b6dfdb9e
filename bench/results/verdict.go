package results

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// enough is how many rounds a side needs before anything is said of the difference to another.
const enough = 3

// ratio is a goal's ratio in a result: that of the medians, and the least and the most that samples allow. It is infinite
// where what it is divided by is not above 0.
type ratio struct{ median, low, high float64 }

// ratio returns the goal's ratio, and whether all of its sides were measured.
func (g Goal) ratio(r *Result) (ratio, bool) {
	for _, side := range g.sides() {
		if len(r.Samples[side]) == 0 {
			return ratio{}, false
		}
	}
	low, high := r.Bounds(g.Of)
	if g.To == "" {
		return ratio{r.Median(g.Of), low, high}, true
	}
	lowTo, highTo := r.Bounds(g.To)
	above := r.Median(g.Above)
	lowAbove, highAbove := r.Bounds(g.Above)
	return ratio{
		median: quotient(r.Median(g.Of)-above, r.Median(g.To)-above),
		low:    quotient(low-highAbove, highTo-lowAbove), high: quotient(high-lowAbove, lowTo-highAbove),
	}, true
}

// sides are those that a goal needs.
func (g Goal) sides() []string {
	sides := []string{g.Of}
	for _, side := range []string{g.To, g.Above} {
		if side != "" {
			sides = append(sides, side)
		}
	}
	return sides
}

// quotient is infinite where there is nothing to divide by. What is below the reference counts as nothing.
func quotient(of, to float64) float64 {
	if to <= 0 {
		return math.Inf(1)
	}
	return max(of, 0) / to
}

// met reports whether a ratio is what it should be.
func (g Goal) met(x float64) bool {
	return (g.AtMost == 0 || x <= g.AtMost) && (g.AtLeast == 0 || x >= g.AtLeast)
}

// verdict tells a goal and what became of it, as "≤ 0.45: met", or "" where a side was not measured. It is marked with ~
// where some samples of the sides would say otherwise, and there is none for few rounds.
func (g Goal) verdict(r *Result) string {
	x, ok := g.ratio(r)
	if !ok {
		return ""
	}
	text := g.text(r.Unit)
	if math.IsInf(x.median, 1) {
		reference := "0"
		if g.Above != "" {
			reference = g.Above
		}
		return fmt.Sprintf("%s: no ratio, %s is not above %s", text, g.To, reference)
	}
	if g.To != "" && (g.Above != "" || g.To != Kafka) {
		text = number(x.median) + " " + text
	}
	rounds := len(r.Samples[g.Of])
	for _, side := range g.sides() {
		rounds = min(rounds, len(r.Samples[side]))
	}
	if rounds < enough {
		return text + ": too few rounds"
	}
	verdict := ": missed"
	if g.met(x.median) {
		verdict = ": met"
	}
	if g.met(x.low) != g.met(x.median) || g.met(x.high) != g.met(x.median) {
		verdict += " ~"
	}
	return text + verdict
}

// text is what should be, as "≤ 0.45", "of floor ≤ 1.3" or "≤ 170 MB".
func (g Goal) text(unit string) string {
	bound := "≥ " + strconv.FormatFloat(g.AtLeast, 'f', -1, 64)
	if g.AtMost > 0 {
		bound = "≤ " + strconv.FormatFloat(g.AtMost, 'f', -1, 64)
	}
	switch {
	case g.To == "":
		return strings.TrimSpace(bound + " " + unit)
	case g.Above != "":
		return fmt.Sprintf("of %s above %s %s", g.To, g.Above, bound)
	case g.To != Kafka:
		return fmt.Sprintf("of %s %s", g.To, bound)
	}
	return bound
}
