package controller

import (
	"errors"
	"slices"
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
// that there may be lists. They are ours where they are auto.balance.throttled.rate, or what this term has written: other
// rates and whatever stands beside them are an operator's. What an operator's own tool has set for single brokers, or for
// all replicas (*), is left alone; for single replicas it is left alone unless a balance of ours ends at the same time.

// slowDown writes the throttle of some moves.
func (t *term) slowDown(batch []balance.Move, rate int64) error {
	t.filling.slowed, t.filling.rate = true, rate
	text := strconv.FormatInt(rate, 10)
	if err := t.configure(metadata.BrokerEntity(P.NoBroker), config.OpSet, config.ThrottledRates[:], []string{text, text}); err != nil {
		return err
	}
	byTopic := map[string][2][]string{}
	for _, m := range batch {
		of := byTopic[m.Topic]
		for side, ids := range [][]P.BrokerID{m.From, m.Adding()} {
			for _, id := range ids {
				of[side] = append(of[side], config.ThrottledReplica(m.Partition, id))
			}
		}
		byTopic[m.Topic] = of
	}
	for _, name := range sortedNames(byTopic) {
		if err := t.slowDownTopic(metadata.TopicEntity(name), byTopic[name]); err != nil {
			return err
		}
	}
	return nil
}

// slowDownTopic adds to the lists of a topic; one of all replicas (*) has them already, and takes nothing beside it.
func (t *term) slowDownTopic(topic metadata.Entity, sides [2][]string) error {
	found, err := t.configured([]metadata.Entity{topic})
	if err != nil {
		return err
	}
	var keys, values []string
	for side, key := range config.ThrottledLists {
		if found[0][key] != config.AllReplicas {
			keys, values = append(keys, key), append(values, strings.Join(sides[side], ","))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return t.configure(topic, config.OpAppend, keys, values)
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
	if !t.oursAre(found[0]) {
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
		if listed := lists(values); len(listed) > 0 {
			if err := t.configure(topics[i], config.OpDelete, listed, nil); err != nil && P.CodeOf(err) != P.UnknownTopicOrPartition {
				return err
			}
		}
	}
	if err := t.configure(metadata.BrokerEntity(P.NoBroker), config.OpDelete, config.ThrottledRates[:], nil); err != nil {
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

// oursAre reports whether the rates of all brokers are what a controller writes.
func (t *term) oursAre(values map[string]string) bool {
	rates := []int64{t.filling.rate, t.controller.options.Config().Long("auto.balance.throttled.rate")}
	return slices.ContainsFunc(rates, func(rate int64) bool {
		text := strconv.FormatInt(rate, 10)
		return rate > 0 && values[config.ThrottledRates[0]] == text && values[config.ThrottledRates[1]] == text
	})
}

// lists are the keys under which single replicas of a topic are slowed down.
func lists(values map[string]string) []string {
	var keys []string
	for _, key := range config.ThrottledLists {
		if value, ok := values[key]; ok && value != config.AllReplicas {
			keys = append(keys, key)
		}
	}
	return keys
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
