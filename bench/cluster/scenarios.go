package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/bench/servers"
)

// Session is the property that every broker has: zookeeper.session.timeout.ms. Until it is over nobody knows that a
// broker was killed; no clock here runs before.
const Session = "zookeeper.session.timeout.ms=6000"

// Scenario is one thing that is measured of a cluster.
type Scenario struct {
	// Name is what it is called on the command line, What says in a line what it is.
	Name, What string

	partitions int  // made beforehand
	warm       bool // the first round does not count: a JVM compiles what it does often
	round      func(context.Context, *Stage) ([]Figure, error)
}

// Scenarios are all that there are.
func Scenarios() []Scenario {
	lose := func(victim Victim) func(context.Context, *Stage) ([]Figure, error) {
		return func(ctx context.Context, s *Stage) ([]Figure, error) { return s.Lose(ctx, victim) }
	}
	return []Scenario{
		{"cluster-produce-1k", "1,000,000 records of 1 KiB, three replicas, acks=all, one client", 0, true, produce(1024, 1_000_000, goals{rate: 2, cpu: 1. / 3})},
		{"cluster-produce-100", "5,000,000 records of 100 B, three replicas, acks=all, one client", 0, true, produce(100, 5_000_000, goals{rate: 1.5})},
		{"cluster-latency", "1,000 records of 100 B a second, three replicas, acks=all, to a consumer", 0, true, latency},
		{"cluster-idle", "1,000 partitions of three replicas, without clients", 1000, false, idle},
		{"cluster-create", "create 1,000 partitions of three replicas", 100, true, create},
		{"cluster-lose-1000", "kill -9 of a broker that leads a third of 1,000 partitions", 1000, true, lose(Other)},
		{"cluster-lose-10000", "kill -9 of a broker that leads a third of 10,000 partitions", 10_000, false, lose(Other)},
		{"cluster-lose-controller-1500", "kill -9 of the controller, which leads a third of 1,500 partitions", 1500, true, lose(Controller)},
		{"cluster-lose-controller-10000", "kill -9 of the controller, which leads a third of 10,000 partitions", 10_000, false, lose(Controller)},
		{"cluster-stop", "SIGTERM to a broker that leads a third of 3,000 partitions, under an idempotent producer", 3000, true, stop},
	}
}

func produce(size int, records int64, goal goals) func(context.Context, *Stage) ([]Figure, error) {
	return func(ctx context.Context, s *Stage) ([]Figure, error) { return s.Produce(ctx, size, records, goal) }
}

func latency(ctx context.Context, s *Stage) ([]Figure, error) {
	return s.Latency(ctx, 1000, 10*time.Second)
}

func idle(ctx context.Context, s *Stage) ([]Figure, error) { return s.Idle(ctx, 30*time.Second) }

func create(ctx context.Context, s *Stage) ([]Figure, error) {
	fresh, err := NewStage(ctx, s.cluster) // that looks only at what it makes itself
	if err != nil {
		return nil, err
	}
	defer fresh.Close()
	return fresh.Create(ctx, 1000)
}

func stop(ctx context.Context, s *Stage) ([]Figure, error) { return s.Stop(ctx) }

// Measure runs the scenario on a running cluster that nothing else was done with: it calls before ahead of every round,
// and each with the figures of it. The rounds use the same brokers, one after the other; where the brokers are to be
// warm, one comes before that does not count.
func (s Scenario) Measure(ctx context.Context, c *servers.Cluster, rounds int, before func() error, each func(...Figure)) error {
	stage, err := NewStage(ctx, c)
	if err != nil {
		return err
	}
	defer stage.Close()
	if s.partitions > 0 {
		if _, err := stage.Create(ctx, s.partitions); err != nil {
			return err
		}
	}
	if s.warm {
		if _, err := s.round(ctx, stage); err != nil {
			return fmt.Errorf("before the first round: %w", err)
		}
	}
	for round := range rounds {
		if err := before(); err != nil {
			return err
		}
		figures, err := s.round(ctx, stage)
		if err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		each(figures...)
	}
	return nil
}
