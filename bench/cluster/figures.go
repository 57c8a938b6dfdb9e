package cluster

import (
	"time"

	"github.com/barnabas-mq/barnabas/bench/results"
)

// Figure is one result of one side in one round.
type Figure struct {
	// Name says what was measured, Unit in what; "" is a count.
	Name, Unit string
	// More says that more is better.
	More  bool
	Value float64
	// Goal is what it should be; the zero one where there is none.
	Goal results.Goal
}

// The names of the figures that have goals.
const (
	produceRate = "rate"
	brokerCPU   = "CPU of the brokers"
	latencyP50  = "end to end, p50"
	latencyP99  = "end to end, p99"
	inSyncFull  = "every in-sync set full"
	lastLeader  = "last new leader"
	processGone = "process gone"
)

// goals are what figures should be, by their names.
type goals map[string]results.Goal

func seconds(name string, d time.Duration) Figure {
	return Figure{Name: name, Unit: "s", Value: d.Seconds()}
}

func count(name string, n int64) Figure { return Figure{Name: name, Value: float64(n)} }
