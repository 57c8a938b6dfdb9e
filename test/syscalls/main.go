// Command syscalls counts what a broker asks of the kernel: it runs the built program under strace, sends
// thousands of equal requests and holds the system calls of each to a budget. Counts are exact where times
// are not, so that they can stand in the way of a change.
//
// Each name of a budget is compared by itself: every request makes as many of these calls as it says. Apart from them, with
// some room, is what does not come with every request: files that grow, reads that find nothing, a range that the socket
// takes in two parts, threads that begin, memory that is asked for. Not seen at all are the calls of Go's scheduler and
// collector, see unsteady.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The budgets, in system calls a request. A request to produce writes once for each partition; a fetch sends a header and a
// range for each.
func produceBudget(partitions int) calls {
	return calls{"recvmsg": 1, "pwrite64": partitions, "write": 1}
}

func fetchBudget(partitions int) calls {
	return calls{"recvmsg": 1, "sendmsg": partitions, "sendfile": partitions}
}

// tailBudget is what a record to a consumer that waits takes: three to produce it; to receive the fetch, to read the record
// and to send it. Whoever receives the fetch may look for another behind it, in vain.
func tailBudget() calls {
	return calls{"recvmsg": 2, "pwrite64": 1, "pread64": 1, "write": 2}
}

const (
	// atTheEdge is how many calls of a name may be missing or too many, whatever the number of requests: strace writes the
	// line of the last call of a request when the answer is already here, at the beginning of a count as at its end.
	atTheEdge = 1
	// growth is how many other calls there may be for each batch of a request: a partition makes the files of its indexes
	// at 4 MiB, writes to them at each further one, and reserves space; about a quarter of it is used. The rest of the background
	// rests (rare).
	growth = 0.02
)

// recordSize makes ranges that are worth a sendfile: a fetch reads several batches of it.
const (
	recordSize = 16 << 10
	fetchBytes = 64 << 10
	batches    = 64
)

func main() {
	program := flag.String("barnabas", "barnabas", "the program to run")
	requests := flag.Int("requests", 10_000, "requests that are counted, of each kind")
	partitions := flag.Int("partitions", 8, "partitions of the larger fetch")
	flag.Parse()
	if err := run(*program, *requests, *partitions); err != nil {
		fmt.Fprintln(os.Stderr, "syscalls:", err)
		os.Exit(1)
	}
}

func run(program string, requests, partitions int) error {
	dir, err := os.MkdirTemp("", "syscalls")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b, err := start(program, dir)
	if err != nil {
		return err
	}
	defer b.stop()
	counted, err := count(b, requests, partitions)
	if err != nil {
		if log, failed := os.ReadFile(filepath.Join(dir, "broker.log")); failed == nil {
			fmt.Fprintf(os.Stderr, "%s", log)
		}
		return err
	}
	return judge(counted)
}

// judge prints the counts and fails where one is not what its budget says.
func judge(counted []counted) error {
	wrong := 0
	for _, c := range counted {
		verdict := "ok"
		if faults := c.faults(); len(faults) > 0 {
			verdict = "WRONG: " + strings.Join(faults, "; ") + ":"
			wrong++
		}
		fmt.Printf("%s %s: %d requests of (%s): %s", verdict, c.name, c.requests, c.exact, c.made)
		if len(c.vain) > 0 {
			fmt.Printf("; in vain %s", c.vain)
		}
		fmt.Println()
		if c.records > 0 {
			fmt.Printf("   %d of %d record bytes by sendfile\n", c.viaSendfile, c.records)
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d kinds of requests are not within their budget", wrong, len(counted))
	}
	return nil
}

// faults says what is not as the budget has it.
func (c *counted) faults() (faults []string) {
	for name, each := range c.exact {
		if n, want := c.made[name], each*c.requests; n < want-atTheEdge || n > want+atTheEdge {
			faults = append(faults, fmt.Sprintf("%d %s instead of %d", n, name, want))
		}
	}
	others, vain := 0, 0
	for name, n := range c.made {
		if c.exact[name] == 0 {
			others += n
		}
	}
	for _, n := range c.vain {
		vain += n
	}
	room := int(growth * float64(c.batches*c.requests))
	if others > room {
		faults = append(faults, fmt.Sprintf("%d other calls, at most %d", others, room))
	}
	if most := c.looks*c.requests + room; vain > most {
		faults = append(faults, fmt.Sprintf("%d in vain, at most %d", vain, most))
	}
	if c.viaSendfile < c.records {
		faults = append(faults, fmt.Sprintf("%d bytes of records not by sendfile", c.records-c.viaSendfile))
	}
	return faults
}
