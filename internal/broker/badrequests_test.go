package broker_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// newTopic asks for a topic; partitions and replication factor of -1 are the broker's defaults.
func newTopic(name string, partitions int32, replicas int16, properties ...string) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, replicas
	for i := 0; i < len(properties); i += 2 {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: properties[i], Value: &properties[i+1]})
	}
	return t
}

// createAll asks for several topics at once.
func (c *conn) createAll(validateOnly bool, topics ...kmsg.CreateTopicsRequestTopic) []kmsg.CreateTopicsResponseTopic {
	c.t.Helper()
	q := kmsg.NewPtrCreateTopicsRequest()
	q.Version, q.TimeoutMillis, q.ValidateOnly, q.Topics = 7, int32(patience.Milliseconds()), validateOnly, topics
	answers := ask[*kmsg.CreateTopicsResponse](c, q).Topics
	if len(answers) != len(topics) {
		c.t.Fatalf("%d answers for %d topics", len(answers), len(topics))
	}
	return answers
}

// topicNames are the topics that there are.
func (c *conn) topicNames() []string {
	c.t.Helper()
	q := kmsg.NewPtrMetadataRequest()
	q.Version = 9
	var names []string
	for _, topic := range ask[*kmsg.MetadataResponse](c, q).Topics {
		names = append(names, *topic.Topic)
	}
	slices.Sort(names)
	return names
}

// TestBadNames uses names that are paths, or nothing that a topic may be called (BR-064), wherever a request
// takes one. No file appears anywhere.
func TestBadNames(t *testing.T) {
	fs := vfs.NewMemory()
	s := &site{t: t, fs: fs, memory: true}
	r := s.start()
	c := r.dial()
	before := tree(t, fs, "/")
	names := []string{"", ".", "..", "../etc", "/etc/passwd", "a/b", "a\\b", "a b", "a\x00b", "a\nb", "ä", "a:b", "a*", strings.Repeat("x", 250), strings.Repeat("../", 5000)}
	for _, name := range names {
		if code := c.tryCreate(name); code != protocol.InvalidTopic {
			t.Errorf("creating %.30q: %v", name, code.Name())
		}
		q := kmsg.NewPtrMetadataRequest()
		q.Version, q.AllowAutoTopicCreation = 9, true
		q.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
		if code := protocol.Code(ask[*kmsg.MetadataResponse](c, q).Topics[0].ErrorCode); code != protocol.InvalidTopic {
			t.Errorf("metadata of %.30q: %v", name, code.Name())
		}
		for what, code := range map[string]int16{
			"producing to":        c.produce(name, 0, batch(record.BuilderOptions{}, "x")).ErrorCode,
			"fetching from":       c.fetch(name, 0, 0).ErrorCode,
			"listing offsets of":  c.listOffset(name, 0, -1).ErrorCode,
			"deleting":            int16(c.deleteTopic(name)),
			"deleting records of": int16(c.deleteRecords(name, 0, 1)),
			"altering":            int16(c.alter(name, "retention.ms", "1")),
		} {
			if code == 0 {
				t.Errorf("%s %.30q: no error", what, name)
			}
		}
	}
	if after := tree(t, fs, "/"); !slices.Equal(before, after) {
		t.Errorf("files before: %v, after: %v", before, after)
	}
	if got := c.topicNames(); len(got) != 0 {
		t.Errorf("topics %v", got)
	}
	// Group ids may be anything: they are no names of files.
	c.create("x", 1)
	for _, group := range names {
		if group == "" || len(group) > 32767 {
			continue
		}
		c.warm(group)
		if code := c.commit(group, "x", 0, 1); code != protocol.None {
			t.Errorf("committing for group %.30q: %v", group, code)
		}
	}
}

// tree lists all paths below a directory, but for those that change by themselves.
func tree(t *testing.T, fs vfs.FS, dir string) []string {
	t.Helper()
	entries, err := fs.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		path := strings.TrimSuffix(dir, "/") + "/" + e.Name()
		if strings.Contains(e.Name(), "checkpoint") {
			continue
		}
		all = append(all, path)
		if e.IsDir() {
			all = append(all, tree(t, fs, path)...)
		}
	}
	return all
}

// TestNamesThatCollide creates names that are one name in metrics (BR-064).
func TestNamesThatCollide(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory(), memory: true}
	c := s.start().dial()
	c.create("a.b", 1)
	c.create("with.both_of", 1)
	answer := c.createAll(false, newTopic("a_b", 1, 1))[0]
	if protocol.Code(answer.ErrorCode) != protocol.InvalidTopic || !strings.Contains(*answer.ErrorMessage, "a.b") {
		t.Errorf("a_b beside a.b: %v, %q", protocol.Code(answer.ErrorCode), *answer.ErrorMessage)
	}
}

// TestBadTopics asks for topics that there cannot be. Each gets its own code, beside good ones (BR-027), and
// the same where nothing is to be created (BR-067).
func TestBadTopics(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory(), memory: true}
	c := s.start().dial()
	c.create("there", 1)
	assigned := func(partition int32, replicas ...int32) kmsg.CreateTopicsRequestTopic {
		topic := newTopic("assigned", -1, -1)
		topic.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: partition, Replicas: replicas}}
		return topic
	}
	both := assigned(0, 1)
	both.NumPartitions = 3
	topics := []struct {
		kmsg.CreateTopicsRequestTopic
		want protocol.Code
	}{
		{newTopic("good", 2, 1), protocol.None},
		{newTopic("defaults", -1, -1), protocol.None},
		{newTopic("there", 1, 1), protocol.TopicAlreadyExists},
		{newTopic("none", 0, 1), protocol.InvalidPartitions},
		{newTopic("negative", -2, 1), protocol.InvalidPartitions},
		{newTopic("many", 2_000_000_000, 1), protocol.PolicyViolation},
		{newTopic("replicas", 1, 2), protocol.InvalidReplicationFactor},
		{newTopic("no-replicas", 1, 0), protocol.InvalidReplicationFactor},
		{newTopic("unknown-key", 1, 1, "no.such.key", "1"), protocol.InvalidConfig},
		{newTopic("text", 1, 1, "retention.ms", "long"), protocol.InvalidConfig},
		{newTopic("too-large", 1, 1, "retention.ms", "9223372036854775808"), protocol.InvalidConfig},
		{newTopic("too-small", 1, 1, "segment.bytes", "1"), protocol.InvalidConfig},
		{newTopic("policy", 1, 1, "cleanup.policy", "burn"), protocol.InvalidConfig},
		{newTopic("insync", 1, 1, "min.insync.replicas", "0"), protocol.InvalidConfig},
		{newTopic("codec", 1, 1, "compression.type", "rar"), protocol.InvalidConfig},
		{newTopic("message", 1, 1, "max.message.bytes", "-1"), protocol.InvalidConfig},
		{newTopic("ratio", 1, 1, "min.cleanable.dirty.ratio", "2"), protocol.InvalidConfig},
		{newTopic("good2", 1, 1, "cleanup.policy", "compact,delete"), protocol.None},
	}
	requests := make([]kmsg.CreateTopicsRequestTopic, len(topics))
	for i, topic := range topics {
		requests[i] = topic.CreateTopicsRequestTopic
	}
	for _, validateOnly := range []bool{true, false} {
		before := c.topicNames()
		for i, answer := range c.createAll(validateOnly, requests...) {
			if got := protocol.Code(answer.ErrorCode); answer.Topic != topics[i].Topic || got != topics[i].want {
				t.Errorf("validate only %v: %s got %v, want %v", validateOnly, answer.Topic, got.Name(), topics[i].want.Name())
			}
			if answer.Topic == "good" && (answer.NumPartitions != 2 || answer.ReplicationFactor != 1 || len(answer.Configs) == 0) {
				t.Errorf("validate only %v: good is described as %+v", validateOnly, answer)
			}
		}
		if after := c.topicNames(); validateOnly && !slices.Equal(after, before) {
			t.Errorf("validation created topics: %v", after)
		}
	}
	for i, one := range []struct {
		kmsg.CreateTopicsRequestTopic
		want protocol.Code
	}{
		{assigned(0, 7), protocol.InvalidReplicaAssignment},
		{assigned(0, 1, 1), protocol.InvalidReplicaAssignment},
		{assigned(0), protocol.InvalidReplicaAssignment},
		{assigned(1, 1), protocol.InvalidReplicaAssignment},
		{both, protocol.InvalidRequest},
	} {
		if got := protocol.Code(c.createAll(false, one.CreateTopicsRequestTopic)[0].ErrorCode); got != one.want {
			t.Errorf("assignment %d got %v, want %v", i, got.Name(), one.want.Name())
		}
	}
	if got, want := c.topicNames(), []string{"defaults", "good", "good2", "there"}; !slices.Equal(got, want) {
		t.Errorf("topics %v, want %v", got, want)
	}
}

// TestCreationInNoTime gives a creation of many partitions a millisecond (BR-063): it is answered, the
// connection lives, and the topics are there soon.
func TestCreationInNoTime(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory(), memory: true}
	c := s.start().dial()
	q := kmsg.NewPtrCreateTopicsRequest()
	q.Version, q.TimeoutMillis = 7, 1
	q.Topics = []kmsg.CreateTopicsRequestTopic{newTopic("wide", 100, 1)}
	if code := protocol.Code(ask[*kmsg.CreateTopicsResponse](c, q).Topics[0].ErrorCode); code != protocol.None && code != protocol.RequestTimedOut {
		t.Error(code)
	}
	q.TimeoutMillis = int32(patience.Milliseconds())
	if code := protocol.Code(ask[*kmsg.CreateTopicsResponse](c, q).Topics[0].ErrorCode); code != protocol.TopicAlreadyExists {
		t.Error(code)
	}
}

// TestBadProperties alters properties to what they cannot be: nothing changes.
func TestBadProperties(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory(), memory: true}
	c := s.start().dial()
	c.create("orders", 1, "retention.ms", "5000")
	for _, one := range []struct {
		key, value string
		want       protocol.Code
	}{
		{"retention.ms", "-2", protocol.InvalidConfig},
		{"retention.ms", "1e9", protocol.InvalidConfig},
		{"retention.ms", "", protocol.InvalidConfig},
		{"max.message.bytes", "99999999999", protocol.InvalidConfig},
		{"segment.bytes", "0", protocol.InvalidConfig},
		{"message.timestamp.type", "Never", protocol.InvalidConfig},
		{"no.such.key", "1", protocol.InvalidConfig},
		{"../../etc/passwd", "x", protocol.InvalidConfig},
		{strings.Repeat("k", 30_000), "x", protocol.InvalidConfig},
		{"leader.replication.throttled.replicas", "nonsense", protocol.InvalidConfig},
	} {
		if got := c.alter("orders", one.key, one.value); got != one.want {
			t.Errorf("%.40s=%s: %v, want %v", one.key, one.value, got.Name(), one.want.Name())
		}
	}
	if got := c.property("orders", "retention.ms"); got != "5000" {
		t.Errorf("retention.ms is %s", got)
	}
	if code := c.alter("missing", "retention.ms", "1"); code != protocol.UnknownTopicOrPartition {
		t.Errorf("properties of a topic that there is not: %v", code)
	}
}

// TestManyNames asks about very many topics and partitions, most of them the same: the answer is bounded by
// the question, and so is the memory.
func TestManyNames(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory(), memory: true, properties: map[string]string{"auto.create.topics.enable": "false"}}
	c := s.start().dial()
	c.create("x", 1)
	c.produce("x", 0, batch(record.BuilderOptions{}, strings.Repeat("v", 1000)))
	const many = 100_000
	name := "x"
	metadata := kmsg.NewPtrMetadataRequest()
	metadata.Version, metadata.Topics = 1, slices.Repeat([]kmsg.MetadataRequestTopic{{Topic: &name}}, many)
	list := kmsg.NewPtrListOffsetsRequest()
	list.Version, list.ReplicaID = 1, -1
	list.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: "x", Partitions: slices.Repeat([]kmsg.ListOffsetsRequestTopicPartition{{Timestamp: -1}}, many)}}
	fetch := fetchRequest("x", 0, 0)
	fetch.Version = 4
	fetch.MaxBytes = 1 << 20
	fetch.Topics[0].Partitions = slices.Repeat(fetch.Topics[0].Partitions, many)
	produce := produceRequest("x", 0, 1, batch(record.BuilderOptions{}, "v"))
	produce.Version = 3
	produce.Topics[0].Partitions = slices.Repeat(produce.Topics[0].Partitions, 10_000)
	commit := commitRequest("group", "x", 0, 1)
	commit.Topics[0].Partitions = slices.Repeat(commit.Topics[0].Partitions, 10_000)
	c.warm("group")
	for _, q := range []kmsg.Request{metadata, list, fetch, produce, commit} {
		size := len(q.AppendTo(nil))
		spent := cost(func() {
			if _, err := c.request(q); err != nil {
				t.Errorf("%s: %v", kmsg.NameForKey(q.Key()), err)
			}
		})
		if spent > uint64(100*size)+garbageCost {
			t.Errorf("%s of %d bytes: %d bytes were allocated", kmsg.NameForKey(q.Key()), size, spent)
		}
		t.Logf("%s of %d bytes: %d bytes were allocated", kmsg.NameForKey(q.Key()), size, spent)
	}
}
