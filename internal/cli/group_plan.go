package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// resetPlan is what a reset will do.
type resetPlan struct {
	// partitions are sorted.
	partitions []admin.TopicPartition
	committed  admin.Positions
	target     admin.Positions
}

// committedAt is -1 where the group has no offset.
func (p *resetPlan) committedAt(at admin.TopicPartition) int64 {
	if offset, ok := p.committed[at]; ok {
		return offset
	}
	return -1
}

// plan finds out where the group is and where it is to be.
func (f *groupResetFlags) plan(ctx context.Context, client *admin.Client, name string) (*resetPlan, error) {
	committed, err := client.Committed(ctx, name)
	if err != nil {
		return nil, err
	}
	plan := &resetPlan{committed: offsetsByPartition(committed), target: admin.Positions{}}
	source := committed
	if f.toGroup != "" {
		if source, err = client.Committed(ctx, f.toGroup); err != nil {
			return nil, err
		}
	}
	if len(f.topics) > 0 {
		if plan.partitions, err = choosePartitions(ctx, client, f.topics); err != nil {
			return nil, err
		}
	} else {
		for _, o := range source {
			plan.partitions = append(plan.partitions, o.TopicPartition)
		}
	}
	targets, err := f.targets(ctx, client, plan, offsetsByPartition(source))
	if err != nil {
		return nil, err
	}
	for i, at := range plan.partitions {
		plan.target[at] = targets[i]
	}
	return plan, nil
}

func offsetsByPartition(committed []admin.Committed) admin.Positions {
	offsets := make(admin.Positions, len(committed))
	for _, o := range committed {
		offsets[o.TopicPartition] = o.Offset
	}
	return offsets
}

// targets are the new offsets of the plan's partitions; source are the offsets that --shift and --to-group
// begin from.
//
// Targets are held between a partition's start and end. Beyond them a consumer would fall back to
// auto.offset.reset, and a reset by a shift too large would read everything again or nothing.
func (f *groupResetFlags) targets(ctx context.Context, client *admin.Client, plan *resetPlan, source admin.Positions) ([]int64, error) {
	b := bounds{client: client, partitions: plan.partitions}
	if len(plan.partitions) == 0 {
		return nil, nil
	}
	if f.to != "" {
		to, err := parsePoint("--to", f.to, time.Now())
		if err != nil {
			return nil, err
		}
		return b.of(ctx, to)
	}
	for _, at := range plan.partitions {
		if _, ok := source[at]; !ok {
			return nil, fmt.Errorf("there is no committed offset of %s-%d to begin from", at.Topic, at.Partition)
		}
	}
	wanted := make([]int64, len(plan.partitions))
	for i, at := range plan.partitions {
		wanted[i] = source[at] + f.shift
	}
	return b.clamp(ctx, wanted)
}
