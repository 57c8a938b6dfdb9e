package controller

import (
	"errors"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// readRequests looks at the znodes by which old tools ask for reassignments and elections.
func (t *term) readRequests() error {
	if !t.look.requests {
		return nil
	}
	if err := t.readElection(); err != nil {
		return err
	}
	if err := t.readReassignments(); err != nil {
		return err
	}
	t.look.requests = false
	return nil
}

// readElection makes preferred replicas lead as somebody has asked for, as far as they can, and takes the
// request away.
func (t *term) readElection() error {
	data, stat, err := t.session.Get(t.ctx, znode.PreferredElectionPath)
	switch {
	case errors.Is(err, coordination.ErrNoNode):
		return nil
	case err != nil:
		return err
	}
	partitions, err := znode.DecodePartitions(znode.PreferredElectionPath, data)
	if err != nil {
		t.controller.options.Logger.Error("controller: a request for preferred leaders is damaged, and is dropped", "error", err)
	}
	if len(partitions) > 0 {
		if _, err := t.electLeaders(PreferredElection, partitions); err != nil {
			return err
		}
	}
	return t.drop(znode.PreferredElectionPath, stat.Version)
}

// drop removes a request that has been seen in this version; one that has changed since is read again.
func (t *term) drop(path string, version int32) error {
	_, err := coordination.FencedTxn(t.ctx, t.session, t.guard, coordination.Delete(path, version))
	if errors.Is(err, coordination.ErrNoNode) || errors.Is(err, coordination.ErrBadVersion) && !errors.Is(err, coordination.ErrFenced) {
		return nil
	}
	return err
}

// readReassignments begins the reassignments that somebody has asked for and that are not under way.
func (t *term) readReassignments() error {
	data, _, err := t.session.Get(t.ctx, znode.ReassignPartitionsPath)
	switch {
	case errors.Is(err, coordination.ErrNoNode):
		t.requested = nil
		return nil
	case err != nil:
		return err
	}
	wanted, err := znode.DecodeReassignments(data)
	if err != nil {
		t.controller.options.Logger.Error("controller: a request for reassignments is damaged, and is dropped", "error", err)
	}
	var fresh []Reassignment
	for _, r := range wanted {
		known := slices.ContainsFunc(t.requested, func(o znode.Reassignment) bool {
			return o.TopicPartition == r.TopicPartition && slices.Equal(o.Replicas, r.Replicas)
		})
		if r.Replicas == nil {
			r.Replicas = []P.BrokerID{} // a list that is missing takes nothing back
		}
		if !known {
			fresh = append(fresh, Reassignment(r))
		}
	}
	results, err := t.reassign(fresh, false)
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Err != nil {
			t.controller.options.Logger.Warn("controller: a partition cannot be reassigned as was asked for", "partition", r.String(), "error", r.Err)
		}
	}
	t.requested = append([]znode.Reassignment{}, wanted...) // not nil: also an empty one is taken away
	t.look.moves = true                                     // what has nothing to do is taken out at once
	return nil
}

// shrinkRequest takes what is not under way any more out of the request of an old tool, which waits for that.
func (t *term) shrinkRequest() error {
	if t.requested == nil {
		return nil
	}
	left := slices.DeleteFunc(slices.Clone(t.requested), func(r znode.Reassignment) bool {
		return !t.moving[r.TopicPartition] && t.ending[r.TopicPartition] == nil
	})
	if len(left) == len(t.requested) && len(left) > 0 {
		return nil
	}
	data, stat, err := t.session.Get(t.ctx, znode.ReassignPartitionsPath)
	if errors.Is(err, coordination.ErrNoNode) {
		t.requested = nil
		return nil
	}
	if err != nil {
		return err
	}
	if now, err := znode.DecodeReassignments(data); err == nil && len(now) != len(t.requested) {
		t.look.requests = true // it is not the one that was read
		return nil
	}
	if len(left) == 0 {
		t.requested = nil
		return t.drop(znode.ReassignPartitionsPath, stat.Version)
	}
	_, err = coordination.FencedTxn(t.ctx, t.session, t.guard, coordination.Set(znode.ReassignPartitionsPath, znode.EncodeReassignments(left), stat.Version))
	if err == nil {
		t.requested = left
	}
	return err
}
