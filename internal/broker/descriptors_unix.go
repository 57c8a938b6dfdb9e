//go:build unix

package broker

import "golang.org/x/sys/unix"

// descriptorLimit is how many descriptors the process may have; 0 where that is not known. Go has raised
// the soft limit to the hard one at its start.
func descriptorLimit() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 1<<31 {
		return 0
	}
	return int(limit.Cur)
}
