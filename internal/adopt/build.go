package adopt

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/logdir"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// producerMargin is how far above the highest producer id in the logs the next one is where nobody knows
// which were given out: producers may hold ids that they have not written with yet. A broker holds two
// blocks of a thousand.
const producerMargin = 100 * znode.ProducerIDBlockSize

// builder is a plan being made.
//
// The plan is made of three views of the same topics, in this order of trust:
//
//	existing   our store: what it has is never touched again
//	folders    what is on the disk: decides what exists here, ids and the epochs that were used
//	source     what the old cluster said: properties, replication, epochs that no batch shows
type builder struct {
	*Adoption
	plan     *Plan
	source   *source
	existing *existing
	// folders are the current folders of partitions that are to be registered.
	folders map[P.TopicPartition]logdir.Found
	ends    map[P.TopicPartition]logEnd
	missing []string
}

// newPlan is the plan before anything has been looked at.
func (a *Adoption) newPlan() *Plan {
	var overrides []string
	if a.old != nil {
		overrides = startOverrides(a.old)
	}
	return &Plan{
		Cluster: a.dirs.ClusterID(), Broker: a.dirs.BrokerID(), Dirs: a.options.Dirs, MetadataDir: a.metadata,
		ProducerIDs: P.NoProducerID, Start: startCommand(a.options.Dirs, a.metadata, overrides),
	}
}

// makePlan finds out what is to be done.
func (a *Adoption) makePlan(ctx context.Context, e *existing) error {
	a.plan = a.newPlan()
	b := &builder{Adoption: a, plan: a.plan, existing: e, folders: map[P.TopicPartition]logdir.Found{}}
	if err := b.sort(); err != nil {
		return err
	}
	if len(b.folders) == 0 {
		if len(e.topics) == 0 {
			return fmt.Errorf("there are no partitions in %s", strings.Join(a.plan.Dirs, ", "))
		}
		a.plan.Done = true
		return nil
	}
	var err error
	if b.source, err = a.readSource(); err != nil {
		return err
	}
	if a.kraft && !b.source.kraft && a.options.Configs == "" && len(e.topics) == 0 {
		return fmt.Errorf("the directories are of a KRaft node, and none of them has its metadata (%s): it is in metadata.log.dir; "+
			"give --server-properties, or name that directory too, or what is known of the topics with --configs", metadataFolder)
	}
	return b.build(ctx)
}

// build makes the plan for the folders that are to be registered.
func (b *builder) build(ctx context.Context) error {
	b.plan.Source, b.plan.GoingBack = b.source.name, goingBack(b.source.kraft)
	found := slices.Collect(maps.Values(b.folders))
	var err error
	if b.ends, err = scan(ctx, b.files, found, !b.source.certain, b.options.Progress); err != nil {
		return err
	}
	internal, err := readCoordinators(b.files, found)
	if err != nil {
		return err
	}
	if err := b.topics(); err != nil {
		return err
	}
	b.producers(internal)
	b.properties()
	b.plan.Notices = append(b.plan.Notices, b.source.notices...)
	b.coordinators(internal)
	b.formats()
	return nil
}

// sort tells the folders that are to be registered from those that are known and those that are not current.
func (b *builder) sort() error {
	aside := map[logdir.State][]string{}
	for _, f := range b.dirs.Found() {
		known, registered := b.existing.topics[f.Partition.Topic]
		switch {
		case f.State != logdir.Current:
			aside[f.State] = append(aside[f.State], f.Folder)
		case f.Err != nil:
			return fmt.Errorf("the id of %s cannot be read: %w", f.Folder, f.Err)
		case registered && (!f.TopicID.IsZero() && f.TopicID != known.ID || int(f.Partition.Partition) >= len(known.Replicas)):
			return fmt.Errorf("%s in %s is of the topic %s, and the store here knows a topic %s with the id %s and %d partitions: move the folder away",
				f.Folder, f.Dir, f.TopicID, f.Partition.Topic, known.ID, len(known.Replicas))
		case registered:
		case b.folders[f.Partition].Folder != "":
			return fmt.Errorf("%s is in %s and in %s: move away the one that is not right", f.Folder, b.folders[f.Partition].Dir, f.Dir)
		default:
			b.folders[f.Partition] = f
		}
	}
	for state, meaning := range map[logdir.State]string{
		logdir.Deleted: "were deleted: they are not taken over, and their files go after file.delete.delay.ms",
		logdir.Stray:   "were set aside by Kafka, since nobody knew them: they stay where they are",
		logdir.Future:  "are copies of a move between directories that was not finished: they are not taken over",
	} {
		if len(aside[state]) > 0 {
			b.plan.Notices = append(b.plan.Notices, Notice{Subject: "folders -" + suffixes[state], Names: aside[state], Meaning: meaning})
		}
	}
	slices.SortFunc(b.plan.Notices, func(x, y Notice) int { return strings.Compare(x.Subject, y.Subject) })
	return nil
}

var suffixes = [...]string{logdir.Deleted: "delete", logdir.Stray: "stray", logdir.Future: "future"}

// readSource finds what the old cluster knew.
func (a *Adoption) readSource() (*source, error) {
	dirs := slices.Clone(a.options.Dirs)
	s, err := readKRaft(a.files, append(dirs, a.metadata))
	if err != nil {
		return nil, err
	}
	if s != nil {
		if a.options.ZooKeeperTree != "" || a.options.Configs != "" {
			return nil, fmt.Errorf("the directories have their own metadata in %s, so that neither a tree nor configs can be given", s.name)
		}
		return s, nil
	}
	s = newSource("the folders alone")
	if name := a.options.ZooKeeperTree; name != "" {
		text, err := readFile(a.files, name)
		if err != nil {
			return nil, err
		}
		t, err := parseTree(text, a.dirs.ClusterID())
		if err == nil {
			s, err = fromTree(t, name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if name := a.options.Configs; name != "" {
		text, err := readFile(a.files, name)
		if err == nil {
			err = s.fromConfigs(text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if s.complete {
			s.name += " and " + name
		} else {
			s.name = name
		}
	}
	return s, nil
}

// producers decides where producer ids begin.
//
//	source.nextProducerID    the end of the last block that was given to a broker
//	highest in the logs      an id that was used, rounded up to the end of its block
//	+ producerMargin         where the source may be older than the logs, or says nothing
func (b *builder) producers(c *coordinators) {
	highest := c.producer
	for _, end := range b.ends {
		highest = max(highest, end.producer)
	}
	next := max(b.source.nextProducerID, (highest/znode.ProducerIDBlockSize+1)*znode.ProducerIDBlockSize)
	if !b.source.certain || highest >= b.source.nextProducerID {
		next += producerMargin
	}
	if next > b.existing.lastProducerID+1 {
		b.plan.ProducerIDs = next
	}
}

// properties decides about the properties of brokers.
//
// Nothing may be deleted for not being known: without server.properties the old default of retention is
// unknown, and seven days, Kafka's own, could be less than what the operator had set.
func (b *builder) properties() {
	p := b.plan
	p.Defaults = b.dynamic(config.ClusterWide, b.source.defaults)
	p.BrokerConfig = b.dynamic(config.PerBroker, b.source.brokers[p.Broker])
	if b.old != nil {
		for name, value := range fallbacks(b.old) {
			if _, set := p.Defaults[name]; !set {
				p.Defaults[name] = value
			}
		}
		return
	}
	if _, set := p.Defaults["log.retention.ms"]; set || p.BrokerConfig["log.retention.ms"] != "" {
		return
	}
	p.Defaults["log.retention.ms"] = "-1"
	p.Notices = append(p.Notices, Notice{
		Subject: "default retention", Names: []string{"log.retention.ms=-1"},
		Meaning: "the old broker's own default is not known, so that topics without retention.ms keep everything: give --server-properties now, " +
			"or set it later with 'barnabas config alter broker-default --set log.retention.ms=...'",
	})
}

// dynamic keeps those properties that can be set here, and names the others.
func (b *builder) dynamic(least config.Dynamic, values map[string]string) map[string]string {
	kept := map[string]string{}
	var refused []string
	for name, value := range values {
		key, ok := config.Lookup(config.ScopeBroker, name)
		if ok && key.Dynamic >= least && !key.Sensitive() && !aboutConnections(name) {
			if _, err := key.Parse(value); err == nil {
				kept[name] = value
				continue
			}
		}
		refused = append(refused, name)
	}
	b.source.notice("broker properties", "not carried: they are about connections, secret, or not known here", refused)
	return kept
}

// aboutConnections reports whether a property says how clients reach the old broker, which is for this one's
// own configuration to say.
func aboutConnections(name string) bool {
	return strings.Contains(name, "listener") || strings.HasPrefix(name, "ssl.") || strings.HasPrefix(name, "sasl.")
}

// coordinators names what the internal topics hold that has no place here yet.
func (b *builder) coordinators(c *coordinators) {
	notice := func(subject, meaning string, names []string) {
		if len(names) > 0 {
			b.plan.Notices = append(b.plan.Notices, Notice{Subject: subject, Names: names, Meaning: meaning})
		}
	}
	notice("open transactions", "stay open: consumers that read only what is committed wait before their first records; finish them with Kafka before, if that matters", c.open)
	if c.transactional > 0 {
		notice("transactional ids", "kept in __transaction_state, and not served yet: transactional producers get an error", []string{fmt.Sprint(c.transactional)})
	}
	for _, kind := range sorted(c.groups) {
		meaning := "their members cannot join yet; their committed offsets and records are kept"
		if kind == "share" {
			meaning = "not served yet; their state in __share_group_state is kept"
		}
		notice(kind+" groups", meaning, c.groups[kind])
	}
}

// formats names partitions with messages from before Kafka 0.11.
func (b *builder) formats() {
	var old []string
	for tp, end := range b.ends {
		if end.oldFormat {
			old = append(old, tp.String())
		}
	}
	if len(old) > 0 {
		slices.Sort(old)
		b.plan.Notices = append(b.plan.Notices, Notice{Subject: "old message formats", Names: old,
			Meaning: "messages of format 0 or 1 are kept, and are not served in all ways yet"})
	}
}

// epoch is what the state of a partition is written with: above everything that is known of it.
//
// Consumers and followers remember epochs. One that goes back would look like an old leader to them, and they
// would wait for it to catch up.
func (b *builder) epoch(tp P.TopicPartition, old oldPartition, known bool) P.LeaderEpoch {
	highest := P.NoLeaderEpoch
	if known {
		highest = old.epoch
	}
	if end, ok := b.ends[tp]; ok {
		highest = max(highest, end.epoch)
	}
	return highest + 1
}

// idOf settles a topic's id: that of its folders, else the one that the old cluster knew, else a new one.
//
// Clients that name topics by id, and the folders themselves, hold on to it. Two ids for one name mean that a
// deletion was not finished; to guess would mix the records of two topics.
func (b *builder) idOf(name string, folders map[int32]logdir.Found) (P.TopicID, error) {
	var id P.TopicID
	for _, number := range slices.Sorted(maps.Keys(folders)) {
		f := folders[number]
		if !id.IsZero() && !f.TopicID.IsZero() && f.TopicID != id {
			return id, fmt.Errorf("the folders of topic %s have different ids, %s and %s: one of two topics of that name was deleted; move its folders away", name, id, f.TopicID)
		}
		if id.IsZero() {
			id = f.TopicID
		}
	}
	old := b.source.topics[name]
	if old != nil && !old.id.IsZero() && !id.IsZero() && old.id != id {
		return id, fmt.Errorf("topic %s had the id %s in the old cluster, and its folders have %s: the topic was deleted and made again; move the folders away", name, old.id, id)
	}
	if id.IsZero() && old != nil {
		id = old.id
	}
	if id.IsZero() {
		id = P.NewTopicID()
	}
	return id, nil
}

// configOf are the properties that a topic gets.
func configOf(name string, old *oldTopic) (values map[string]string, known bool) {
	if old != nil && old.configKnown {
		return old.config, true
	}
	if name == P.GroupMetadataTopic { // Kafka makes it so, and it needs to be compacted
		return map[string]string{"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "104857600"}, true
	}
	return map[string]string{"cleanup.policy": ""}, false
}

// factorOf is the old replication factor.
func factorOf(old *oldTopic) int {
	if old == nil {
		return 0
	}
	return old.factor()
}

// countOf is how many partitions a topic has: as many as the old cluster knew, or as the folders show.
func countOf(old *oldTopic, folders map[int32]logdir.Found) int {
	count := 0
	if old != nil {
		count = old.count()
	}
	for number := range folders {
		count = max(count, int(number)+1)
	}
	return cmp.Or(count, 1)
}
