package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// scenario is one way to break a cluster, again and again.
type scenario struct {
	name, about string
	// isolated says that it needs hosts or volumes, so root.
	isolated bool
	// set changes the settings of the cluster; nil leaves them.
	set func(*settings)
	// prepare is done once, under load; nil is nothing.
	prepare func(context.Context, *trial) error
	// round breaks something, and repairs it. round counts from 0.
	round func(ctx context.Context, t *trial, round int) error
}

// trial is one run of a scenario.
type trial struct {
	*cluster
	load *load
	// faults counts what was done, by its name.
	faults  map[string]int
	outages []outage
	// usages are what each broker's process held before the first fault, under load.
	usages map[int]usage
}

// outage is for how long clients were not served, and what had been done before.
type outage struct {
	took time.Duration
	when string
}

func scenarioOf(name string) (scenario, error) {
	for _, s := range scenarios {
		if s.name == name {
			return s, nil
		}
	}
	return scenario{}, fmt.Errorf("no scenario %q; -list lists them", name)
}

// run is a whole run: cluster, load, rounds, checks.
func (s scenario) run(ctx context.Context, o options, dir string, n *network) (report string, err error) {
	set := settings{session: 4 * time.Second, lag: 3 * time.Second, minISR: 2, partitions: 6, servers: 1, movedMinISR: 1}
	if s.set != nil {
		s.set(&set)
	}
	rounds := o.rounds
	if rounds == 0 {
		rounds = 6
	}
	c, err := newCluster(o, set, dir, n)
	if c != nil {
		defer func() { err = errors.Join(err, c.end()) }()
	}
	if err != nil {
		return "", err
	}
	t := &trial{cluster: c, faults: map[string]int{}, usages: map[int]usage{}}
	if t.load, err = newLoad(ctx, c); err != nil {
		return "", err
	}
	if s.prepare != nil {
		if err := s.prepare(ctx, t); err != nil {
			return "", fmt.Errorf("before the first round: %w", err)
		}
	}
	for _, b := range c.brokers {
		if t.usages[b.id], err = b.usage(ctx); err != nil {
			return "", err
		}
	}
	for round := range rounds {
		if err := t.round(ctx, s, round); err != nil {
			return "", fmt.Errorf("round %d: %w", round+1, err)
		}
		fmt.Fprintf(os.Stderr, "%s: round %d of %d, %s\n", s.name, round+1, rounds, t.load.history.summary())
	}
	checked, err := t.check(ctx)
	if err != nil {
		return "", err
	}
	return t.report(rounds, checked), t.load.history.enough(rounds, !set.treeGoesBack)
}

// round is one round of a scenario, between two times at which all is well.
func (t *trial) round(ctx context.Context, s scenario, round int) error {
	if _, err := t.load.served(ctx); err != nil {
		return fmt.Errorf("before the fault: %w", err)
	}
	if err := t.pause(ctx, 100*time.Millisecond, time.Second); err != nil {
		return err
	}
	before := t.counted()
	if err := s.round(ctx, t, round); err != nil {
		return err
	}
	if t.counted() == before {
		return errors.New("nothing was broken, which proves nothing")
	}
	if _, err := t.load.served(ctx); err != nil {
		return fmt.Errorf("after the repair: %w", err)
	}
	return t.load.whole(ctx)
}

// pause lets a random time pass.
func (t *trial) pause(ctx context.Context, from, to time.Duration) error {
	return wait(ctx, from+time.Duration(t.random.Int64N(int64(to-from)+1)))
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

// fault counts a fault.
func (t *trial) fault(name string) { t.faults[name]++ }

// counted is how many faults there were so far.
func (t *trial) counted() (n int) {
	for _, times := range t.faults {
		n += times
	}
	return n
}

// servedAgain waits until clients are served, and notes how long that took.
func (t *trial) servedAgain(ctx context.Context, when string) error {
	took, err := t.load.served(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", when, err)
	}
	t.load.note("served again after %v: %s", took, when)
	t.outages = append(t.outages, outage{took, when})
	return nil
}

// kill ends brokers with SIGKILL.
func (t *trial) kill(brokers ...*broker) {
	for _, b := range brokers {
		b.Kill()
		t.fault("kill -9")
	}
}

// check ends the load, and looks at what is left.
func (t *trial) check(ctx context.Context) ([]string, error) {
	if err := t.load.stop(ctx); err != nil {
		return nil, err
	}
	defer t.load.client.Close()
	leaks, err := t.leaks(ctx)
	if err != nil {
		return nil, err
	}
	found, err := t.load.finalRead(ctx)
	if err != nil {
		return nil, err
	}
	records, err := t.load.history.compare(found)
	if err != nil {
		return nil, err
	}
	topics, err := t.load.checkTopics(ctx)
	if err != nil {
		return nil, err
	}
	disks, err := t.disks(ctx)
	if err != nil {
		return nil, err
	}
	replicas, err := t.load.placement(ctx, orders, moved)
	if err != nil {
		return nil, err
	}
	for _, b := range t.brokers {
		if err := b.Stop(); err != nil {
			return nil, err
		}
	}
	logs, err := checkLogs(t.brokers, replicas, found)
	return []string{t.load.history.summary(), records, logs, topics, disks, leaks}, err
}

// report is what was done and proved.
func (t *trial) report(rounds int, checked []string) string {
	var faults []string
	for name, n := range t.faults {
		faults = append(faults, fmt.Sprintf("%d %s", n, name))
	}
	slices.Sort(faults)
	lines := []string{fmt.Sprintf("%d rounds: %s", rounds, strings.Join(faults, ", "))}
	lines = append(lines, checked...)
	if len(t.outages) > 0 {
		slices.SortFunc(t.outages, func(a, b outage) int { return cmp.Compare(a.took, b.took) })
		longest := t.outages[len(t.outages)-1]
		lines = append(lines, fmt.Sprintf("served again in every partition after %.2f s in the middle, %.2f s at most: %s",
			t.outages[len(t.outages)/2].took.Seconds(), longest.took.Seconds(), longest.when))
	}
	gap := t.load.history.longestGap(orders)
	lines = append(lines, fmt.Sprintf("%.2f s at most without an acknowledgement, in %v until %s",
		gap.length.Seconds(), gap.partition, gap.end.Format("15:04:05.000")))
	return "    " + strings.Join(lines, "\n    ") + "\n"
}
