//go:build !linux && !darwin

package logdir

// KernelBootID is empty on systems that have no such id: there every unclean stop is followed by a scan.
func KernelBootID() string { return "" }
