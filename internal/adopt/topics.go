package adopt

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/logdir"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// partitionsMax bounds what a folder's name can make of a topic.
const partitionsMax = 200_000

// topicNotices collects the names of topics and partitions that something is to be said of.
type topicNotices struct {
	unknownConfig, unknownTopic, replicated, stale, empty, elsewhere, tiered, invalid []string
}

// topics decides about all topics.
//
// A partition that the old broker had, and that is in none of the directories, is most often a directory that
// was not named. Adopting without it would begin it empty, and its records could not come back; hence an error,
// and a flag for those who know better.
func (b *builder) topics() error {
	folders := map[string]map[int32]logdir.Found{}
	for tp, f := range b.folders {
		if folders[tp.Topic] == nil {
			folders[tp.Topic] = map[int32]logdir.Found{}
		}
		folders[tp.Topic][tp.Partition] = f
	}
	var n topicNotices
	for _, name := range sorted(folders) {
		topic, err := b.topic(name, folders[name], &n)
		if err != nil {
			return err
		}
		b.plan.Topics = append(b.plan.Topics, topic)
	}
	for _, name := range b.source.names() {
		_, registered := b.existing.topics[name]
		if folders[name] == nil && !registered && len(b.source.topics[name].partitions) > 0 {
			b.absent(name, &n)
		}
	}
	if len(b.missing) > 0 && !b.options.AllowMissing {
		return fmt.Errorf("%d partitions that broker %d had are in none of the directories (%s): name all directories of its log.dirs. "+
			"If their disk is lost for good, --allow-missing adopts the rest",
			len(b.missing), b.plan.Broker, strings.Join(b.missing[:min(len(b.missing), 3)], ", "))
	}
	b.noticeTopics(&n)
	return nil
}

// topic decides about one topic that has folders.
func (b *builder) topic(name string, folders map[int32]logdir.Found, n *topicNotices) (Topic, error) {
	id, err := b.idOf(name, folders)
	if err != nil {
		return Topic{}, err
	}
	old := b.source.topics[name]
	count := countOf(old, folders)
	if count > partitionsMax {
		return Topic{}, fmt.Errorf("topic %s would have %d partitions: move away the folder that is none of a partition", name, count)
	}
	topic := Topic{Name: name, ID: id, WasReplicated: factorOf(old), unfinished: b.existing.unfinished[name]}
	topic.Config, topic.ConfigKnown = configOf(name, old)
	for number := range int32(count) {
		tp := P.TopicPartition{Topic: name, Partition: number}
		var was oldPartition
		known := false
		if old != nil {
			was, known = old.partitions[number]
		}
		f, here := folders[number]
		if here {
			b.noticeReplica(tp, was, known, n)
		} else if known && slices.Contains(was.replicas, b.plan.Broker) {
			b.missing = append(b.missing, tp.String())
			n.empty = append(n.empty, tp.String())
		} else {
			n.empty = append(n.empty, tp.String())
		}
		topic.Partitions = append(topic.Partitions, Partition{LeaderEpoch: b.epoch(tp, was, known), Dir: f.Dir})
	}
	b.noticeTopic(topic, old, n)
	return topic, nil
}

// absent is about a topic that the old cluster had and that has no folder here.
func (b *builder) absent(name string, n *topicNotices) {
	ours := false
	for _, number := range slices.Sorted(maps.Keys(b.source.topics[name].partitions)) {
		if slices.Contains(b.source.topics[name].partitions[number].replicas, b.plan.Broker) {
			b.missing = append(b.missing, P.TopicPartition{Topic: name, Partition: number}.String())
			ours = true
		}
	}
	if ours {
		name += " (its folders are missing)"
	}
	n.elsewhere = append(n.elsewhere, name)
}

// noticeReplica notes what is special about a partition that is here.
func (b *builder) noticeReplica(tp P.TopicPartition, was oldPartition, known bool, n *topicNotices) {
	if known && len(was.replicas) > 1 && was.synced != nil && !slices.Contains(was.synced, b.plan.Broker) {
		n.stale = append(n.stale, tp.String())
	}
}

// noticeTopic notes what is special about a topic.
func (b *builder) noticeTopic(topic Topic, old *oldTopic, n *topicNotices) {
	if topic.WasReplicated > 1 {
		n.replicated = append(n.replicated, topic.Name)
	}
	if !topic.ConfigKnown {
		n.unknownConfig = append(n.unknownConfig, topic.Name)
	}
	if old == nil && b.source.complete {
		n.unknownTopic = append(n.unknownTopic, topic.Name)
	}
	if topic.Config["remote.storage.enable"] == "true" {
		n.tiered = append(n.tiered, topic.Name)
	}
	for _, name := range sorted(topic.Config) {
		_, known := config.Lookup(config.ScopeTopic, name)
		_, err := b.settings.Topic(map[string]string{name: topic.Config[name]})
		if !known || err != nil {
			n.invalid = append(n.invalid, fmt.Sprintf("%s: %s=%s", topic.Name, name, topic.Config[name]))
		}
	}
}

func (b *builder) noticeTopics(n *topicNotices) {
	for _, notice := range []Notice{
		{"topics with unknown properties", n.unknownConfig,
			"registered with an empty cleanup.policy, so that nothing is deleted until you set it: 'barnabas topic alter NAME --config cleanup.policy=delete'"},
		{"topics unknown to the old cluster", n.unknownTopic, "deleted there, or newer than what was given: they are kept; delete them here if they should go"},
		{"replicated topics", n.replicated, "have one replica from now on, in these directories"},
		{"copies that were not in sync", n.stale, "the newest records may be on another broker only"},
		{"partitions without a folder", n.empty, "begin empty: what they had is not in these directories"},
		{"topics that are not here", n.elsewhere, "not taken over: nothing of them is in these directories"},
		{"tiered topics", n.tiered, "what is in the remote tier is not served: they begin with their first local segment"},
		{"properties that are not valid here", n.invalid, "kept, and count as not set"},
	} {
		if len(notice.Names) > 0 {
			b.plan.Notices = append(b.plan.Notices, notice)
		}
	}
}
