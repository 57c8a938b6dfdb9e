//go:build race

package record

// raceEnabled is set where the race detector makes sync.Pool forget at random.
const raceEnabled = true
