// Package results keeps what a comparison has measured: samples by side and round, with goals for their ratios. It
// writes them as JSON, reads and merges such files, and prints them as a table and as a picture.
package results

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// Set is what one or more runs have measured.
type Set struct {
	// Runs say where and how; a merged set has several.
	Runs []Run `json:"runs"`
	// Results are in the order in which they were first measured.
	Results []*Result `json:"results"`
}

// Run is one run of the program.
type Run struct {
	Started string `json:"started"`
	Command string `json:"command"`
	// Machine is processor, memory, kernel and file system; Versions what was compared.
	Machine  string            `json:"machine"`
	Versions map[string]string `json:"versions"`
	// Settings are those of the servers that are not defaults, and the environment's part in them.
	Settings string `json:"settings,omitempty"`
	// Scale multiplied the sizes of the loads. Quick was for a look only, Cold without warming up.
	Scale float64 `json:"scale"`
	Quick bool    `json:"quick,omitempty"`
	Cold  bool    `json:"cold,omitempty"`
}

// Result is one measure of one scenario.
type Result struct {
	Scenario string `json:"scenario"`
	// What describes the scenario in a line.
	What  string `json:"what,omitempty"`
	State State  `json:"rounds,omitzero"`
	// Scale is that of the run.
	Scale float64 `json:"scale"`
	// Measure is what was measured, Unit its unit.
	Measure string `json:"measure"`
	Unit    string `json:"unit,omitempty"`
	// More says that more is better.
	More bool `json:"more,omitempty"`
	// Sides names those compared, in order; Samples has one value of each a round.
	Sides   []string             `json:"sides"`
	Samples map[string][]float64 `json:"samples"`
	Goals   []Goal               `json:"goals,omitempty"`
}

// State is what else mattered in the rounds of a result, those of all sides together: whether the kernel wrote meanwhile,
// and whether what was read came from a disk.
type State struct {
	// Rounds is how many there were, Above in how many of them more was dirty than makes the kernel write.
	Rounds int `json:"rounds"`
	Above  int `json:"above,omitempty"`
	// Dirty is how many bytes were dirty at most, Threshold how many were allowed to be in that round.
	Dirty     int64 `json:"dirty"`
	Threshold int64 `json:"threshold"`
	// Read is how many bytes a server read from a disk in a round, at most.
	Read int64 `json:"read,omitempty"`
}

// add takes further rounds in: the worst of all is kept.
func (s *State) add(other State) {
	s.Rounds, s.Above, s.Read = s.Rounds+other.Rounds, s.Above+other.Above, max(s.Read, other.Read)
	if other.Dirty > s.Dirty {
		s.Dirty, s.Threshold = other.Dirty, other.Threshold
	}
}

// String tells it in words; "" where nothing was noted.
func (s State) String() string {
	if s.Rounds == 0 {
		return ""
	}
	where := "below the threshold of write-back"
	if s.Above > 0 {
		where = fmt.Sprintf("above the threshold of write-back in %d of %d rounds of all sides", s.Above, s.Rounds)
	}
	text := fmt.Sprintf("%s (at most %d MB dirty, threshold %d MB)", where, s.Dirty/1e6, s.Threshold/1e6)
	if s.Read > 0 {
		text += fmt.Sprintf("; at most %.1f MB read from a disk in a round", float64(s.Read)/1e6)
	}
	return text
}

// Goal is what a ratio of two sides' medians should be, or one side's median where To is "".
//
//	(Of − Above) / (To − Above)
//
// AtMost and AtLeast bound it, 0 does not.
type Goal struct {
	Of      string  `json:"of"`
	To      string  `json:"to,omitempty"`
	Above   string  `json:"above,omitempty"`
	AtMost  float64 `json:"at_most,omitempty"`
	AtLeast float64 `json:"at_least,omitempty"`
}

// AtMost and AtLeast are goals for Barnabas: for its ratio to another side, or for its median where to is "".
func AtMost(x float64, to string) Goal { return Goal{Of: Barnabas, To: to, AtMost: x} }

// AtLeast is one where more is better; see [AtMost].
func AtLeast(x float64, to string) Goal { return Goal{Of: Barnabas, To: to, AtLeast: x} }

// find returns the result of a measure of a scenario, a new one where there is none.
func (s *Set) find(like Result) *Result {
	for _, r := range s.Results {
		if r.Scenario == like.Scenario && r.Measure == like.Measure {
			return r
		}
	}
	r := &like
	r.Sides, r.Samples, r.State = nil, map[string][]float64{}, State{}
	s.Results = append(s.Results, r)
	return r
}

// Add notes samples of a side. What it belongs to is told by like, whose sides and samples are not looked at.
func (s *Set) Add(like Result, side string, samples ...float64) {
	r := s.find(like)
	if !slices.Contains(r.Sides, side) {
		r.Sides = append(r.Sides, side)
		slices.SortFunc(r.Sides, compareSides)
	}
	r.Samples[side] = append(r.Samples[side], samples...)
	r.State.add(like.State)
}

// compareSides orders sides, whichever was measured first: Kafka, Barnabas, references.
func compareSides(a, b string) int {
	rank := func(side string) int {
		if i := slices.Index([]string{Kafka, Barnabas}, side); i >= 0 {
			return i
		}
		return 2
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// Merge adds what another set has: further results, and further samples of those that are here. It refuses a run that is
// here, whose samples would count twice, and samples of a scenario that was measured at another scale or was another one
// then, which are of another load.
func (s *Set) Merge(other *Set) error {
	for _, run := range other.Runs {
		if slices.ContainsFunc(s.Runs, func(own Run) bool { return own.Started == run.Started && own.Command == run.Command }) {
			return fmt.Errorf("the run of %s is there twice", run.Started)
		}
	}
	for _, r := range other.Results {
		for _, own := range s.Results {
			if own.Scenario == r.Scenario && own.Scale != r.Scale {
				return fmt.Errorf("%s was measured at scale %g and at scale %g: these are different loads", r.Scenario, own.Scale, r.Scale)
			}
			if own.Scenario == r.Scenario && own.What != r.What {
				return fmt.Errorf("%s was %q and %q: these are different loads", r.Scenario, own.What, r.What)
			}
		}
	}
	s.Runs = append(s.Runs, other.Runs...)
	for _, r := range other.Results {
		like := *r
		for _, side := range r.Sides {
			s.Add(like, side, r.Samples[side]...)
			like.State = State{} // it is that of all sides
		}
	}
	return nil
}

// Write writes the set as JSON.
func (s *Set) Write(path string) error {
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Read reads and merges files that Write has written.
func Read(paths ...string) (*Set, error) {
	all := &Set{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		one := &Set{}
		if err := json.Unmarshal(text, one); err != nil {
			return nil, fmt.Errorf("%s is no file of results: %w", path, err)
		}
		if err := all.Merge(one); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return all, nil
}

// Median is the middle sample of a side, or the mean of the two in the middle; 0 without samples.
func (r *Result) Median(side string) float64 {
	x := slices.Sorted(slices.Values(r.Samples[side]))
	if len(x) == 0 {
		return 0
	}
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// Bounds are the smallest and the largest sample of a side.
func (r *Result) Bounds(side string) (low, high float64) {
	x := r.Samples[side]
	if len(x) == 0 {
		return 0, 0
	}
	return slices.Min(x), slices.Max(x)
}

// clear reports whether each sample of one side beats each of the other's, in either direction, and whether there are
// enough: else the difference of the medians may be chance.
func (r *Result) clear(a, b string) bool {
	lowA, highA := r.Bounds(a)
	lowB, highB := r.Bounds(b)
	return min(len(r.Samples[a]), len(r.Samples[b])) >= enough && (highA < lowB || highB < lowA)
}
