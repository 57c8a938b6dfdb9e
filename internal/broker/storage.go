package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/memory"
	"github.com/barnabas-mq/barnabas/internal/coordination/quorum"
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/logdir"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// otherFiles is how many descriptors are kept for what is neither a segment nor a client's connection.
const otherFiles = 500

// segmentFiles is how many segment files are open at most where the process may have limit descriptors: a
// quarter of them, since connections need the rest.
//
// Open files are a cache: a log that needs one more than this closes the one that was used longest ago.
func segmentFiles(limit int) int {
	if limit == 0 {
		return 4000
	}
	return min(max(limit/4, 64), 16_000)
}

// openDirs locks the log directories and reads whose they are.
func (b *Broker) openDirs(ctx, _ context.Context) error {
	c := b.Config()
	id := protocol.NoBroker
	if c.IsSet("node.id") || c.IsSet("broker.id") {
		id = c.BrokerID()
	} else if b.shared() {
		var err error
		if id, err = b.drawID(ctx); err != nil {
			return err
		}
	}
	boot := b.options.BootID
	if boot == "" && !b.options.Memory { // in memory nothing outlives the process
		boot = logdir.KernelBootID()
	}
	b.files = log.NewFileCache(segmentFiles(descriptorLimit()))
	var err error
	b.dirs, err = logdir.Open(logdir.Options{
		FS: b.options.FS, Dirs: c.LogDirs(), MetadataDir: c.MetadataLogDir(), BrokerID: id,
		ClusterID: cmp.Or(b.clusterID, c.ClusterID()), Config: c, Now: b.options.Now, Logger: b.logger, BootID: boot, Files: b.files,
	})
	if err != nil {
		return err
	}
	b.id = b.dirs.BrokerID()
	return nil
}

// openStore opens the store and a session, and makes the permanent nodes. A store that is shared with other
// brokers is open already.
func (b *Broker) openStore(ctx, _ context.Context) error {
	if b.shared() {
		return nil
	}
	if b.options.Memory {
		b.store, b.closeStore = memory.New(memory.Options{Now: b.options.Now}), func() error { return nil }
	} else {
		store, err := quorum.Open(quorum.Options{FS: b.options.FS, Dir: b.dirs.MetadataDir(), NodeID: b.id, Logger: b.logger})
		if err != nil {
			return err
		}
		b.store, b.closeStore, b.storeFailed = store, store.Close, store.Failed()
	}
	session, err := b.store.Open(ctx, coordination.SessionOptions{})
	if err != nil {
		return err
	}
	b.hold(session)
	_, err = controller.Prepare(ctx, session, b.dirs.ClusterID())
	return err
}

// loadLogs opens the logs of the topics that the store knows. Folders of topics that it does not know belong
// to somebody else's store: they are neither served nor touched, and the start stops.
//
//	in the store, same id or none on disk    opened
//	in the store, another id on disk         stray: an earlier topic of the name, set aside
//	not in the store                         the start ends: deleting or ignoring it would both be guesses
func (b *Broker) loadLogs(ctx, _ context.Context) error {
	topics, err := b.readTopics(ctx)
	if err != nil {
		return err
	}
	var unknown []string
	var stray []protocol.TopicPartition
	for _, f := range b.dirs.Found() {
		t := topics[f.Partition.Topic]
		switch {
		case f.State != logdir.Current:
		case t == nil:
			unknown = append(unknown, f.Folder)
		case !f.TopicID.IsZero() && f.TopicID != t.id:
			stray = append(stray, f.Partition) // of an earlier topic of the same name
		}
	}
	if len(unknown) > 0 {
		what := "to take them over from a Kafka broker, run 'barnabas adopt'"
		if b.shared() {
			what = "if the data of the metadata store was set back to an old backup, restore newer data"
		}
		return fmt.Errorf("%d partitions in the log directories are not known here (%s): %s; otherwise move them away",
			len(unknown), strings.Join(unknown[:min(len(unknown), 3)], ", "), what)
	}
	if err := b.dirs.MarkStray(stray...); err != nil {
		return err
	}
	// What settings refuses stays closed, and keeps its lines in the checkpoints.
	return b.dirs.Load(ctx, func(tp protocol.TopicPartition, id protocol.TopicID) (config.Topic, bool) {
		t := topics[tp.Topic]
		if t == nil || !id.IsZero() && id != t.id {
			return config.Topic{}, false
		}
		return t.settings, true
	})
}

// knownTopic is a topic of the store.
type knownTopic struct {
	id       protocol.TopicID
	settings config.Topic
}

// readTopics reads the topics and their properties from the store.
func (b *Broker) readTopics(ctx context.Context) (map[string]*knownTopic, error) {
	names, _, err := b.session().Children(ctx, znode.TopicsPath)
	if err != nil {
		return nil, err
	}
	paths := make([]string, 0, 2*len(names))
	for _, name := range names {
		paths = append(paths, znode.TopicPath(name), znode.EntityPath(metadata.TopicEntity(name)))
	}
	results, err := b.session().GetMany(ctx, paths)
	if err != nil {
		return nil, err
	}
	topics := make(map[string]*knownTopic, len(names))
	for i, name := range names {
		topic, err := b.readTopic(name, results[2*i], results[2*i+1])
		if err != nil {
			return nil, fmt.Errorf("topic %s: %w", name, err)
		}
		topics[name] = topic
	}
	return topics, nil
}

// readTopic decodes the two nodes of a topic. Properties that are not valid any more are named, and count as
// not set.
func (b *Broker) readTopic(name string, node, properties coordination.GetResult) (*knownTopic, error) {
	if node.Err != nil {
		return nil, node.Err
	}
	topic, err := znode.DecodeTopic(name, node.Data)
	if err != nil {
		return nil, err
	}
	var overrides map[string]string
	switch {
	case properties.Err == nil:
		if overrides, err = znode.DecodeConfig(metadata.TopicEntity(name), properties.Data); err != nil {
			return nil, err
		}
	case !errors.Is(properties.Err, coordination.ErrNoNode):
		return nil, properties.Err
	}
	settings, err := b.Config().Topic(overrides)
	if err != nil {
		b.logger.Warn("some properties of a topic are not valid, and count as not set", "topic", name, "error", err)
	}
	return &knownTopic{id: topic.ID, settings: settings}, nil
}
