package cluster

import (
	"context"
	"time"
)

// settle is how long a cluster is left alone before its idling counts: by then what creations have begun is over. What
// brokers do by themselves later, as ours sync what was written half a minute ago, is part of idling.
const settle = 20 * time.Second

// Idle measures what the brokers take while nothing happens, all together.
func (s *Stage) Idle(ctx context.Context, of time.Duration) ([]Figure, error) {
	if err := pause(ctx, settle); err != nil {
		return nil, err
	}
	before, err := s.cluster.Usage()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := pause(ctx, of); err != nil {
		return nil, err
	}
	after, err := s.cluster.Usage()
	if err != nil {
		return nil, err
	}
	return []Figure{
		{Name: brokerCPU, Unit: "% of a core", Value: 100 * (after.CPU - before.CPU) / time.Since(began).Seconds()},
		{Name: "memory of the brokers", Unit: "MB", Value: float64(after.RSS) / 1e6},
	}, nil
}
