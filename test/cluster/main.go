// Command cluster proves that a cluster of real processes on a real ZooKeeper loses nothing of what it acknowledged:
// it starts three brokers, lets producers work on them, and kills or stops processes in the middle, round after
// round.
//
//	leader       kill -9 of a broker that leads
//	follower     kill -9 of another one than the controller
//	controller   kill -9 of the controller
//	all          kill -9 of all brokers at once
//	pause        SIGSTOP for longer than the session, then SIGCONT
//	stop         SIGTERM: leaderships are handed over
//
// What must hold:
//
//   - every acknowledged record stands at the offset that the acknowledgement named
//   - no record of an idempotent producer is there twice, and each producer's records are in order
//   - offsets are dense, and the logs of all replicas are the same, record by record and epoch by epoch
//   - after each fault, every partition is acknowledged again, and every in-sync set is whole
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination/zookeeper/zktest"
)

// session is zookeeper.session.timeout.ms of the brokers.
const session = 4 * time.Second

// options are the flags.
type options struct {
	program    string
	dir        string
	rounds     int
	partitions int
	producers  int
	faults     string
	seed       uint64
}

func main() {
	var o options
	flag.StringVar(&o.program, "barnabas", "bin/barnabas", "the built program")
	flag.StringVar(&o.dir, "dir", "", "data directory; default a temporary one, removed where all is well")
	flag.IntVar(&o.rounds, "rounds", 6, "how many faults")
	flag.IntVar(&o.partitions, "partitions", 6, "partitions of the topic")
	flag.IntVar(&o.producers, "producers", 4, "producers; every second one is idempotent")
	flag.StringVar(&o.faults, "faults", "leader,controller,follower,stop,all,pause", "which faults, in turn")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "seed of the random times")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintf(os.Stderr, "cluster: %v (seed %d)\n", err, o.seed)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	temporary := o.dir == ""
	if temporary {
		if o.dir, err = os.MkdirTemp("", "barnabas-cluster-"); err != nil {
			return err
		}
	}
	zk, err := zktest.Start(zktest.Options{Dir: filepath.Join(o.dir, "zookeeper")})
	if err != nil {
		return err
	}
	defer zk.Kill()
	c := &cluster{random: rand.New(rand.NewPCG(o.seed, 0))}
	for id := range 3 {
		c.brokers = append(c.brokers, &process{program: o.program, id: id, dir: filepath.Join(o.dir, fmt.Sprintf("broker-%d", id)), zookeeper: zk.Address})
	}
	defer c.kill()
	report, err := c.prove(ctx, o)
	if err != nil {
		return fmt.Errorf("%w; data kept in %s", err, o.dir)
	}
	fmt.Println(report)
	if temporary {
		c.kill()
		zk.Kill()
		return os.RemoveAll(o.dir)
	}
	return nil
}

// cluster is the brokers, and what is known of them.
type cluster struct {
	brokers []*process
	random  *rand.Rand
	load    *load
	// outages is the longest time until all partitions were acknowledged again, by kind of fault.
	outages map[string]time.Duration
	counts  map[string]int
}

// kill ends whatever still runs.
func (c *cluster) kill() {
	for _, b := range c.brokers {
		b.kill()
	}
}

// prove is a whole run.
func (c *cluster) prove(ctx context.Context, o options) (string, error) {
	c.outages, c.counts = map[string]time.Duration{}, map[string]int{}
	if err := c.startAll(); err != nil {
		return "", err
	}
	var err error
	if c.load, err = newLoad(ctx, c.addresses(), o.partitions, o.producers); err != nil {
		return "", err
	}
	kinds := strings.Split(o.faults, ",")
	for round := range o.rounds {
		kind := kinds[round%len(kinds)]
		if err := c.round(ctx, kind); err != nil {
			return "", fmt.Errorf("round %d (%s): %w", round+1, kind, err)
		}
	}
	if err := c.load.stop(ctx); err != nil {
		return "", err
	}
	checked, err := c.load.check(ctx)
	if err != nil {
		return "", err
	}
	for _, b := range c.brokers {
		if err := b.stop(); err != nil {
			return "", err
		}
	}
	compared, err := compareLogs(c.brokers, o.partitions)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d faults: %s; %s\n", o.rounds, checked, compared)
	for _, kind := range kinds {
		if c.counts[kind] > 0 {
			fmt.Fprintf(&text, "  %2d %-11s all partitions acknowledged again after %v at most\n", c.counts[kind], kind, c.outages[kind].Round(time.Millisecond))
		}
	}
	return strings.TrimSpace(text.String()), nil
}

func (c *cluster) startAll() error {
	errs := make(chan error, len(c.brokers))
	for _, b := range c.brokers {
		go func() { errs <- b.start() }()
	}
	var all []error
	for range c.brokers {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

func (c *cluster) addresses() []string {
	var all []string
	for _, b := range c.brokers {
		all = append(all, b.address)
	}
	return all
}

// round breaks something, waits until clients are served again, and repairs it.
func (c *cluster) round(ctx context.Context, kind string) error {
	if err := c.load.progress(ctx); err != nil {
		return fmt.Errorf("before the fault: %w", err)
	}
	if err := wait(ctx, time.Duration(100+c.random.IntN(900))*time.Millisecond); err != nil {
		return err
	}
	victims, err := c.victims(ctx, kind)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := c.breakThem(ctx, kind, victims); err != nil {
		return err
	}
	if kind != "all" { // of which nobody is left to acknowledge
		if err := c.load.progress(ctx); err != nil {
			return fmt.Errorf("broker %d is down: %w", victims[0].id, err)
		}
		c.outages[kind] = max(c.outages[kind], time.Since(began))
		if err := wait(ctx, time.Duration(c.random.IntN(3000))*time.Millisecond); err != nil {
			return err
		}
	}
	if err := c.repair(kind, victims); err != nil {
		return err
	}
	if err := c.load.progress(ctx); err != nil {
		return fmt.Errorf("after the repair: %w", err)
	}
	if kind == "all" {
		c.outages[kind] = max(c.outages[kind], time.Since(began))
	}
	c.counts[kind]++
	return c.load.whole(ctx)
}

// victims are the brokers that a fault is for.
func (c *cluster) victims(ctx context.Context, kind string) ([]*process, error) {
	leader, controller, err := c.load.heads(ctx)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "leader", "pause":
		return []*process{c.brokers[leader]}, nil
	case "controller":
		return []*process{c.brokers[controller]}, nil
	case "follower", "stop":
		return []*process{c.brokers[(int(controller)+1+c.random.IntN(2))%3]}, nil
	case "all":
		return c.brokers, nil
	}
	return nil, fmt.Errorf("no fault %q", kind)
}

func (c *cluster) breakThem(ctx context.Context, kind string, victims []*process) error {
	switch kind {
	case "pause":
		return victims[0].pause()
	case "stop":
		return victims[0].stop()
	}
	for _, b := range victims {
		b.kill()
	}
	return ctx.Err()
}

func (c *cluster) repair(kind string, victims []*process) error {
	if kind == "pause" {
		return victims[0].resume()
	}
	errs := make(chan error, len(victims))
	for _, b := range victims {
		go func() { errs <- b.start() }()
	}
	var all []error
	for range victims {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// wait lets time pass.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
