package controller

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// decide decides about partitions, writes what has to change, and tells the brokers. The configuration of a
// topic is only looked at where nothing but an unclean election could help: that is rare, and reading those
// of all topics would make every failover slower.
func (t *term) decide(partitions []P.TopicPartition) error {
	t.cluster.now, t.cluster.patience = time.Now(), t.controller.options.Config().Duration("unclean.recovery.timeout.ms")
	all, stuck := decideAll(t.cluster, partitions)
	t.cluster.waiting.note(partitions, stuck, t.cluster.now)
	var unread error
	if len(stuck) > 0 {
		if unread = t.allowUnclean(topicsOf(stuck)); unread != nil {
			t.look.all = true // the others must not wait for that
		}
		if unread == nil && len(t.unclean) > 0 {
			c := t.cluster
			c.unclean = t.unclean
			all, _ = decideAll(c, partitions)
		}
	}
	_, err := t.write(all)
	t.armStuck()
	t.publishWaits()
	if err != nil {
		return err
	}
	return unread
}

// topicsOf lists the topics of partitions, each once, in order.
func topicsOf(partitions []P.TopicPartition) []string {
	topics := map[string]bool{}
	for _, tp := range partitions {
		topics[tp.Topic] = true
	}
	return sortedNames(topics)
}

// allowUnclean reads which of the topics allow an unclean election, and keeps that in unclean.
func (t *term) allowUnclean(topics []string) error {
	paths := make([]string, len(topics))
	for i, topic := range topics {
		paths[i] = znode.EntityPath(metadata.TopicEntity(topic))
	}
	found, err := t.session.GetMany(t.ctx, paths)
	if err != nil {
		return err
	}
	for i, r := range found {
		delete(t.unclean, topics[i])
		if r.Err != nil && !errors.Is(r.Err, coordination.ErrNoNode) {
			return r.Err
		}
		values, err := znode.DecodeConfig(metadata.TopicEntity(topics[i]), r.Data)
		if err != nil {
			t.controller.options.Logger.Error("controller: a topic's configuration is damaged: no unclean election", "topic", topics[i], "error", err)
			continue
		}
		settings, _ := t.controller.options.Config().Topic(values) // faulty entries count as not set
		if settings.UncleanLeaderElection {
			t.unclean[topics[i]] = true
		}
	}
	return nil
}

// stateOp is the operation that writes one decided state.
func stateOp(d decided) coordination.Op {
	data := znode.EncodeState(znode.StateOf(d.to))
	if d.stateless() {
		return coordination.Create(znode.StatePath(d.TopicPartition), data, coordination.CreateOptions{})
	}
	return coordination.Set(znode.StatePath(d.TopicPartition), data, int32(d.from.Epoch))
}

// stateOps are the operations that write one decided state within a transaction; the last one is that of the state.
func stateOps(d decided) []coordination.Op {
	if d.stateless() {
		return []coordination.Op{coordination.Create(znode.PartitionPath(d.TopicPartition), nil, coordination.CreateOptions{}), stateOp(d)}
	}
	return []coordination.Op{stateOp(d)}
}

// stateless reports whether the partition has no state yet.
func (d *decided) stateless() bool { return d.from == nil || d.from.Epoch == P.AnyEpoch }

// makeParents makes the znodes above the first states of partitions, level by level, as the transactions of one level
// are under way together. One that is there already was made by a controller that died before it wrote the state. What
// fails here fails with the states, too.
func (t *term) makeParents(all []decided) {
	var topics, partitions []coordination.Op
	seen := map[string]bool{}
	for i := range all {
		d := &all[i]
		if !d.stateless() {
			continue
		}
		if !seen[d.Topic] {
			seen[d.Topic] = true
			topics = append(topics, coordination.Create(znode.PartitionsPath(d.Topic), nil, coordination.CreateOptions{}))
		}
		partitions = append(partitions, coordination.Create(znode.PartitionPath(d.TopicPartition), nil, coordination.CreateOptions{}))
	}
	for _, level := range [][]coordination.Op{topics, partitions} {
		_, _ = coordination.BatchPremised(t.ctx, t.session, t.guard, t.premise(), level)
	}
}

// write writes decided states, many in one transaction, puts those that were written into the image and
// tells the brokers. Leaderless partitions come first. It returns which were written; those whose state
// turned out to be another than was thought are looked at again in the next turn.
func (t *term) write(all []decided) (written map[P.TopicPartition]bool, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(all, func(a, b decided) int { return urgency(a) - urgency(b) })
	t.makeParents(all)
	ops := make([]coordination.Op, len(all))
	for i, d := range all {
		ops[i] = stateOp(d)
	}
	// An operation that is refused does not keep the others from being written.
	results, err := coordination.BatchPremised(t.ctx, t.session, t.guard, t.premise(), ops)
	stale := errors.Is(err, coordination.ErrPremise)
	if stale { // decide about everything again, knowing who has registered
		t.look.brokers, t.look.all, err = true, true, nil
	}
	var changes []metadata.Change
	var done []decided
	written = map[P.TopicPartition]bool{}
	for i, d := range all {
		r := results[i]
		if r.Err != nil {
			if !stale || !errors.Is(r.Err, coordination.ErrNotSent) {
				t.look.state[d.TopicPartition] = true
			}
			continue
		}
		d.to.Epoch, d.to.Modified = P.PartitionEpoch(r.Result.Stat.Version), r.Result.Stat.Mzxid
		changes = append(changes, metadata.PutPartition{TopicPartition: d.TopicPartition, TopicID: d.topicID, State: d.to})
		written[d.TopicPartition] = true
		done = append(done, d)
	}
	t.commit(changes...)
	t.controller.elections.add(done)
	t.log(done)
	return written, err
}

// premise is what every decision about a state is made from: that no broker has registered which this
// controller has not heard of. Otherwise a state could be newer than a registration that it does not take into
// account, and a later controller would take the broker for one that has been in sync ever since. Brokers of
// Kafka's do not change the version; for them this controller remembers who was in a set (see [bounces]).
func (t *term) premise() []coordination.Op {
	return []coordination.Op{coordination.Check(znode.BrokersPath, t.registered)}
}

// urgency orders writes: what nobody leads first.
func urgency(d decided) int {
	if d.from != nil && d.from.Leader == d.to.Leader {
		return 1
	}
	return 0
}

// loggedOneByOne bounds how many changes of one batch get a line of their own in the log.
const loggedOneByOne = 50

// log says which states have changed, and why.
func (t *term) log(done []decided) {
	logger := t.controller.options.Logger
	level := slog.LevelInfo
	if len(done) > loggedOneByOne {
		logger.Info("controller: changed the states of many partitions", "partitions", len(done), "first", done[0].String(), "why", done[0].why)
		level = slog.LevelDebug
	}
	if !logger.Enabled(context.Background(), level) {
		return
	}
	for _, d := range done {
		logger.Log(context.Background(), level, "controller: "+d.why, "partition", d.String(), "leader", d.to.Leader,
			"leader-epoch", d.to.LeaderEpoch, "isr", d.to.ISR, "partition-epoch", d.to.Epoch, "was", d.from.Leader)
	}
}

// readStates reads the states that are in doubt, and decides about their partitions.
func (t *term) readStates() error {
	if len(t.look.state) == 0 {
		return nil
	}
	partitions := sorted(t.look.state)
	found, err := t.getStates(partitions)
	if err != nil {
		return err
	}
	var changes []metadata.Change
	for i, tp := range partitions {
		topic := t.cluster.image.Topic(tp.Topic)
		if topic == nil || topic.Partition(tp.Partition) == nil {
			continue
		}
		old := topic.Partition(tp.Partition)
		now := &metadata.Partition{
			Leader: P.NoBroker, LeaderEpoch: P.NoLeaderEpoch, Epoch: P.AnyEpoch,
			Replicas: old.Replicas, Adding: old.Adding, Removing: old.Removing, Offline: old.Offline,
		}
		if err := t.fillState(now, tp, found[i]); err != nil {
			return err
		}
		changes = append(changes, metadata.PutPartition{TopicPartition: tp, TopicID: topic.ID, State: now})
	}
	clear(t.look.state)
	t.commitDecided(partitions, changes)
	err = t.decide(partitions)
	t.tellOwed()
	return err
}

// commitDecided takes over states that somebody else wrote, or that an unknown outcome had left open. The
// brokers are not told those that will be replaced at once: a broker that has restarted would otherwise hear
// for a moment that it leads in the epoch of its former life.
func (t *term) commitDecided(partitions []P.TopicPartition, changes []metadata.Change) {
	next := t.cluster
	next.image, _ = next.image.With(changes...)
	all, _ := decideAll(next, partitions)
	for _, d := range all {
		t.look.state[d.TopicPartition] = true
	}
	t.commit(changes...)
	for _, d := range all {
		delete(t.look.state, d.TopicPartition)
		delete(t.owed, d.TopicPartition) // what replaces it is told
	}
}
