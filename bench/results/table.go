package results

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The sides that have columns of their own; all others are references: floors, an echo, an older program.
const (
	Kafka    = "Kafka"
	Barnabas = "Barnabas"
)

// Table prints the set as a table in Markdown that can be read as it is: medians with the smallest and the largest
// sample, the ratio to Kafka, and what became of the goals. A ratio is marked with ~ where samples overlap or are few.
func (s *Set) Table(out io.Writer) error {
	if _, err := io.WriteString(out, s.head()); err != nil {
		return err
	}
	rows := [][]string{{"scenario", "measure", Kafka, Barnabas, "ratio", "references", "goals"}}
	last := ""
	for _, r := range s.Results {
		name := r.Scenario
		if name == last {
			name = ""
		}
		last = r.Scenario
		rows = append(rows, []string{name, r.measure(), r.cell(Kafka), r.cell(Barnabas), r.ratio(), r.references(), r.goals()})
	}
	if err := write(out, rows); err != nil {
		return err
	}
	return s.states(out)
}

// head tells how each run was made, what they have in common, and in what they differ.
func (s *Set) head() string {
	var text strings.Builder
	for _, run := range s.Runs {
		fmt.Fprintf(&text, "%s, commit %s: %s\n", run.Started, run.Versions["commit"], run.Command)
		if limits := run.limits(); limits != "" {
			fmt.Fprintf(&text, "no claim: %s\n", limits)
		}
	}
	var differences []string
	for _, a := range s.attributes() {
		switch {
		case len(a.values) > 1:
			differences = append(differences, a.name+": "+strings.Join(a.values, " / "))
		case a.name != "commit" && a.name != "warmed up": // they are with each run
			fmt.Fprintf(&text, "%s: %s\n", a.name, a.values[0])
		}
	}
	if len(differences) > 0 {
		fmt.Fprintf(&text, "\nThe runs differ in %s.\n", strings.Join(differences, "; "))
	}
	text.WriteByte('\n')
	return text.String()
}

// limits says why nothing can be claimed of a run.
func (r Run) limits() string {
	var all []string
	if r.Quick {
		all = append(all, "one quick round")
	}
	if r.Scale != 1 && r.Scale != 0 {
		all = append(all, fmt.Sprintf("scale %g", r.Scale))
	}
	if r.Cold {
		all = append(all, "nothing was warmed up")
	}
	return strings.Join(all, ", ")
}

// attribute is something that runs may have in common.
type attribute struct {
	name   string
	values []string
}

// attributes are those of all runs, each with its different values.
func (s *Set) attributes() []attribute {
	values := map[string][]string{}
	note := func(name, value string) {
		if value != "" && !slices.Contains(values[name], value) {
			values[name] = append(values[name], value)
		}
	}
	for _, run := range s.Runs {
		note("machine", run.Machine)
		note("settings", run.Settings)
		note("warmed up", strconv.FormatBool(!run.Cold))
		for name, version := range run.Versions {
			note(name, version)
		}
	}
	var all []attribute
	for _, name := range slices.Sorted(maps.Keys(values)) {
		all = append(all, attribute{name, values[name]})
	}
	return all
}

// states tells what each scenario is and in which state it was measured.
func (s *Set) states(out io.Writer) error {
	told := map[string]bool{}
	fmt.Fprintln(out)
	for _, r := range s.Results {
		if told[r.Scenario] {
			continue
		}
		told[r.Scenario] = true
		if _, err := fmt.Fprintf(out, "- `%s`: %s\n", r.Scenario, s.about(r)); err != nil {
			return err
		}
	}
	return nil
}

// about tells what the scenario of a result is, how many rounds it had, and in which state.
func (s *Set) about(r *Result) string {
	rounds := 0
	for _, x := range r.Samples {
		rounds = max(rounds, len(x))
	}
	text := fmt.Sprintf("%s; rounds: %d", r.What, rounds)
	if state := s.worst(r.Scenario).String(); state != "" {
		text += "; " + state
	}
	return text
}

// worst is the state of the measure of a scenario that had most rounds above the threshold, or most that was dirty: some
// scenarios have rounds of several kinds.
func (s *Set) worst(scenario string) State {
	var worst State
	read := int64(0)
	for _, r := range s.Results {
		if r.Scenario != scenario {
			continue
		}
		x := r.State
		read = max(read, x.Read)
		if worst.Rounds == 0 || x.Above > worst.Above || x.Above == worst.Above && x.Dirty > worst.Dirty {
			worst = x
		}
	}
	worst.Read = read
	return worst
}

func (r *Result) measure() string {
	if r.Unit == "" {
		return r.Measure
	}
	return r.Measure + ", " + r.Unit
}

// cell is a side's median with its bounds, as "412 (390–440)".
func (r *Result) cell(side string) string {
	if len(r.Samples[side]) == 0 {
		return ""
	}
	if len(r.Samples[side]) == 1 {
		return number(r.Median(side))
	}
	low, high := r.Bounds(side)
	return fmt.Sprintf("%s (%s–%s)", number(r.Median(side)), number(low), number(high))
}

// ratio is Barnabas to Kafka.
func (r *Result) ratio() string {
	x, ok := Goal{Of: Barnabas, To: Kafka}.ratio(r)
	switch {
	case !ok:
		return ""
	case math.IsInf(x.median, 1):
		return "none, Kafka is 0"
	case !r.clear(Barnabas, Kafka):
		return number(x.median) + " ~"
	}
	return number(x.median)
}

func (r *Result) references() string {
	var cells []string
	for _, side := range r.Sides {
		if side != Kafka && side != Barnabas {
			cells = append(cells, side+" "+r.cell(side))
		}
	}
	return strings.Join(cells, ", ")
}

// goals tells each goal and what became of it.
func (r *Result) goals() string {
	var cells []string
	for _, g := range r.Goals {
		if verdict := g.verdict(r); verdict != "" {
			cells = append(cells, verdict)
		}
	}
	return strings.Join(cells, "; ")
}

// number has three significant digits, or all that are before the point.
func number(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x >= 1e6:
		return number(x/1e6) + "M"
	}
	return strconv.FormatFloat(x, 'f', max(0, 2-int(math.Floor(math.Log10(math.Abs(x))))), 64)
}

// write prints rows with aligned columns; the first is the heading.
func write(out io.Writer, rows [][]string) error {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString("| " + cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)) + " ")
		}
		line.WriteString("|\n")
		if n == 0 {
			for _, width := range widths {
				line.WriteString("|" + strings.Repeat("-", width+2))
			}
			line.WriteString("|\n")
		}
		if _, err := io.WriteString(out, line.String()); err != nil {
			return err
		}
	}
	return nil
}
