//go:build race

package server

// raceEnabled says that the test runs under the race detector.
const raceEnabled = true
