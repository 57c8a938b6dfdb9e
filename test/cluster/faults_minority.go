package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// twoLost is a round in which two brokers of three are lost one after the other. With a minimum of one the last one
// serves alone; with a minimum of two nothing more is acknowledged until one is back.
func twoLost(ctx context.Context, t *trial, _ int) error {
	order := t.random.Perm(3)
	one, two := t.brokers[order[0]], t.brokers[order[1]]
	t.kill(one)
	if err := t.servedAgain(ctx, fmt.Sprintf("broker %d is lost", one.id)); err != nil {
		return err
	}
	t.kill(two)
	if err := t.alone(ctx); err != nil {
		return err
	}
	back := []*broker{one, two}
	t.random.Shuffle(2, func(i, j int) { back[i], back[j] = back[j], back[i] })
	if err := back[0].Start(); err != nil {
		return err
	}
	if err := t.servedAgain(ctx, fmt.Sprintf("broker %d is back", back[0].id)); err != nil {
		return err
	}
	return back[1].Start()
}

// alone is what must hold while one broker is left.
func (t *trial) alone(ctx context.Context) error {
	if t.settings.minISR == 1 {
		return t.servedAgain(ctx, "one broker is left")
	}
	since := time.Now()
	if err := t.pause(ctx, 0, t.settings.session+t.settings.lag); err != nil {
		return err
	}
	return t.load.history.unservedSince(orders, since)
}

// lastOne kills two brokers one after the other, each when clients are served without the one before, and returns the third.
func (t *trial) lastOne(ctx context.Context) (*broker, error) {
	order := t.random.Perm(3)
	for _, i := range order[:2] {
		t.kill(t.brokers[i])
		if err := t.servedAgain(ctx, fmt.Sprintf("broker %d is lost", i)); err != nil {
			return nil, err
		}
	}
	return t.brokers[order[2]], nil
}

// lastStands is a round in which the last broker of a set goes down too, killed or stopped, and the others come back
// before it: what it alone acknowledged is not lost, so nobody leads until it is back.
func lastStands(kill bool) func(context.Context, *trial, int) error {
	return func(ctx context.Context, t *trial, _ int) error {
		last, err := t.lastOne(ctx)
		if err != nil {
			return err
		}
		if kill {
			t.kill(last)
		} else if err := last.Stop(); err != nil {
			return err
		} else {
			t.fault("SIGTERM")
		}
		since := time.Now()
		if err := start(t.others(last)); err != nil {
			return err
		}
		if err := t.leaderless(ctx, last); err != nil {
			return err
		}
		if err := t.explained(ctx, last, fmt.Sprintf("%d is down", last.id)); err != nil {
			return err
		}
		if err := t.pause(ctx, 0, second(2)); err != nil {
			return err
		}
		if err := t.load.history.unservedSince(orders, since); err != nil {
			return err
		}
		if err := last.Start(); err != nil {
			return err
		}
		return t.servedAgain(ctx, "the last one is back")
	}
}

// leaderless waits until the tree says that nobody leads orders, and that only one broker may.
func (t *trial) leaderless(ctx context.Context, last *broker) error {
	return t.load.until(ctx, "partitions without a leader", func(ctx context.Context) error {
		states, err := t.states(ctx, orders, t.settings.partitions)
		if err != nil {
			return err
		}
		for i, s := range states {
			if s.Leader != protocol.NoBroker || !slices.Equal(s.ISR, []protocol.BrokerID{protocol.BrokerID(last.id)}) {
				return fmt.Errorf("%s-%d has leader %d and in-sync replicas %v, broker %d was the last", orders, i, s.Leader, s.ISR, last.id)
			}
		}
		return nil
	})
}

// explained waits until barnabas cluster status says that partitions are offline and why the last one does not lead.
func (t *trial) explained(ctx context.Context, last *broker, why string) error {
	asked := t.others(last)[0]
	return t.load.until(ctx, "an explanation", func(ctx context.Context) error {
		output, err := exec.CommandContext(ctx, asked.Program, "cluster", "status", "-o", "tsv", "-b", asked.Address).CombinedOutput()
		if _, unwell := errors.AsType[*exec.ExitError](err); err != nil && !unwell {
			return err
		}
		for line := range strings.Lines(string(output)) {
			if strings.HasPrefix(line, orders) && strings.Contains(line, "offline") && strings.Contains(line, why) {
				return nil
			}
		}
		return fmt.Errorf("cluster status does not say that %s: %s", why, output)
	})
}

// minimumChanges is a round in which the minimum falls and rises while a set shrinks.
func minimumChanges(ctx context.Context, t *trial, _ int) error {
	order := t.random.Perm(3)
	one, two := t.brokers[order[0]], t.brokers[order[1]]
	if err := t.setMinimum(ctx, 1); err != nil {
		return err
	}
	t.kill(one)
	if err := t.pause(ctx, 0, t.settings.session); err != nil {
		return err
	}
	if err := t.setMinimum(ctx, 2); err != nil {
		return err
	}
	t.kill(two)
	if err := t.pause(ctx, 0, t.settings.session); err != nil {
		return err
	}
	if err := t.setMinimum(ctx, 1); err != nil {
		return err
	}
	if err := t.servedAgain(ctx, "the minimum is one and one broker is left"); err != nil {
		return err
	}
	if err := t.setMinimum(ctx, 2); err != nil {
		return err
	}
	if err := one.Start(); err != nil {
		return err
	}
	return two.Start()
}

// setMinimum changes min.insync.replicas of orders.
func (t *trial) setMinimum(ctx context.Context, n int) error {
	t.fault("minimum changed")
	return t.load.until(ctx, "the minimum to be changed", func(ctx context.Context) error {
		return alter(ctx, t.load.admin, orders, "min.insync.replicas", fmt.Sprint(n))
	})
}
