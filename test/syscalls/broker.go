package main

import (
	"bytes"
	"cmp"
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

// unsteady are the system calls of Go's scheduler and collector, as strace names them, which depend on the machine and on
// what else it does. Nothing else is left out.
//
//	futex, epoll_*, nanosleep, sched_yield            threads that wait, and that look for work
//	tgkill, getpid, rt_sigreturn, restart_syscall     goroutines that are stopped by a signal, for others or a collection
//	madvise, sched_getaffinity                        memory given back; a look at the processors, now and then
const unsteady = "futex,epoll_wait,epoll_pwait,epoll_ctl,nanosleep,sched_yield," +
	"tgkill,getpid,rt_sigreturn,restart_syscall,madvise,sched_getaffinity"

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

// String lists the calls, the most frequent first.
func (c calls) String() string {
	var names []string
	for name := range c {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(c[b]-c[a], cmp.Compare(a, b)) })
	var text []string
	for _, name := range names {
		text = append(text, fmt.Sprintf("%s %d", name, c[name]))
	}
	return strings.Join(text, ", ")
}

// since counts the calls since the mark; those on files that move something else than a batch of that size are apart, and so
// is what found nothing. It tells the bytes that sendfile moved. The last call of the last request may be missing: strace
// writes its line when the answer is already here.
func (b *broker) since(batch int64) (made, vain calls, sendfile int64, err error) {
	text, err := os.ReadFile(b.trace)
	if err != nil {
		return nil, nil, 0, err
	}
	made, vain = calls{}, calls{}
	for line := range bytes.Lines(text[b.from:]) {
		c, ok := parse(string(line))
		switch {
		case !ok:
		case c.again:
			vain[c.name]++
		default:
			made[c.kind(batch)]++
		}
		if c.name == "sendfile" {
			sendfile += max(c.result, 0)
		}
	}
	return made, vain, sendfile, nil
}

// call is a system call that has ended.
type call struct {
	name          string
	asked, result int64 // asked is the last argument, where that is a number
	again         bool  // EAGAIN: there was nothing to read, or no room to write
}

// eventSize is what the runtime writes and reads to wake who waits in epoll; no answer is that short.
const eventSize = 8

// kind is the call's name, with what makes it another one than a request's.
func (c *call) kind(batch int64) string {
	switch {
	case (c.name == "pwrite64" || c.name == "pread64") && c.result != batch:
		return c.name + " of no batch"
	case c.name == "sendfile" && c.result < c.asked:
		return c.name + " in part"
	case (c.name == "write" || c.name == "read") && c.result == eventSize:
		return c.name + " of an event"
	}
	return c.name
}

// parse reads a line of strace, such as
//
//	4711 pwrite64(12, "..."..., 1024, 0) = 1024
//	4711 write(3, "..." <unfinished ...>
//	4711 <... write resumed>, 12) = 12
//	4711 recvmsg(9, {...}, 0) = -1 EAGAIN (Resource temporarily unavailable)
//
// A call counts when it ends; ok is false for a line that ends none.
func parse(line string) (c call, ok bool) {
	if !strings.HasSuffix(line, "\n") {
		return c, false // the rest is still to come
	}
	_, line, _ = strings.Cut(strings.TrimSpace(line), " ")
	line = strings.TrimSpace(line)
	if rest, resumed := strings.CutPrefix(line, "<... "); resumed {
		c.name, _, _ = strings.Cut(rest, " ")
	} else {
		c.name, _, _ = strings.Cut(line, "(")
	}
	if c.name == "" || c.name[0] < 'a' || c.name[0] > 'z' || strings.HasSuffix(line, "<unfinished ...>") {
		return call{}, false // a call that goes on, or the end of a thread
	}
	at := strings.LastIndex(line, " = ")
	if at < 0 {
		return c, true
	}
	result, failure, _ := strings.Cut(line[at+len(" = "):], " ")
	c.result, _ = strconv.ParseInt(result, 10, 64)
	c.again = strings.HasPrefix(failure, "EAGAIN")
	arguments := strings.TrimSuffix(strings.TrimSpace(line[:at]), ")")
	c.asked, _ = strconv.ParseInt(arguments[strings.LastIndexAny(arguments, " ")+1:], 10, 64)
	return c, true
}
