package cluster

import (
	"context"
	"time"
)

// Lose kills a broker, which leads about a third of the partitions, and starts it again afterwards. The clock starts
// when its node is gone.
func (s *Stage) Lose(ctx context.Context, victim Victim) ([]Figure, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	id, leaders, err := s.choose(ctx, victim)
	if err != nil {
		return nil, err
	}
	since, err := s.kill(ctx, id)
	if err != nil {
		return nil, err
	}
	rest := s.without(id)
	led, err := s.asker.see(ctx, since, rest, ledByOther(id))
	if err != nil {
		return nil, err
	}
	acked, err := s.asker.acknowledge(ctx, since, rest[0])
	if err != nil {
		return nil, err
	}
	full, err := s.restore(ctx, id)
	return []Figure{
		count("leaders lost", int64(leaders)), seconds(lastLeader, led), seconds("acks=all everywhere", acked),
		seconds("back, every in-sync set full", full),
	}, err
}

// kill returns when the broker's node is gone, and says when that was.
func (s *Stage) kill(ctx context.Context, id int32) (time.Time, error) {
	node, err := watchRegistration(ctx, s.cluster, id)
	if err != nil {
		return time.Time{}, err
	}
	defer node.close()
	s.cluster.Brokers[id-1].Kill()
	return node.gone(ctx)
}
