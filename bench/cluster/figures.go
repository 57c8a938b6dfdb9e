package cluster

import "time"

// Figure is one result of one side.
type Figure struct {
	// Name says what was measured, Unit in what; "" is a count.
	Name, Unit string
	// More says that more is better.
	More  bool
	Value float64
}

func seconds(name string, d time.Duration) Figure { return Figure{name, "s", false, d.Seconds()} }

func count(name string, n int64) Figure { return Figure{name, "", false, float64(n)} }
