package controller

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/balance"
	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// The throttle of what the controller moves by itself, in the order in which it is written:
//
//	brokers/<default>   leader.replication.throttled.rate, follower.replication.throttled.rate
//	topics/T            leader.replication.throttled.replicas 0:1,0:2   follower.replication.throttled.replicas 0:4
//	… the moves …
//	topics/T            gone, in all topics
//	brokers/<default>   gone
//
// The rates are there from before the first list to after the last one, so that a controller which finds them knows
// that there may be lists. What an operator's own tool has set for single brokers is left alone; for replicas it is
// left alone unless a balance of ours ends at the same time.
var (
	throttledRates    = []string{"leader.replication.throttled.rate", "follower.replication.throttled.rate"}
	throttledReplicas = []string{"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}
)

// slowDown writes the throttle of some moves.
func (t *term) slowDown(batch []balance.Move, rate int64) error {
	t.filling.slowed = true
	text := strconv.FormatInt(rate, 10)
	if err := t.configure(metadata.BrokerEntity(P.NoBroker), config.OpSet, throttledRates, []string{text, text}); err != nil {
		return err
	}
	lists := map[string][2][]string{}
	for _, m := range batch {
		of := lists[m.Topic]
		for side, ids := range [][]P.BrokerID{m.From, m.Adding()} {
			for _, id := range ids {
				of[side] = append(of[side], fmt.Sprintf("%d:%d", m.Partition, id))
			}
		}
		lists[m.Topic] = of
	}
	for _, name := range sortedNames(lists) {
		of := lists[name]
		if err := t.configure(metadata.TopicEntity(name), config.OpAppend, throttledReplicas, []string{strings.Join(of[0], ","), strings.Join(of[1], ",")}); err != nil {
			return err
		}
	}
	return nil
}

// endFill takes away the throttle that this controller, or one before it, has written.
func (t *term) endFill() error {
	if !t.filling.slowed {
		return nil
	}
	found, err := t.configured([]metadata.Entity{metadata.BrokerEntity(P.NoBroker)})
	if err != nil {
		return err
	}
	if !holdsAny(found[0], throttledRates) {
		t.filling.slowed = false
		return nil
	}
	var topics []metadata.Entity
	for _, name := range t.cluster.image.Topics() {
		topics = append(topics, metadata.TopicEntity(name))
	}
	if found, err = t.configured(topics); err != nil {
		return err
	}
	for i, values := range found {
		if holdsAny(values, throttledReplicas) {
			if err := t.configure(topics[i], config.OpDelete, throttledReplicas, nil); err != nil && P.CodeOf(err) != P.UnknownTopicOrPartition {
				return err
			}
		}
	}
	if err := t.configure(metadata.BrokerEntity(P.NoBroker), config.OpDelete, throttledRates, nil); err != nil {
		return err
	}
	t.filling.slowed = false
	t.purgeConfigChanges(t.ctx)
	return nil
}

// configured reads what is set on entities; nil where nothing is, or where it is damaged.
func (t *term) configured(entities []metadata.Entity) ([]map[string]string, error) {
	paths := make([]string, len(entities))
	for i, entity := range entities {
		paths[i] = znode.EntityPath(entity)
	}
	found, err := t.session.GetMany(t.ctx, paths)
	if err != nil {
		return nil, err
	}
	all := make([]map[string]string, len(entities))
	for i, r := range found {
		if r.Err != nil && !errors.Is(r.Err, coordination.ErrNoNode) {
			return nil, r.Err
		}
		if values, err := znode.DecodeConfig(entities[i], r.Data); err == nil {
			all[i] = values
		}
	}
	return all, nil
}

// holdsAny reports whether one of some properties is set; a list of all replicas is an operator's.
func holdsAny(values map[string]string, keys []string) bool {
	for _, key := range keys {
		if value, ok := values[key]; ok && value != "*" {
			return true
		}
	}
	return false
}

// configure changes properties of an entity; values may be nil where they are deleted.
func (t *term) configure(entity metadata.Entity, kind config.OpKind, keys, values []string) error {
	change := ConfigChange{Entity: entity}
	for i, key := range keys {
		op := config.Op{Name: key, Kind: kind}
		if values != nil {
			op.Value = &values[i]
		}
		change.Ops = append(change.Ops, op)
	}
	return t.alterConfig(t.ctx, change, false)
}
