// Command syscalls counts what a broker asks of the kernel: it runs the built program under strace, sends
// thousands of equal requests and holds the system calls of each to a budget. Counts are exact where times
// are not, so that they can stand in the way of a change.
//
// Not counted is what depends on the scheduling of the machine: futexes, epoll, timers, memory given back.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// The budgets, in system calls a request. A request to produce writes once for each partition; a fetch may send a
// header and a range for each.
func produceBudget(partitions int) float64 { return float64(partitions + 2) }

func fetchBudget(partitions int) float64 { return float64(2*partitions + 1) }

// tailBudget is what a record to a consumer that waits may cost: three to produce it; to receive the fetch and to find
// that no other is there, and to read the record and to send it.
const tailBudget = 7

// slack is what growing files and the background's syncs may add to a request; the rest of the background rests (rare).
// They come with time, so that a slow machine has more of them. One call more in a request is four times as much.
const slack = 0.25

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

// judge prints the counts and fails where one is over its budget.
func judge(counted []counted) error {
	over := 0
	for _, c := range counted {
		verdict := "ok"
		if c.each() > c.budget+slack || c.viaSendfile < c.records {
			verdict = "TOO MANY"
			over++
		}
		fmt.Printf("%-8s %-34s %6.3f a request, at most %g  (%s)\n", verdict, c.name, c.each(), c.budget, c.calls)
		if c.records > 0 {
			fmt.Printf("         %d of %d record bytes by sendfile\n", c.viaSendfile, c.records)
		}
	}
	if over > 0 {
		return fmt.Errorf("%d of %d kinds of requests are over their budget", over, len(counted))
	}
	return nil
}
