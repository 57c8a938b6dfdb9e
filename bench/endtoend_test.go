package main

import (
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/perf"
)

// TestQuantiles: one that fewer than ten samples lie beyond is left out.
func TestQuantiles(t *testing.T) {
	for records, last := range map[int]string{10: "", 20: "x p50", 999: "x p90", 1000: "x p99", 10_000: "x p99.9", 100_000: "x p99.99"} {
		var m perf.Measured
		for range records {
			m.Add(time.Millisecond, 1)
		}
		told := quantiles("x", &m, nil)
		if last == "" && len(told) != 0 || last != "" && (len(told) == 0 || told[len(told)-1].name != last) {
			t.Errorf("of %d records %v is told, and %q should be the last", records, told, last)
		}
	}
}
