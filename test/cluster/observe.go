package main

import (
	"context"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// glance is how often observers look, and glanceLimit how long a look may take.
const (
	glance      = 100 * time.Millisecond
	glanceLimit = 5 * time.Second
)

// every calls do at a pace until the load ends, with so long for each call.
func (l *load) every(ctx context.Context, pace, limit time.Duration, do func(context.Context)) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-l.others.done:
			return
		}
		limited, cancel := context.WithTimeout(ctx, limit)
		do(limited)
		cancel()
	}
}

// observeWatermarks asks for the ends of all partitions, again and again.
func (l *load) observeWatermarks(ctx context.Context) {
	l.every(ctx, glance, glanceLimit, func(ctx context.Context) {
		ends, err := l.admin.ListEndOffsets(ctx, orders, moved)
		if err != nil {
			return // partly, or at all: the next look may tell
		}
		for topic, partitions := range ends {
			for partition, end := range partitions {
				if end.Err == nil {
					l.history.high(topicPartition{topic, partition}, mark{end.LeaderEpoch, end.Offset})
				}
			}
		}
	})
}

// treeView is what the tree has shown so far.
type treeView struct {
	history    *history
	controller protocol.ControllerEpoch
	states     map[protocol.TopicPartition]znode.State
	// leaders are who led in which epoch.
	leaders map[protocol.TopicPartition]map[protocol.LeaderEpoch]protocol.BrokerID
}

// observeTree looks at the controller epoch and the states of partitions. Where the tree is set back on purpose,
// the scenario asks for no such observer.
func (l *load) observeTree(ctx context.Context, c *cluster) {
	if c.settings.treeGoesBack {
		return
	}
	view := newTreeView(l.history)
	var partitions []protocol.TopicPartition
	paths := []string{znode.ControllerEpochPath}
	for topic, n := range map[string]int{orders: l.partitions, moved: movedPartitions} {
		for partition := range int32(n) {
			tp := protocol.TopicPartition{Topic: topic, Partition: partition}
			partitions, paths = append(partitions, tp), append(paths, znode.StatePath(tp))
		}
	}
	var session coordination.Session
	l.every(ctx, glance, glanceLimit, func(ctx context.Context) {
		if session == nil {
			var err error
			if session, err = c.openSession(ctx); err != nil {
				return
			}
		}
		results, err := session.GetMany(ctx, paths)
		if err == nil {
			view.look(partitions, results)
		}
		select {
		case <-session.Done():
			session = nil
		default:
		}
	})
	if session != nil {
		_ = session.Close() // it expires otherwise
	}
}

func newTreeView(h *history) *treeView {
	return &treeView{
		history: h, states: map[protocol.TopicPartition]znode.State{},
		leaders: map[protocol.TopicPartition]map[protocol.LeaderEpoch]protocol.BrokerID{},
	}
}

// look takes one picture of the tree.
func (v *treeView) look(partitions []protocol.TopicPartition, results []coordination.GetResult) {
	if results[0].Err == nil {
		v.history.observed()
		epoch, err := znode.DecodeControllerEpoch(results[0].Data)
		if err != nil || epoch < v.controller {
			v.history.contradict("the controller epoch is %q after %d", results[0].Data, v.controller)
		}
		v.controller = epoch
	}
	for i, tp := range partitions {
		if results[i+1].Err == nil {
			v.state(tp, results[i+1].Data)
		}
	}
}

// state compares a partition's state with those before it: epochs do not fall, an epoch has one leader, and the
// in-sync set is never empty and holds the leader.
func (v *treeView) state(tp protocol.TopicPartition, data []byte) {
	s, err := znode.DecodeState(tp, data)
	if err != nil {
		v.history.contradict("%v: %w", tp, err)
		return
	}
	before, known := v.states[tp]
	if known && (s.LeaderEpoch < before.LeaderEpoch || s.ControllerEpoch < before.ControllerEpoch) {
		v.history.contradict("%v: the state %s comes after leader epoch %d and controller epoch %d", tp, data, before.LeaderEpoch, before.ControllerEpoch)
	}
	if len(s.ISR) == 0 || s.Leader != protocol.NoBroker && !slices.Contains(s.ISR, s.Leader) {
		v.history.contradict("%v: the in-sync set of %s is none", tp, data)
	}
	if v.leaders[tp] == nil {
		v.leaders[tp] = map[protocol.LeaderEpoch]protocol.BrokerID{}
	}
	if leader, led := v.leaders[tp][s.LeaderEpoch]; led && leader != s.Leader {
		v.history.contradict("%v: brokers %d and %d lead in epoch %d", tp, leader, s.Leader, s.LeaderEpoch)
	}
	v.leaders[tp][s.LeaderEpoch], v.states[tp] = s.Leader, s
}
