// Command kill proves that a killed broker loses nothing: it starts one, lets clients of all kinds work on
// it, kills it with SIGKILL in the middle, starts it again, and so on for a number of rounds; now and then it
// kills it while it starts, or only stops it for a while (SIGSTOP). After each start it compares metadata and committed offsets with what was
// acknowledged, and at the end all records.
//
// What must hold:
//
//   - every acknowledged record is there, at the offset that the acknowledgement named, unless retention,
//     DeleteRecords or compaction may have taken it
//   - no record of an idempotent producer is there twice, and each producer's records are in order
//   - offsets are dense where nothing is compacted; of each key the newest acknowledged value, or a newer one,
//     is there where it is
//   - topics, their ids, deletions and properties are as acknowledged, or as asked for since
//   - committed offsets never go back
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/barnabas-mq/barnabas/test/process"
)

// options are the flags.
type options struct {
	program    string
	dir        string
	rounds     int
	partitions int
	producers  int
	pause      time.Duration
	seed       uint64
	fill       bool
}

func main() {
	var o options
	flag.StringVar(&o.program, "barnabas", "bin/barnabas", "the built program")
	flag.StringVar(&o.dir, "dir", "", "data directory; default a temporary one, removed where all is well")
	flag.IntVar(&o.rounds, "rounds", 10, "how often to kill")
	flag.IntVar(&o.partitions, "partitions", 4, "partitions of each topic")
	flag.IntVar(&o.producers, "producers", 2, "producers of each topic; every second one is idempotent")
	flag.DurationVar(&o.pause, "pause", time.Second, "how long SIGSTOP lasts")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "seed of the random times")
	flag.BoolVar(&o.fill, "fill", false, "do not kill, but fill a small volume (as root)")
	flag.Parse()
	what := run
	if o.fill {
		what = fill
	}
	if err := what(context.Background(), o); err != nil {
		fmt.Fprintf(os.Stderr, "kill: %v (seed %d)\n", err, o.seed)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	temporary := o.dir == ""
	if temporary {
		dir, err := os.MkdirTemp("", "barnabas-kill-")
		if err != nil {
			return err
		}
		o.dir = dir
	}
	b := newBroker(o.program, o.dir)
	defer b.Kill()
	if err := b.Start(); err != nil {
		return err
	}
	l, err := newLoad(ctx, b.Address, o.partitions, o.producers)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(o.seed, 0))
	restarts, err := rounds(ctx, o, b, l, random)
	if err != nil {
		return fmt.Errorf("%w; data kept in %s", err, o.dir)
	}
	l.stop()
	report, err := check(ctx, b.Address, l)
	if err != nil {
		return fmt.Errorf("%w; data kept in %s", err, o.dir)
	}
	fmt.Printf("%d kills: %s; %s; serving again after %v at most\n", o.rounds, report, l.admin.report(), restarts.Round(time.Millisecond))
	if temporary {
		b.Kill()
		return os.RemoveAll(o.dir)
	}
	return nil
}

// rounds kills and restarts, and returns the longest time until the broker served again.
//
//	wait for acknowledgements → sometimes SIGSTOP and SIGCONT → SIGKILL → sometimes a start that is killed → start → verify
//
// The times are drawn from the seed; what happens in them is the machine's, so that a seed repeats the plan of
// a run and not the run.
func rounds(ctx context.Context, o options, b *process.Broker, l *load, random *rand.Rand) (longest time.Duration, _ error) {
	for round := range o.rounds {
		before := l.acknowledged()
		work := time.Duration(200+random.IntN(1300)) * time.Millisecond
		if err := l.wait(ctx, before, work); err != nil {
			return 0, fmt.Errorf("round %d: %w", round+1, err)
		}
		if random.IntN(5) == 0 {
			if err := pause(ctx, b, o.pause); err != nil {
				return 0, fmt.Errorf("round %d: %w", round+1, err)
			}
			if err := l.wait(ctx, l.acknowledged(), 0); err != nil {
				return 0, fmt.Errorf("round %d, after a stop: %w", round+1, err)
			}
		}
		b.Kill()
		if random.IntN(4) == 0 {
			if err := b.StartAndKill(time.Duration(random.IntN(150)) * time.Millisecond); err != nil {
				return 0, fmt.Errorf("round %d: %w", round+1, err)
			}
		}
		began := time.Now()
		if err := b.Start(); err != nil {
			return 0, fmt.Errorf("round %d: %w", round+1, err)
		}
		longest = max(longest, time.Since(began))
		if err := l.admin.verify(ctx); err != nil {
			return 0, fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	return longest, l.wait(ctx, l.acknowledged(), 0)
}

// newBroker is the broker that is killed. Its work in the background comes often enough for kills to hit it.
func newBroker(program, dir string) *process.Broker {
	return &process.Broker{Program: program, Dir: dir, StartLimit: 3 * time.Minute, Overrides: []string{
		"http.listener=", "log.initial.task.delay.ms=100", "log.retention.check.interval.ms=300", "log.cleaner.backoff.ms=200",
		"log.flush.offset.checkpoint.interval.ms=500", "log.flush.start.offset.checkpoint.interval.ms=500",
		"offsets.topic.num.partitions=4",
	}}
}

// pause keeps the broker from running for a while.
func pause(ctx context.Context, b *process.Broker, while time.Duration) error {
	if err := b.Pause(); err != nil {
		return err
	}
	select {
	case <-time.After(while):
	case <-ctx.Done():
	}
	return b.Resume()
}
