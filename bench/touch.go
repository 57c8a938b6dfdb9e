package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// touchMemory uses most of the memory that is free once, and gives it back.
//
// A virtual machine gets its memory from its host page by page, at the first use: on a machine that has just booted the
// first gigabytes that go into the page cache cost several times of what they cost later, on whichever side comes first.
func touchMemory() error {
	free, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemFree"), " kB"), 10, 64)
	if err != nil {
		return fmt.Errorf("/proc/meminfo: %w", err)
	}
	page := os.Getpagesize()
	size := int(free<<10) / 5 * 4 / page * page
	if size == 0 {
		return nil
	}
	fmt.Fprintf(os.Stderr, "touching %d MB of free memory, so that the host backs it\n", size/1e6)
	memory, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return fmt.Errorf("mapping %d bytes: %w", size, err)
	}
	for at := 0; at < size; at += page {
		memory[at] = 1
	}
	return syscall.Munmap(memory)
}
