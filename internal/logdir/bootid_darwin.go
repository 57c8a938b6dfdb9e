package logdir

import "golang.org/x/sys/unix"

// KernelBootID is the id that the kernel drew when it booted, or empty where it cannot be read.
func KernelBootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}
