//go:build !planted

package planted

// In reports whether a bug is planted in this process: none is.
func In(Bug) bool { return false }
