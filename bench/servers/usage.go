package servers

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Usage is what a process has taken since its start.
type Usage struct {
	// CPU are seconds of user and system time of all threads, to 10 ms.
	CPU float64
	// RSS is the resident memory in bytes, Peak the largest since the start or the last ResetPeak.
	RSS, Peak int64
	// Read are bytes that came from a disk and not from the page cache; 0 where the kernel does not count them.
	Read int64
}

// Usage reads what the process has taken until now.
func (s *Server) Usage() (Usage, error) { return usage(s.Pid()) }

// ResetPeak makes the present resident memory the peak.
func (s *Server) ResetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.Pid()), []byte("5"), 0)
}

// ticks is how many a second has in /proc: USER_HZ, which is 100 on every Linux that Go runs on.
const ticks = 100

func usage(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, err
	}
	// The name of the program, in parentheses, may hold anything; user and system time are fields 14 and 15.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return Usage{}, fmt.Errorf("/proc/%d/stat says %q", pid, stat)
	}
	user, err := strconv.ParseFloat(fields[11], 64)
	if err != nil {
		return Usage{}, err
	}
	system, err := strconv.ParseFloat(fields[12], 64)
	if err != nil {
		return Usage{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, err
	}
	io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Usage{}, err
	}
	return Usage{
		CPU: (user + system) / ticks, RSS: kibibytes(status, "VmRSS"), Peak: kibibytes(status, "VmHWM"), Read: figure(io, "read_bytes"),
	}, nil
}

// kibibytes finds a line as "VmRSS:   1234 kB" and returns its bytes; 0 where there is none.
func kibibytes(text []byte, name string) int64 { return figure(text, name) << 10 }

// figure finds a line as "name:   1234", with or without a unit behind it.
func figure(text []byte, name string) int64 {
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n
		}
	}
	return 0
}

// Dirty is how many bytes the kernel has still to write to disks, those under way included.
func Dirty() (int64, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	return kibibytes(text, "Dirty") + kibibytes(text, "Writeback"), nil
}
