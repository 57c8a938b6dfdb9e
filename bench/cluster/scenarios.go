package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/bench/results"
	"github.com/barnabas-mq/barnabas/bench/servers"
)

// Properties are those that every broker of either side has. Until a session is over nobody knows that its broker was
// killed: what a loss costs is counted from there.
func Properties() []string {
	return append([]string{"zookeeper.session.timeout.ms=6000"}, servers.DeleteAtOnce()...)
}

// Scenario is one thing that is measured of a cluster.
type Scenario struct {
	// Name is what it is called on the command line, What says in a line what it is.
	Name, What string
	// WritesMuch says that a round takes so much memory for what it writes that the machine's must be in the same
	// state before each.
	WritesMuch bool

	partitions int  // made beforehand
	warm       bool // the first round does not count: a JVM compiles what it does often
	round      func(context.Context, *Stage) ([]Figure, error)
	goals      goals
}

// Scenarios are all that there are.
func Scenarios() []Scenario {
	return []Scenario{
		{
			Name: "cluster-produce-1k", What: "1,000,000 records of 1 KiB, three replicas, acks=all, one client", WritesMuch: true, warm: true,
			round: onItsOwn(produce(1024, 1_000_000)),
			goals: goals{produceRate: results.AtLeast(2, results.Kafka), brokerCPU: results.AtMost(1./3, results.Kafka)},
		}, {
			Name: "cluster-produce-100", What: "5,000,000 records of 100 B, three replicas, acks=all, one client", WritesMuch: true, warm: true,
			round: onItsOwn(produce(100, 5_000_000)),
			goals: goals{produceRate: results.AtLeast(1.5, results.Kafka)},
		}, {
			Name: "cluster-latency", What: "1,000 records of 100 B a second, three replicas, acks=all, to a consumer", warm: true,
			round: onItsOwn(latency),
			goals: goals{latencyP50: results.AtMost(3, ""), latencyP99: results.AtMost(15, "")},
		}, {
			Name: "cluster-idle", What: "1,000 partitions of three replicas, without clients", partitions: 1000,
			round: idle,
			goals: goals{brokerCPU: results.AtMost(5, "")},
		}, {
			Name: "cluster-create", What: "create 1,000 partitions of three replicas", partitions: 100, warm: true,
			round: onItsOwn(create),
			goals: goals{inSyncFull: results.AtMost(2, "")},
		}, {
			Name: "cluster-lose-1000", What: "kill -9 of a broker that leads a third of 1,000 partitions", partitions: 1000, warm: true,
			round: lose(Other),
			goals: goals{lastLeader: results.AtMost(0.2, "")},
		}, {
			Name: "cluster-lose-10000", What: "kill -9 of a broker that leads a third of 10,000 partitions", partitions: 10_000,
			round: lose(Other),
			goals: goals{lastLeader: results.AtMost(1.5, "")},
		}, {
			Name: "cluster-lose-controller-1500", What: "kill -9 of the controller, which leads a third of 1,500 partitions", partitions: 1500, warm: true,
			round: lose(Controller),
			goals: goals{lastLeader: results.AtMost(0.5, "")},
		}, {
			Name: "cluster-lose-controller-10000", What: "kill -9 of the controller, which leads a third of 10,000 partitions", partitions: 10_000,
			round: lose(Controller),
			goals: goals{lastLeader: results.AtMost(2, "")},
		}, {
			Name: "cluster-stop", What: "SIGTERM to a broker that leads a third of 3,000 partitions, under an idempotent producer", partitions: 3000, warm: true,
			round: stop,
			goals: goals{processGone: results.AtMost(1, "")},
		},
	}
}

// onItsOwn has each round make partitions of its own, which are deleted after it: so all rounds find the same cluster.
func onItsOwn(round func(context.Context, *Stage) ([]Figure, error)) func(context.Context, *Stage) ([]Figure, error) {
	return func(ctx context.Context, s *Stage) ([]Figure, error) {
		own, err := NewStage(ctx, s.cluster)
		if err != nil {
			return nil, err
		}
		defer own.Close()
		figures, err := round(ctx, own)
		if err != nil {
			return nil, err
		}
		return figures, own.Delete(ctx)
	}
}

func produce(size int, records int64) func(context.Context, *Stage) ([]Figure, error) {
	return func(ctx context.Context, s *Stage) ([]Figure, error) { return s.Produce(ctx, size, records) }
}

func latency(ctx context.Context, s *Stage) ([]Figure, error) {
	return s.Latency(ctx, 1000, 10*time.Second)
}

func idle(ctx context.Context, s *Stage) ([]Figure, error) { return s.Idle(ctx, 30*time.Second) }

func create(ctx context.Context, s *Stage) ([]Figure, error) { return s.Create(ctx, 1000) }

func lose(victim Victim) func(context.Context, *Stage) ([]Figure, error) {
	return func(ctx context.Context, s *Stage) ([]Figure, error) { return s.Lose(ctx, victim) }
}

func stop(ctx context.Context, s *Stage) ([]Figure, error) { return s.Stop(ctx) }

// Measure runs the scenario on a running cluster that nothing else was done with: it calls one for every round, which
// has that measured when the machine is ready. The rounds use the same brokers, one after the other, and count from 1;
// where the brokers are to be warm, there is a round 0, which does not count.
func (s Scenario) Measure(ctx context.Context, c *servers.Cluster, rounds int, one func(round int, measured func() ([]Figure, error)) error) error {
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
	first := 1
	if s.warm {
		first = 0
	}
	measured := func() ([]Figure, error) {
		figures, err := s.round(ctx, stage)
		for i := range figures {
			figures[i].Goal = s.goals[figures[i].Name]
		}
		return figures, err
	}
	for round := first; round <= rounds; round++ {
		if err := one(round, measured); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}
