// Command cluster proves that a cluster of real processes on a real ZooKeeper keeps its promises: it starts ZooKeeper
// and three brokers, lets clients work on them, and breaks something in the middle, round after round.
//
//	go run ./test/cluster -barnabas BIN -list                          the scenarios
//	go run ./test/cluster -barnabas BIN -scenario leader -rounds 20
//	go run ./test/cluster -barnabas BIN -scenario leader,pause         one after the other
//
// As root on Linux it runs in network and mount namespaces of its own, in which each broker is a host, so that links
// can be cut and disks can be full. Else everything is on 127.0.0.1, and what needs more is NOT RUN.
//
// What must hold, in every scenario:
//
//   - every acknowledged record stands at the offset that the acknowledgement named, for readers and in the log of
//     every replica; the logs are the same byte by byte
//   - no record that was refused is there; none is there twice; an idempotent producer's are in order
//   - what a consumer has read stays what it was; offsets are read without gaps; a member of the group goes on from what
//     is committed, or earlier, never from later; an acknowledged commit stays
//   - high watermarks do not fall within an epoch and above it; the controller's epoch and leader epochs rise; one
//     leader leads in an epoch; an in-sync set is never empty
//   - topics are as the admin was told; a move ends
//   - after each fault, every partition is acknowledged again, and every in-sync set is whole
//   - the disks hold the logs of the replicas that there are, and no others
//   - descriptors, goroutines and memory come back to where they were
//
// It fails as well where the counts say that a round broke nothing, that the load hardly ran, or that nobody saw a high
// watermark or ZooKeeper's tree.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// options are the flags.
type options struct {
	program   string
	dir       string
	scenarios string
	rounds    int
	seed      uint64
	list      bool
}

func main() {
	var o options
	flag.StringVar(&o.program, "barnabas", "bin/barnabas", "the built program")
	flag.StringVar(&o.dir, "dir", "", "data directory; default a temporary one, removed where all is well")
	flag.StringVar(&o.scenarios, "scenario", "mix", "which scenarios, with commas")
	flag.IntVar(&o.rounds, "rounds", 0, "how many rounds a scenario; 0 is 6")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "seed of the random times")
	flag.BoolVar(&o.list, "list", false, "list the scenarios")
	flag.Parse()
	if o.list {
		for _, s := range scenarios {
			fmt.Printf("%-20s %s\n", s.name, s.about)
		}
		return
	}
	if err := run(context.Background(), o); err != nil {
		if !errors.Is(err, errSaid) {
			fmt.Fprintf(os.Stderr, "cluster: %v (seed %d)\n", err, o.seed)
		}
		os.Exit(1)
	}
}

// errSaid is the error of a program that has said itself what was wrong.
var errSaid = errors.New("it has been said")

// run runs the scenarios, in namespaces where that is possible.
func run(ctx context.Context, o options) error {
	var net *network
	without := canIsolate()
	if without == nil {
		inner, err := isolate()
		if err != nil || !inner {
			return err
		}
		if net, err = newNetwork(); err != nil {
			return err
		}
	}
	var failed error
	for name := range strings.SplitSeq(o.scenarios, ",") {
		s, err := scenarioOf(name)
		if err != nil {
			return err
		}
		if s.isolated && net == nil {
			fmt.Printf("NOT RUN: %s: %v\n", name, without)
			continue
		}
		if err := runScenario(ctx, o, s, net); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// runScenario runs one scenario in a folder of its own, which stays where it fails.
func runScenario(ctx context.Context, o options, s scenario, n *network) error {
	dir := o.dir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "barnabas-cluster-"); err != nil {
			return err
		}
	} else {
		dir = filepath.Join(dir, s.name)
	}
	began := time.Now()
	report, err := s.run(ctx, o, dir, n)
	if err != nil {
		return fmt.Errorf("FAIL: %s: %w; data kept in %s", s.name, err, dir)
	}
	fmt.Printf("ok: %s, in %v\n%s", s.name, time.Since(began).Round(time.Second), report)
	if o.dir == "" {
		return os.RemoveAll(dir)
	}
	return nil
}
