package cluster

import "time"

// Figure is one result of one side in one round.
type Figure struct {
	// Name says what was measured, Unit in what; "" is a count.
	Name, Unit string
	// More says that more is better.
	More  bool
	Value float64
	// AtLeast and AtMost are what the ratio to Kafka's should be; 0 where there is no such goal.
	AtLeast, AtMost float64
}

func seconds(name string, d time.Duration) Figure {
	return Figure{Name: name, Unit: "s", Value: d.Seconds()}
}

func count(name string, n int64) Figure { return Figure{Name: name, Value: float64(n)} }
