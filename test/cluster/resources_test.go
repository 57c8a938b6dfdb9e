package main

import (
	"slices"
	"strings"
	"testing"
)

func TestValuesReadsMetrics(t *testing.T) {
	const page = `# HELP go_goroutines Number of goroutines that currently exist.
# TYPE go_goroutines gauge
go_goroutines 47
go_goroutines_created_total 4711
process_resident_memory_bytes 6.5015808e+07
`
	got, err := values(strings.NewReader(page), "process_resident_memory_bytes", "go_goroutines")
	if err != nil || !slices.Equal(got, []float64{65015808, 47}) {
		t.Errorf("got %v and %v", got, err)
	}
	if _, err := values(strings.NewReader(page), "go_goroutines", "go_threads"); err == nil || !strings.Contains(err.Error(), "lacks go_threads") {
		t.Errorf("got %v", err)
	}
	if _, err := values(strings.NewReader("go_goroutines many\n"), "go_goroutines"); err == nil {
		t.Error("a value that is none was read")
	}
}
