package leaktest

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

// recorder is a test that notes what it is told.
type recorder struct {
	testing.TB
	said []any
}

func (r *recorder) Error(args ...any) { r.said = append(r.said, args...) }
func (r *recorder) Helper()           {}

func TestWhatEndsLateIsNoLeak(t *testing.T) {
	for name, c := range map[string]struct {
		ends time.Duration
		leak bool
	}{"soon": {patience / 2, false}, "never": {time.Hour, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := goleak.IgnoreCurrent()
				go func() { <-time.After(c.ends) }()
				r := &recorder{TB: t}
				Verify(r, before)
				time.Sleep(c.ends) // a bubble ends with its goroutines
				if (len(r.said) > 0) != c.leak {
					t.Fatalf("said %v", r.said)
				}
				if c.leak && !strings.Contains(r.said[0].(error).Error(), "TestWhatEndsLateIsNoLeak") {
					t.Errorf("%v does not say which goroutine it is", r.said[0])
				}
			})
		})
	}
}
