// Package invariant states what must be true and stops where it is not.
//
// An assertion is for a bug of ours: a value that no input, peer or disk can produce while the code is
// right. What the world can do (I/O errors, damaged files, peers that lie) is an error instead, never an
// assertion. Cheap assertions are always on; dear ones are guarded by [Enabled], which the build tag
// "invariants" turns on.
package invariant

import "fmt"

// Violation is what a failed assertion panics with. It is recovered in three places only: around a
// request, around a partition's work and around a background job.
type Violation struct {
	// Message says what should have been true, with the values that were not.
	Message string
}

// Error makes a recovered Violation loggable as an error.
func (v Violation) Error() string { return "BUG: " + v.Message }

// That panics with message where cond is false. It allocates nothing on the good path, so it may stand on
// hot ones; where the values matter, test the condition and call [Fail].
func That(cond bool, message string) {
	if !cond {
		panic(Violation{Message: message})
	}
}

// Fail panics with a formatted Violation: the values belong into it.
func Fail(format string, args ...any) {
	panic(Violation{Message: fmt.Sprintf(format, args...)})
}
