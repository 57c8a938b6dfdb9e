package results

import (
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

func example() *Set {
	s := &Set{Runs: []Run{{Started: "today", Command: "go run ./bench", Machine: "2 cores", Versions: map[string]string{Kafka: "4.4.0", "commit": "1a2b3c"}}}}
	cpu := Result{Scenario: "p1k", What: "1 KiB <each>", Measure: "CPU", Unit: "s/GB", Scale: 1, Goals: []Goal{
		{Of: Barnabas, To: Kafka, AtMost: 0.45}, {Of: Barnabas, To: "append", AtMost: 1.3}, {Of: Barnabas, To: Kafka, Above: "append", AtMost: 0.1},
	}}
	s.Add(cpu, Kafka, 2, 3, 2.5)
	s.Add(cpu, Barnabas, 0.9, 1.1, 1)
	s.Add(cpu, "append", 0.7, 0.6, 0.8)
	rate := Result{Scenario: "p1k", What: "1 KiB <each>", Scale: 1, Measure: "rate", Unit: "MB/s", More: true, Goals: []Goal{{Of: Barnabas, To: Kafka, AtLeast: 1.8}, {Of: Barnabas, AtLeast: 450}}}
	s.Add(rate, "append", 600)
	s.Add(rate, Barnabas, 500)
	s.Add(rate, Kafka, 400)
	return s
}

func TestTable(t *testing.T) {
	var out strings.Builder
	if err := example().Table(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| p1k      | CPU, s/GB  | 2.50 (2.00–3.00) | 1.00 (0.900–1.10) | 0.400  | append 0.700 (0.600–0.800) |",
		"| ≤ 0.45: met ~; 1.43 of append ≤ 1.3: missed ~; 0.167 of Kafka above append ≤ 0.1: missed ~ |",
		"| 1.25 ~ | append 600 ", "≥ 1.8: too few rounds; ≥ 450 MB/s: too few rounds", "- `p1k`: 1 KiB <each>; rounds: 3", "Kafka: 4.4.0", "today, commit 1a2b3c: go run ./bench\nKafka: 4.4.0\nmachine: 2 cores\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

func TestTheWorstStateIsTold(t *testing.T) {
	s := &Set{}
	for _, dirty := range []int64{500e6, 4000e6, 3000e6, 100e6} { // the last round of the last side was harmless
		state := State{Rounds: 1, Dirty: dirty, Threshold: 2000e6}
		if dirty > state.Threshold {
			state.Above = 1
		}
		s.Add(Result{Scenario: "p1k", Measure: "CPU", State: state}, Kafka, 1)
		s.Add(Result{Scenario: "p1k", Measure: "rate", State: state}, Kafka, 1)
	}
	s.Add(Result{Scenario: "c1k", Measure: "CPU", State: State{Rounds: 1, Read: 5e6}}, Kafka, 1)
	s.Add(Result{Scenario: "start", Measure: "start"}, Kafka, 1)
	s.Merge(&Set{Results: []*Result{{Scenario: "p1k", Measure: "CPU", State: State{Rounds: 2, Dirty: 1e6, Threshold: 2000e6}, Sides: []string{Kafka, Barnabas}}}})
	for scenario, want := range map[string]string{
		"p1k": "above the threshold of write-back in 2 of 6 rounds of all sides (at most 4000 MB dirty, threshold 2000 MB)",
		"c1k": "below the threshold of write-back (at most 0 MB dirty, threshold 0 MB); at most 5.0 MB read from a disk in a round", "start": "",
	} {
		if got := s.worst(scenario).String(); got != want {
			t.Errorf("%s: %s", scenario, got)
		}
	}
}

func TestOverlapIsMarked(t *testing.T) {
	r := &Result{Sides: []string{Kafka, Barnabas}, Samples: map[string][]float64{Kafka: {2, 3, 3}, Barnabas: {1, 1, 2.5}}}
	if r.clear(Kafka, Barnabas) || !strings.HasSuffix(r.ratio(), "~") {
		t.Error("overlapping samples count as clear")
	}
	r.Samples[Barnabas] = []float64{4, 5, 6, 7}
	if !r.clear(Kafka, Barnabas) || r.Median(Barnabas) != 5.5 || r.ratio() != "1.83" {
		t.Errorf("median %v, ratio %s", r.Median(Barnabas), r.ratio())
	}
	r.Samples[Kafka] = []float64{2, 3}
	if r.clear(Kafka, Barnabas) || r.ratio() != "2.20 ~" {
		t.Error("two rounds count as clear")
	}
}

func TestVerdicts(t *testing.T) {
	half, excess := Goal{Of: Barnabas, To: Kafka, AtMost: 0.5}, Goal{Of: Barnabas, To: Kafka, Above: "echo", AtMost: 0.5}
	least, limit := Goal{Of: Barnabas, To: Kafka, AtLeast: 2}, Goal{Of: Barnabas, AtMost: 40}
	for want, c := range map[string]struct {
		goal                  Goal
		kafka, barnabas, echo []float64
	}{
		"≤ 0.5: met":            {half, []float64{4, 4, 5}, []float64{1, 1, 2}, nil},
		"≤ 0.5: met ~":          {half, []float64{4, 4, 5}, []float64{1, 1, 3}, nil}, // 3 / 4 is too much
		"≤ 0.5: missed":         {half, []float64{4, 4, 5}, []float64{3, 3, 4}, nil},
		"≤ 0.5: missed ~":       {half, []float64{4, 4, 5}, []float64{2, 3, 4}, nil}, // 2 / 5 would do
		"≤ 0.5: too few rounds": {half, []float64{4, 4, 4}, []float64{1, 1}, nil},
		"≥ 2: met":              {least, []float64{1, 1, 1}, []float64{2, 3, 3}, nil},
		"≥ 2: missed":           {least, []float64{2, 2, 2}, []float64{2, 3, 3}, nil},
		"≤ 40 MB: met ~":        {limit, nil, []float64{30, 30, 50}, nil},
		"":                      {half, nil, []float64{1, 1, 1}, nil},
		"≤ 0.5: no ratio, Kafka is not above 0":                        {half, []float64{0, 0, 0}, []float64{1, 1, 1}, nil},
		"of Kafka above echo ≤ 0.5: no ratio, Kafka is not above echo": {excess, []float64{1, 1, 1}, []float64{1, 1, 1}, []float64{2, 2, 2}},
		"0.250 of Kafka above echo ≤ 0.5: met":                         {excess, []float64{5, 5, 5}, []float64{2, 2, 2}, []float64{1, 1, 1}},
		"0 of Kafka above echo ≤ 0.5: met ~":                           {excess, []float64{5, 5, 5}, []float64{0.5, 0.5, 4}, []float64{1, 1, 1}},
	} {
		r := &Result{Unit: "MB", Samples: map[string][]float64{Kafka: c.kafka, Barnabas: c.barnabas, "echo": c.echo}}
		if got := c.goal.verdict(r); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.0831: "0.0831", 0.5: "0.500", 1.234: "1.23", 45.67: "45.7", 123.4: "123", 762568: "762568", 2.1e6: "2.10M"} {
		if got := number(x); got != want {
			t.Errorf("%v is %q", x, got)
		}
	}
}

func TestRunsThatDiffer(t *testing.T) {
	s, other := example(), example()
	other.Runs[0].Versions["commit"], s.Runs[0].Versions["commit"] = "new", "old"
	other.Runs[0].Cold, other.Runs[0].Started = true, "yesterday"
	if err := s.Merge(other); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := s.Table(&out); err != nil || !strings.Contains(out.String(), "The runs differ in commit: old / new; warmed up: true / false.") ||
		!strings.Contains(out.String(), "no claim: nothing was warmed up") {
		t.Errorf("%v\n%s", err, out.String())
	}
	other.Runs[0].Started = "tomorrow"
	for _, r := range other.Results {
		r.Scale = 0.2
	}
	if err := s.Merge(other); err == nil || !strings.Contains(err.Error(), "scale") || len(s.Runs) != 2 {
		t.Error("loads of different sizes were pooled")
	}
	for _, r := range other.Results {
		r.Scale, r.What = 1, "2 KiB"
	}
	if err := s.Merge(other); err == nil || !strings.Contains(err.Error(), "2 KiB") {
		t.Error("different loads of one name were pooled")
	}
}

func TestFilesAreMerged(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	other := example()
	other.Runs[0].Started = "yesterday"
	other.Results = other.Results[1:]
	other.Add(Result{Scenario: "c1k", Measure: "CPU"}, Kafka, 1)
	if err := errors.Join(example().Write(a), other.Write(b)); err != nil {
		t.Fatal(err)
	}
	s, err := Read(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Runs) != 2 || len(s.Results) != 3 || len(s.Results[0].Samples[Kafka]) != 3 || len(s.Results[1].Samples[Kafka]) != 2 {
		t.Errorf("%+v", s)
	}
	if len(s.Results[0].Goals) != 3 || s.Results[1].Unit != "MB/s" || !s.Results[1].More {
		t.Errorf("%+v", s.Results[0])
	}
	if _, err := Read(a, b, a); err == nil {
		t.Error("a run counts twice")
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there was read")
	}
}

func TestPlotIsXML(t *testing.T) {
	var out strings.Builder
	if err := example().Plot(&out, "A & B"); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(strings.NewReader(out.String()))
	bars := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, out.String())
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "line" {
			bars++
		}
	}
	if bars != 6 {
		t.Errorf("%d bars for 6 medians", bars)
	}
	for _, want := range []string{"Kafka: 4.4.0", "today, commit 1a2b3c: go run ./bench", "2 cores", ">≤ 0.45: met ~<", "(more is better)", "(× 0.400)", ">append<"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if goals := strings.Count(out.String(), `stroke-width="2"`); goals != 4 { // one of the five lies beyond all bars
		t.Errorf("%d marks of goals", goals)
	}
}
