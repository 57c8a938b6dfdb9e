// Package leaktest fails tests that leave goroutines behind, as goleak does, and waits for those that are about to end.
//
// goleak gives them less than half a second. On a busy machine a goroutine whose connection was closed may not have run by
// then; it is no leak for that. Here whatever ends within a minute has ended, and only what is there for good takes so long.
package leaktest

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds the wait for goroutines that are about to end; it is far above what any takes.
const patience = time.Minute

// Main is the TestMain of a package whose tests must leave no goroutine behind.
func Main(m *testing.M) { goleak.VerifyTestMain(settled{m}) }

// settled are tests that have ended when their goroutines have.
type settled struct{ tests *testing.M }

// Run runs the tests and gives their exit code, as goleak wants it.
func (s settled) Run() int {
	code := s.tests.Run()
	if code == 0 {
		_ = wait() // goleak looks itself, and says what is left
	}
	return code
}

// Verify fails the test where goroutines are left, but for those that options leave out.
func Verify(t testing.TB, options ...goleak.Option) {
	t.Helper()
	if err := wait(options...); err != nil {
		t.Error(err)
	}
}

// wait waits until no goroutine is left. The error says which are.
func wait(options ...goleak.Option) error {
	for deadline := time.Now().Add(patience); ; {
		err := goleak.Find(options...) // which waits a little itself
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
