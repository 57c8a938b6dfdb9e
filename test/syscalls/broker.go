package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// startLimit is how long a start may take; under strace it takes longer than otherwise.
const startLimit = 3 * time.Minute

// unsteady are the system calls that depend on the scheduling of the machine, as strace names them.
const unsteady = "futex,epoll_wait,epoll_pwait,epoll_ctl,eventfd2,nanosleep,clock_nanosleep,sched_yield,madvise,mmap,munmap," +
	"tgkill,getpid,sched_getaffinity,rt_sigreturn,rt_sigprocmask,sigaltstack,clone,clone3,gettid,prctl,timer_settime,restart_syscall,set_robust_list,rseq,mprotect,pipe2,waitid"

// broker is a broker under strace.
type broker struct {
	command *exec.Cmd
	address string
	trace   string // where strace writes a line for each call
	from    int64  // the length of the trace at the last mark
}

// rare has the work in the background come once a day: how often it comes during a count would depend on how long that takes,
// so on the machine.
var rare = []string{
	"log.initial.task.delay.ms=86400000", "replica.high.watermark.checkpoint.interval.ms=86400000",
}

// start runs the program and returns when it serves.
func start(program, dir string) (*broker, error) {
	ready := filepath.Join(dir, "ready")
	log, err := os.Create(filepath.Join(dir, "broker.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	b := &broker{trace: filepath.Join(dir, "trace")}
	arguments := []string{"-f", "-qq", "-o", b.trace, "-e", "signal=none", "-e", "trace=!" + unsteady,
		program, "start", "--data-dir", filepath.Join(dir, "data"), "--ready-file", ready}
	for _, property := range append([]string{"listeners=PLAINTEXT://127.0.0.1:0", "http.listener="}, rare...) {
		arguments = append(arguments, "--override", property)
	}
	b.command = exec.Command("strace", arguments...)
	b.command.Stdout, b.command.Stderr = log, log
	if err := b.command.Start(); err != nil {
		return nil, err
	}
	if b.address, err = awaitReady(ready); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

// awaitReady looks for the ready file, which is renamed into place and holds the address.
func awaitReady(ready string) (string, error) {
	deadline := time.After(startLimit)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(ready)
		if err == nil {
			return strings.TrimSpace(string(text)), nil
		}
		select {
		case <-deadline:
			return "", errors.New("the broker does not serve")
		case <-tick.C:
		}
	}
}

// stop ends the broker, and strace with it.
func (b *broker) stop() {
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", b.command.Process.Pid)); err == nil {
		for _, child := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(child); err == nil {
				_ = syscall.Kill(pid, syscall.SIGTERM) // it may have ended by itself
			}
		}
	}
	_ = b.command.Wait() // what it says about the broker's end is of no interest
}

// mark begins a count.
func (b *broker) mark() {
	if info, err := os.Stat(b.trace); err == nil {
		b.from = info.Size()
	}
}

// calls counts system calls by name.
type calls map[string]int

func (c calls) total() int {
	sum := 0
	for _, n := range c {
		sum += n
	}
	return sum
}

// String lists the calls, the most frequent first.
func (c calls) String() string {
	var names []string
	for name := range c {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return c[b] - c[a] })
	var text []string
	for _, name := range names {
		text = append(text, fmt.Sprintf("%s %d", name, c[name]))
	}
	return strings.Join(text, ", ")
}

// since counts the calls since the mark, and the bytes that sendfile moved. The last call of the last request
// may be missing: strace writes its line when the answer is already here.
func (b *broker) since() (made calls, sendfile int64, err error) {
	text, err := os.ReadFile(b.trace)
	if err != nil {
		return nil, 0, err
	}
	made = calls{}
	for line := range bytes.Lines(text[b.from:]) {
		name, ended, result := parse(string(line))
		if name == "" {
			continue
		}
		if ended {
			made[name]++
		}
		if name == "sendfile" && result > 0 {
			sendfile += result
		}
	}
	return made, sendfile, nil
}

// parse reads a line of strace, such as
//
//	4711 pwrite64(12, "..."..., 1024, 0) = 1024
//	4711 write(3, "..." <unfinished ...>
//	4711 <... write resumed>) = 12
//
// A call counts when it ends.
func parse(line string) (name string, ended bool, result int64) {
	if !strings.HasSuffix(line, "\n") {
		return "", false, 0 // the rest is still to come
	}
	_, line, _ = strings.Cut(strings.TrimSpace(line), " ")
	line = strings.TrimSpace(line)
	if rest, resumed := strings.CutPrefix(line, "<... "); resumed {
		name, _, _ = strings.Cut(rest, " ")
	} else {
		name, _, _ = strings.Cut(line, "(")
	}
	if name == "" || name[0] < 'a' || name[0] > 'z' || strings.HasSuffix(line, "<unfinished ...>") {
		return name, false, 0 // a call that goes on, or the end of a thread
	}
	if at := strings.LastIndex(line, " = "); at >= 0 {
		number, _, _ := strings.Cut(line[at+3:], " ")
		result, _ = strconv.ParseInt(number, 10, 64)
	}
	return name, true, result
}
