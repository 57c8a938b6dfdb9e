package ports

import (
	"errors"
	"net"
	"testing"
)

// from is where this test's ranges begin.
const from = 31_000

func reserve(t *testing.T, size int) *Range {
	t.Helper()
	r, err := Reserve(from, size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Release() }) // it may have been released
	return r
}

// Whoever asks, in this process or another, gets a range of his own, and may give it back.
func TestRangesHaveOneOwner(t *testing.T) {
	one, two := reserve(t, 10), reserve(t, 10)
	if (two.end-one.end)%10 != 0 || two.end <= one.end {
		t.Errorf("ranges up to %d and %d", one.end, two.end)
	}
	if err := two.Release(); err != nil {
		t.Fatal(err)
	}
	three := reserve(t, 10)
	if three.end <= one.end {
		t.Errorf("a range up to %d, although the one up to %d is in use", three.end, one.end)
	}
}

// Ports are given once, and not where somebody listens; there are as many as was said.
func TestPortsAreGivenOnce(t *testing.T) {
	r := reserve(t, 4)
	taken, err := net.Listen("tcp", address(r.next+1))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	first, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	second, err := r.NextAddress()
	if err != nil || second != address(first+2) {
		t.Errorf("%s comes after %d, %v", second, first, err)
	}
	if port, err := r.Next(); !errors.Is(err, errUsedUp) {
		t.Errorf("%d, %v", port, err)
	}
}

func TestNoRangeIsLeft(t *testing.T) {
	if r, err := Reserve(last, 10); err == nil {
		t.Errorf("a range up to %d", r.end)
	}
}
