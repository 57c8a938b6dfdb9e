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
	"github.com/barnabas-mq/barnabas/test/process"
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
		c.brokers = append(c.brokers, newBroker(o, id, zk.Address))
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

// broker is one of the cluster.
type broker struct {
	process.Broker
	id int
}

// newBroker is a broker that may start for longer than the session of its earlier life lasts, which it waits for.
func newBroker(o options, id int, zookeeper string) *broker {
	return &broker{id: id, Broker: process.Broker{
		Program: o.program, Dir: filepath.Join(o.dir, fmt.Sprintf("broker-%d", id)), StartLimit: time.Minute,
		Overrides: []string{
			"http.listener=", fmt.Sprintf("broker.id=%d", id), "zookeeper.connect=" + zookeeper + "/cluster",
			fmt.Sprintf("zookeeper.session.timeout.ms=%d", session.Milliseconds()), "replica.lag.time.max.ms=3000",
			"offsets.topic.num.partitions=4", "auto.create.topics.enable=false",
		},
	}}
}

// cluster is the brokers, and what is known of them.
type cluster struct {
	brokers []*broker
	random  *rand.Rand
	load    *load
	// outages is the longest time until all partitions were acknowledged again, by kind of fault.
	outages map[string]time.Duration
	counts  map[string]int
}

// kill ends whatever still runs.
func (c *cluster) kill() {
	for _, b := range c.brokers {
		b.Kill()
	}
}

// prove is a whole run.
func (c *cluster) prove(ctx context.Context, o options) (string, error) {
	c.outages, c.counts = map[string]time.Duration{}, map[string]int{}
	if err := start(c.brokers); err != nil {
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
		if err := b.Stop(); err != nil {
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

// start starts brokers side by side.
func start(brokers []*broker) error {
	errs := make(chan error, len(brokers))
	for _, b := range brokers {
		go func() { errs <- b.Start() }()
	}
	var all []error
	for range brokers {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

func (c *cluster) addresses() []string {
	var all []string
	for _, b := range c.brokers {
		all = append(all, b.Address)
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
func (c *cluster) victims(ctx context.Context, kind string) ([]*broker, error) {
	leader, controller, err := c.load.heads(ctx)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "leader", "pause":
		return []*broker{c.brokers[leader]}, nil
	case "controller":
		return []*broker{c.brokers[controller]}, nil
	case "follower", "stop":
		return []*broker{c.brokers[(int(controller)+1+c.random.IntN(2))%3]}, nil
	case "all":
		return c.brokers, nil
	}
	return nil, fmt.Errorf("no fault %q", kind)
}

func (c *cluster) breakThem(ctx context.Context, kind string, victims []*broker) error {
	switch kind {
	case "pause":
		return victims[0].Pause()
	case "stop":
		return victims[0].Stop()
	}
	for _, b := range victims {
		b.Kill()
	}
	return ctx.Err()
}

func (c *cluster) repair(kind string, victims []*broker) error {
	if kind == "pause" {
		return victims[0].Resume()
	}
	return start(victims)
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
