package adopt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/quorum"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// storePrefix is what the names of the built-in store's files begin with.
const storePrefix = ".barnabas-meta."

// existing is what a store that is there already knows.
type existing struct {
	topics map[string]znode.Topic
	// unfinished are topics whose registration was interrupted.
	unfinished map[string]bool
	// lastProducerID is the end of the newest block, or NoProducerID.
	lastProducerID P.ProducerID
}

// readStore reads the store in the metadata directory, if there is one.
func (a *Adoption) readStore(ctx context.Context) (*existing, error) {
	e := &existing{topics: map[string]znode.Topic{}, unfinished: map[string]bool{}, lastProducerID: P.NoProducerID}
	entries, err := a.files.ReadDir(a.metadata)
	if err != nil {
		return nil, err
	}
	there := false
	for _, entry := range entries {
		there = there || strings.HasPrefix(entry.Name(), storePrefix)
	}
	if !there {
		return e, nil
	}
	if err := a.openStore(ctx); err != nil {
		return nil, err
	}
	data, _, err := a.session.Get(ctx, znode.ProducerIDBlockPath)
	if err == nil && len(data) > 0 {
		block, err := znode.DecodeProducerIDBlock(data)
		if err != nil {
			return nil, err
		}
		e.lastProducerID = block.Last
	}
	names, _, err := a.session.Children(ctx, znode.TopicsPath)
	if err != nil {
		if errors.Is(err, coordination.ErrNoNode) {
			err = nil
		}
		return e, err
	}
	for _, name := range names {
		if err := a.readTopic(ctx, e, name); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (a *Adoption) readTopic(ctx context.Context, e *existing, name string) error {
	data, _, err := a.session.Get(ctx, znode.TopicPath(name))
	if err != nil {
		return err
	}
	if len(data) == 0 {
		e.unfinished[name] = true
		return nil
	}
	topic, err := znode.DecodeTopic(name, data)
	e.topics[name] = topic
	return err
}

// openStore opens the store and a session.
func (a *Adoption) openStore(ctx context.Context) (err error) {
	if a.session != nil {
		return nil
	}
	a.store, err = quorum.Open(quorum.Options{
		FS: a.files, Dir: a.metadata, NodeID: a.dirs.BrokerID(), Logger: a.options.Logger, Now: a.options.Now,
	})
	if err != nil {
		return err
	}
	a.session, err = a.store.Open(ctx, coordination.SessionOptions{})
	return err
}

// CarryOut writes what the plan says. After an error it may be called again, in this process or another.
func (a *Adoption) CarryOut(ctx context.Context) error {
	if a.plan.Done {
		return nil
	}
	if err := a.openStore(ctx); err != nil {
		return err
	}
	if _, err := controller.Prepare(ctx, a.session, a.plan.Cluster); err != nil {
		return err
	}
	if err := a.writeCluster(ctx); err != nil {
		return err
	}
	if err := a.writeTopics(ctx); err != nil {
		return err
	}
	a.plan.Done = true
	return nil
}

// writeCluster writes what is not about topics. What somebody has set here already stays.
//
// Producer ids and defaults come before the topics: were they to come behind, a broker could start on topics in
// between, give out ids again, and delete by a default of retention.
func (a *Adoption) writeCluster(ctx context.Context) error {
	var ops []coordination.Op
	if a.plan.ProducerIDs != P.NoProducerID {
		// The next block begins behind this one.
		block := znode.ProducerIDBlock{Broker: a.plan.Broker, First: max(0, a.plan.ProducerIDs-znode.ProducerIDBlockSize), Last: a.plan.ProducerIDs - 1}
		ops = append(ops, coordination.Set(znode.ProducerIDBlockPath, znode.EncodeProducerIDBlock(block), coordination.AnyVersion))
	}
	for _, c := range []struct {
		broker P.BrokerID
		values map[string]string
	}{{P.NoBroker, a.plan.Defaults}, {a.plan.Broker, a.plan.BrokerConfig}} {
		path := znode.EntityPath(metadata.BrokerEntity(c.broker))
		_, there, err := a.session.Exists(ctx, path)
		if err != nil {
			return err
		}
		if !there && len(c.values) > 0 {
			ops = append(ops, coordination.Create(path, znode.EncodeConfig(c.values), coordination.CreateOptions{}))
		}
	}
	if len(ops) == 0 {
		return nil
	}
	_, err := a.session.Txn(ctx, ops...)
	return err
}

// writeTopics writes the topics, several in one transaction where they fit.
func (a *Adoption) writeTopics(ctx context.Context) error {
	limit := a.options.transactionBytes
	var ops []coordination.Op
	size := 0
	flush := func() error {
		if len(ops) == 0 {
			return nil
		}
		_, err := a.session.Txn(ctx, ops...)
		ops, size = nil, 0
		return err
	}
	for _, topic := range a.plan.Topics {
		next, err := a.topicOps(ctx, topic)
		if err != nil {
			return err
		}
		bytes := sizeOf(next)
		if size+bytes > limit {
			if err := flush(); err != nil {
				return err
			}
		}
		if bytes > limit || topic.unfinished {
			if err := a.writeLargeTopic(ctx, topic, next, limit); err != nil {
				return fmt.Errorf("topic %s: %w", topic.Name, err)
			}
			continue
		}
		ops, size = append(ops, next...), size+bytes
	}
	return flush()
}

func sizeOf(ops []coordination.Op) int {
	size := 0
	for _, op := range ops {
		size += op.Size()
	}
	return size
}

// topicOps makes a topic: its properties, its znode, its partitions and their states, in this order. A
// partition's two operations stand one behind the other.
func (a *Adoption) topicOps(ctx context.Context, topic Topic) ([]coordination.Op, error) {
	entity := znode.EntityPath(metadata.TopicEntity(topic.Name))
	_, there, err := a.session.Exists(ctx, entity)
	if err != nil {
		return nil, err
	}
	create := func(path string, data []byte) coordination.Op {
		return coordination.Create(path, data, coordination.CreateOptions{})
	}
	ops := []coordination.Op{create(entity, znode.EncodeConfig(topic.Config))}
	if there { // left over from a topic of that name
		ops[0] = coordination.Set(entity, znode.EncodeConfig(topic.Config), coordination.AnyVersion)
	}
	ops = append(ops, create(znode.TopicPath(topic.Name), a.topicData(topic)), create(znode.PartitionsPath(topic.Name), nil))
	for number, p := range topic.Partitions {
		tp := P.TopicPartition{Topic: topic.Name, Partition: int32(number)}
		state := znode.State{Leader: a.plan.Broker, LeaderEpoch: p.LeaderEpoch, ISR: []P.BrokerID{a.plan.Broker}}
		ops = append(ops, create(znode.PartitionPath(tp), nil), create(znode.StatePath(tp), znode.EncodeState(state)))
	}
	return ops, nil
}

// topicData is a topic's znode: this broker alone holds every partition.
func (a *Adoption) topicData(topic Topic) []byte {
	replicas := make([][]P.BrokerID, len(topic.Partitions))
	for i := range replicas {
		replicas[i] = []P.BrokerID{a.plan.Broker}
	}
	return znode.EncodeTopic(znode.Topic{ID: topic.ID, Replicas: replicas})
}

// topicHead is how many of topicOps are not about partitions.
const topicHead = 3

// writeLargeTopic writes a topic in several transactions, or the rest of one. Until the last of them its
// znode is empty, and no broker starts on that.
//
//	1  properties, the topic's znode without data, the parent of its partitions
//	2  partitions with their states, in as many transactions as needed
//	3  the topic's znode gets its data: only now the topic exists
//
// A run that was cut off is recognised by the znode without data, and goes on with the partitions that are
// missing.
func (a *Adoption) writeLargeTopic(ctx context.Context, topic Topic, ops []coordination.Op, limit int) error {
	head, partitions := ops[:topicHead], ops[topicHead:]
	written := map[string]bool{}
	if topic.unfinished {
		names, _, err := a.session.Children(ctx, znode.PartitionsPath(topic.Name))
		if err != nil {
			return err
		}
		for _, name := range names {
			written[znode.PartitionsPath(topic.Name)+"/"+name] = true
		}
	} else {
		head = slices.Clone(head)
		head[1].Data = nil
		if _, err := a.session.Txn(ctx, head...); err != nil {
			return err
		}
	}
	var batch []coordination.Op
	for i := 0; i < len(partitions); i += 2 {
		if !written[partitions[i].Path] {
			batch = append(batch, partitions[i], partitions[i+1])
		}
		if last := i+2 == len(partitions); len(batch) > 0 && (last || sizeOf(batch) > limit/2) {
			if _, err := a.session.Txn(ctx, batch...); err != nil {
				return err
			}
			batch = nil
		}
	}
	_, err := a.session.Set(ctx, znode.TopicPath(topic.Name), a.topicData(topic), coordination.AnyVersion)
	return err
}

// sorted lists the keys of a map in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
