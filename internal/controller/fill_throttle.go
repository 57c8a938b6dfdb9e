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
//	/admin/barnabas_balance_throttle   what follows is ours, and these are the rates
//	brokers/<default>   leader.replication.throttled.rate, follower.replication.throttled.rate
//	topics/T            leader.replication.throttled.replicas 0:1,0:2   follower.replication.throttled.replicas 0:4
//	… the moves …
//	topics/T            gone, in all topics
//	brokers/<default>   gone
//	/admin/barnabas_balance_throttle   gone
//
// So a controller that finds the znode knows that there may be lists. Rates that are not in it are an operator's: they stay,
// and hold for what the controller moves as well. What an operator's own tool has set for single brokers, or for all replicas
// (*), is left alone; for single replicas it is left alone unless a balance of ours ends at the same time.

// slowDown writes the throttle of some moves.
func (t *term) slowDown(batch []balance.Move, rate int64) error {
	t.filling.slowed = true
	if err := t.slowBrokers(rate); err != nil {
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

// slowBrokers sets the rates of all brokers, unless an operator has.
func (t *term) slowBrokers(rate int64) error {
	ours, stat, err := t.ownThrottle()
	if err != nil {
		return err
	}
	found, err := t.configured([]metadata.Entity{metadata.BrokerEntity(P.NoBroker)})
	if err != nil {
		return err
	}
	write := !rated(found[0]) || areOf(ours, found[0])
	if stat == nil || write && !slices.Contains(ours, rate) {
		if write {
			ours = append(ours, rate)
		}
		op := coordination.Create(znode.BalanceThrottlePath, znode.EncodeBalanceThrottle(ours), coordination.CreateOptions{})
		if stat != nil {
			op = coordination.Set(znode.BalanceThrottlePath, op.Data, stat.Version)
		}
		if _, err := coordination.FencedTxn(t.ctx, t.session, t.guard, op); err != nil {
			return err
		}
	}
	if !write {
		return nil
	}
	text := strconv.FormatInt(rate, 10)
	return t.configure(metadata.BrokerEntity(P.NoBroker), config.OpSet, config.ThrottledRates[:], []string{text, text})
}

// ownThrottle reads the rates that controllers have written; stat is nil where nothing of theirs is there. A damaged znode
// says that there may be lists, and nothing of rates.
func (t *term) ownThrottle() (rates []int64, stat *coordination.Stat, err error) {
	data, found, err := t.session.Get(t.ctx, znode.BalanceThrottlePath)
	if errors.Is(err, coordination.ErrNoNode) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	rates, _ = znode.DecodeBalanceThrottle(data)
	return rates, &found, nil
}

// rated reports whether there is a rate of all brokers, and areOf whether both are one of those given.
func rated(values map[string]string) bool {
	return values[config.ThrottledRates[0]] != "" || values[config.ThrottledRates[1]] != ""
}

func areOf(rates []int64, values map[string]string) bool {
	return slices.ContainsFunc(rates, func(rate int64) bool {
		text := strconv.FormatInt(rate, 10)
		return values[config.ThrottledRates[0]] == text && values[config.ThrottledRates[1]] == text
	})
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
	ours, stat, err := t.ownThrottle()
	if err != nil {
		return err
	}
	if stat == nil {
		t.filling.slowed = false
		return nil
	}
	if err := t.endLists(); err != nil {
		return err
	}
	found, err := t.configured([]metadata.Entity{metadata.BrokerEntity(P.NoBroker)})
	if err != nil {
		return err
	}
	if areOf(ours, found[0]) {
		if err := t.configure(metadata.BrokerEntity(P.NoBroker), config.OpDelete, config.ThrottledRates[:], nil); err != nil {
			return err
		}
	}
	if _, err := coordination.FencedTxn(t.ctx, t.session, t.guard, coordination.Delete(znode.BalanceThrottlePath, stat.Version)); err != nil {
		return err
	}
	t.filling.slowed = false
	t.purgeConfigChanges(t.ctx)
	return nil
}

// endLists takes away the lists of single replicas of all topics.
func (t *term) endLists() error {
	var topics []metadata.Entity
	for _, name := range t.cluster.image.Topics() {
		topics = append(topics, metadata.TopicEntity(name))
	}
	found, err := t.configured(topics)
	if err != nil {
		return err
	}
	for i, values := range found {
		if listed := lists(values); len(listed) > 0 {
			if err := t.configure(topics[i], config.OpDelete, listed, nil); err != nil && P.CodeOf(err) != P.UnknownTopicOrPartition {
				return err
			}
		}
	}
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
