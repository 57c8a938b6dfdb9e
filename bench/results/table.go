package results

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// The sides that have columns of their own; all others are references: floors, an echo, an older program.
const (
	Kafka    = "Kafka"
	Barnabas = "Barnabas"
)

// Table prints the set as a table in Markdown that can be read as it is: medians with the smallest and the largest
// sample, the ratio to Kafka, and what became of the goals. A ratio is marked with ~ where samples overlap.
func (s *Set) Table(out io.Writer) error {
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
	for _, run := range s.Runs {
		fmt.Fprintf(out, "%s: %s\n%s\n", run.Started, run.Command, run.Machine)
		for _, name := range slices.Sorted(maps.Keys(run.Versions)) {
			fmt.Fprintf(out, "%s: %s\n", name, run.Versions[name])
		}
		fmt.Fprintln(out)
	}
	if err := write(out, rows); err != nil {
		return err
	}
	return s.states(out)
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
		samples := 0
		for _, x := range r.Samples {
			samples = max(samples, len(x))
		}
		text := fmt.Sprintf("- `%s`: %s; rounds: %d", r.Scenario, r.What, samples)
		if state := s.worst(r.Scenario).String(); state != "" {
			text += "; " + state
		}
		if _, err := fmt.Fprintln(out, text); err != nil {
			return err
		}
	}
	return nil
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
	x, ok := Goal{Of: Barnabas, To: Kafka}.Ratio(r)
	if !ok {
		return ""
	}
	mark := ""
	if !r.Clear(Barnabas, Kafka) {
		mark = " ~"
	}
	return number(x) + mark
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

// goals tells each goal and what became of it, as "≤ 0.45: met".
func (r *Result) goals() string {
	var cells []string
	for _, g := range r.Goals {
		x, ok := g.Ratio(r)
		if !ok {
			continue
		}
		var text string
		switch {
		case g.AtMost > 0:
			text = "≤ " + number(g.AtMost)
		default:
			text = "≥ " + number(g.AtLeast)
		}
		if g.To == "" {
			text = strings.TrimSpace(text + " " + r.Unit)
		} else if g.Above != "" || g.To != Kafka {
			text = fmt.Sprintf("%s of %s %s", number(x), cmp.Or(above(g), g.To), text)
		}
		if g.Met(x) {
			text += ": met"
		} else {
			text += ": missed"
		}
		cells = append(cells, text)
	}
	return strings.Join(cells, "; ")
}

func above(g Goal) string {
	if g.Above == "" {
		return ""
	}
	return fmt.Sprintf("%s above %s", g.To, g.Above)
}

// number has three significant digits.
func number(x float64) string {
	switch {
	case x >= 1e7:
		return fmt.Sprintf("%.1fM", x/1e6)
	case x >= 1e6:
		return fmt.Sprintf("%.2fM", x/1e6)
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 0.1 || x == 0:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.2g", x)
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
