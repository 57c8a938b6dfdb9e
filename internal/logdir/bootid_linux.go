package logdir

import (
	"os"
	"strings"
)

// KernelBootID is the id that the kernel drew when it booted, or empty where it cannot be read.
func KernelBootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
