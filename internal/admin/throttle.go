package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// The properties that slow replication down (KIP-73):
//
//	broker  leader.replication.throttled.rate      bytes a second that it sends for the replicas named below
//	broker  follower.replication.throttled.rate    bytes a second that it fetches for them
//	topic   leader.replication.throttled.replicas      0:1,0:2,3:1   partition 0 on brokers 1 and 2, …
//	topic   follower.replication.throttled.replicas    0:4
//
// On the leading side all present replicas of a partition are named, since any may come to lead; on the following
// side those that are added, so that who was in sync stays so.

// Throttle is how a broker is slowed down; -1 where it is not.
type Throttle struct {
	Broker           int32
	Leader, Follower int64
}

// Throttles are those of brokers that have any, and why some do not tell.
func (c *Client) Throttles(ctx context.Context, brokers []int32) ([]Throttle, map[int32]error) {
	var all []Throttle
	silent := map[int32]error{}
	for _, id := range brokers {
		asking, cancel := c.limitOne(ctx)
		resources, err := c.describeConfigs(asking, kmsg.ConfigResourceTypeBroker, []string{strconv.Itoa(int(id))}, config.ThrottledRates[:])
		cancel()
		if err == nil {
			err = resources[0].Err
		}
		if err != nil {
			silent[id] = err
			continue
		}
		rate := func(key string) int64 {
			for _, e := range resources[0].Entries {
				if n, err := strconv.ParseInt(e.Text(), 10, 64); e.Name == key && err == nil {
					return n
				}
			}
			return -1
		}
		if t := (Throttle{id, rate(config.ThrottledRates[0]), rate(config.ThrottledRates[1])}); t.Leader >= 0 || t.Follower >= 0 {
			all = append(all, t)
		}
	}
	return all, silent
}

// throttled is which replicas of which partitions are slowed down on one side.
type throttled map[TopicPartition][]int32

// throttle has the replicas that moves add come in at a rate, in bytes a second, which holds for each broker. What is
// slowed down already stays so; a list of all replicas, which is an operator's, takes nothing beside it.
func (c *Client) throttle(ctx context.Context, rate int64, leaders, followers throttled) error {
	brokers := map[int32]bool{}
	for _, side := range []throttled{leaders, followers} {
		for _, ids := range side {
			for _, id := range ids {
				brokers[id] = true
			}
		}
	}
	// The replicas first: a rate without any does nothing.
	sides := map[string][2]throttled{}
	for i, side := range []throttled{leaders, followers} {
		for at, ids := range side {
			of := sides[at.Topic]
			if of[i] == nil {
				of[i] = throttled{}
			}
			of[i][at] = ids
			sides[at.Topic] = of
		}
	}
	topics := slices.Sorted(maps.Keys(sides))
	own, err := c.describeConfigs(ctx, kmsg.ConfigResourceTypeTopic, topics, config.ThrottledLists[:])
	if err != nil {
		return err
	}
	for n, topic := range topics {
		var ops []ConfigOp
		for i, side := range sides[topic] {
			if len(side) > 0 && own[n].Own()[config.ThrottledLists[i]] != config.AllReplicas {
				ops = append(ops, ConfigOp{config.ThrottledLists[i], kmsg.IncrementalAlterConfigOpAppend, kmsg.StringPtr(strings.Join(side.entries(), ","))})
			}
		}
		if len(ops) == 0 {
			continue
		}
		if err := c.AlterConfigs(ctx, kmsg.ConfigResourceTypeTopic, topic, ops, false); err != nil {
			return fmt.Errorf("slowing down topic %s: %w", topic, err)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(brokers)) {
		if err := c.setRate(ctx, id, &rate); err != nil {
			return fmt.Errorf("slowing down broker %d: %w", id, err)
		}
	}
	return nil
}

// entries are the replicas of one topic as the property lists them.
func (t throttled) entries() []string {
	var all []string
	for _, at := range slices.SortedFunc(maps.Keys(t), TopicPartition.Compare) {
		for _, id := range t[at] {
			all = append(all, config.ThrottledReplica(at.Partition, protocol.BrokerID(id)))
		}
	}
	return all
}

// setRate sets the rates of a broker, or takes them away.
func (c *Client) setRate(ctx context.Context, broker int32, rate *int64) error {
	var ops []ConfigOp
	for _, key := range config.ThrottledRates {
		op := ConfigOp{Name: key, Kind: kmsg.IncrementalAlterConfigOpDelete}
		if rate != nil {
			op.Kind, op.Value = kmsg.IncrementalAlterConfigOpSet, kmsg.StringPtr(strconv.FormatInt(*rate, 10))
		}
		ops = append(ops, op)
	}
	return c.AlterConfigs(ctx, kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(broker)), ops, false)
}

// Unthrottle lets replicas come in at full speed that are not being reassigned any more, and takes the rates of all
// living brokers away where nothing is. Lists of all replicas (*) are an operator's, and stay; the rates stay as well
// where there is any.
func (c *Client) Unthrottle(ctx context.Context) error {
	ongoing, err := c.Reassignments(ctx)
	if err != nil {
		return err
	}
	under := map[string]bool{}
	for _, o := range ongoing {
		under[fmt.Sprintf("%s-%d", o.Topic, o.Partition)] = true
	}
	metadata, err := c.newestMetadata(ctx, nil)
	if err != nil || len(metadata.Topics) == 0 {
		return err
	}
	var names []string
	for _, t := range metadata.Topics {
		names = append(names, *t.Topic)
	}
	resources, err := c.describeConfigs(ctx, kmsg.ConfigResourceTypeTopic, names, config.ThrottledLists[:])
	if err != nil {
		return err
	}
	slowed, standing := false, false
	var failures []error
	for _, t := range resources {
		standing = standing || t.Own()[config.ThrottledLists[0]] == config.AllReplicas || t.Own()[config.ThrottledLists[1]] == config.AllReplicas
		if ops := releases(t, func(partition string) bool { return !under[t.Name+"-"+partition] }); len(ops) > 0 {
			slowed = true
			failures = append(failures, c.AlterConfigs(ctx, kmsg.ConfigResourceTypeTopic, t.Name, ops, false))
		}
	}
	if slowed && len(ongoing) == 0 && !standing {
		failures = append(failures, c.freeBrokers(ctx))
	}
	return errors.Join(failures...)
}

// releases are the changes that take the entries of partitions that have ended out of a topic's lists.
func releases(topic Resource, ended func(partition string) bool) []ConfigOp {
	var ops []ConfigOp
	for _, key := range config.ThrottledLists {
		value := topic.Own()[key]
		if value == "" || value == config.AllReplicas {
			continue
		}
		entries := strings.Split(value, ",")
		left := slices.DeleteFunc(slices.Clone(entries), func(entry string) bool {
			partition, _, _ := strings.Cut(entry, ":")
			return ended(partition)
		})
		switch len(left) {
		case len(entries):
		case 0:
			ops = append(ops, ConfigOp{Name: key, Kind: kmsg.IncrementalAlterConfigOpDelete})
		default:
			ops = append(ops, ConfigOp{key, kmsg.IncrementalAlterConfigOpSet, kmsg.StringPtr(strings.Join(left, ","))})
		}
	}
	return ops
}

// freeBrokers takes the rates away that were set for single brokers.
func (c *Client) freeBrokers(ctx context.Context) error {
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return err
	}
	var failures []error
	for _, b := range cluster.Brokers {
		failures = append(failures, c.setRate(ctx, b.ID, nil))
	}
	return errors.Join(failures...)
}
