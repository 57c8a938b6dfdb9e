package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/bench/results"
	"github.com/barnabas-mq/barnabas/bench/servers"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serveCommand { // the floor servers are this program
		if err := serveFloor(os.Args[2:]); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestScenarios runs scenarios of every kind for single brokers, tiny, on the sides that need no Java, and looks at what was
// written of them.
func TestScenarios(t *testing.T) {
	json, svg := filepath.Join(t.TempDir(), "json"), filepath.Join(t.TempDir(), "svg")
	err := command(context.Background(), []string{
		"-scenario", "p1k,p1k-lz4,c100,requests-1000,connections,log-size,fsync-64,start,recovery", "-sides", strings.Join([]string{results.Barnabas, floored, discard, echo}, ","),
		"-rounds", "1", "-scale", "0.0001", "-warmup=false", "-port", "20000", "-dir", t.TempDir(), "-json", json, "-svg", svg,
	})
	if err != nil {
		t.Fatal(err)
	}
	set, err := results.Read(json)
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]bool{}
	for _, r := range set.Results {
		if len(r.Samples[results.Barnabas]) != 1 {
			t.Errorf("%s, %s has %v", r.Scenario, r.Measure, r.Samples)
		}
		if r.Unit == "MB/s" || r.Unit == "records/s" || r.Unit == "requests/s" || r.Unit == "ms" {
			for side, x := range r.Samples {
				if x[0] <= 0 && !strings.HasPrefix(r.Measure, "generator") {
					t.Errorf("%s, %s of %s is %v", r.Scenario, r.Measure, side, x)
				}
			}
		}
		measured[r.Scenario] = true
	}
	if len(measured) != 9 {
		t.Errorf("measured only %v", measured)
	}
	if info, err := os.Stat(svg); err != nil || info.Size() == 0 {
		t.Errorf("picture: %v", err)
	}
	if err := command(context.Background(), []string{"report", json}); err != nil {
		t.Error(err)
	}
	if err := command(context.Background(), []string{"report", json, json}); err == nil {
		t.Error("a run counts twice")
	}
}

func TestDiskThatIsTooSmall(t *testing.T) {
	c := &comparison{place: &servers.Place{Dir: t.TempDir()}}
	if err := c.needDisk(1); err != nil {
		t.Error(err)
	}
	if err := c.needDisk(1 << 60); err == nil || !strings.Contains(err.Error(), c.place.Dir) {
		t.Errorf("%v", err)
	}
}

func TestCommandLine(t *testing.T) {
	names := map[string]bool{}
	for _, s := range scenarios() {
		if names[s.name] || s.what == "" || s.run == nil {
			t.Errorf("scenario %q is there twice, or incomplete", s.name)
		}
		names[s.name] = true
	}
	if core, err := choose("core"); err != nil || len(core) != 9 {
		t.Errorf("%d core loads, %v", len(core), err)
	}
	for _, bad := range [][]string{{"-scenario", "nothing"}, {"-rounds", "0"}, {"p1k"}, {"report"}, {"report", "/nowhere"}, {"-before", "/nowhere"}, {"-sides", "before"}} {
		if err := command(context.Background(), bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if _, err := parse([]string{"-sides", "Barnabas,append"}); err == nil || !strings.Contains(err.Error(), floored) {
		t.Errorf("a side that is not there: %v", err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("program", nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if o, err := parse([]string{"-before", "./program", "-sides", "before"}); err != nil || !filepath.IsAbs(o.before) {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := parse([]string{"-quick"}); err != nil || o.rounds != 1 || o.scale != 0.2 {
		t.Errorf("%+v, %v", o, err)
	}
}
