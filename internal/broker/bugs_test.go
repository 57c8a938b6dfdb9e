package broker_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// TestReportedBugs replays what other brokers were reported to get wrong, by the number of the report in our
// list. Those that need a file of their own are elsewhere; grep for BR-.
func TestReportedBugs(t *testing.T) {
	for _, bug := range []struct {
		name string
		test func(t *testing.T, c *conn)
	}{
		{"BR-003 the answer to ApiVersions has no tags in its header", apiVersionsHeader},
		{"BR-169 names of client software", softwareNames},
		{"BR-085 BR-177 advertised ranges", advertisedRanges},
		{"BR-148 APIs with topic ids move together", topicIDVersions},
		{"BR-181 null client id", nullClientID},
		{"BR-200 ApiVersions too new, then again", apiVersionsAgain},
		{"BR-044 BR-184 empty fetches have empty records", emptyFetch},
		{"BR-124 BR-031 fetches out of range", fetchOutOfRange},
		{"BR-147 negative sizes", negativeSizes},
		{"BR-036 partitions of a fetch share its limit", sharedLimit},
		{"BR-030 BR-163 partitions of a session take turns", sessionTurns},
		{"BR-183 BR-208 BR-160 offsets by time", offsetsByTime},
		{"BR-102 BR-182 BR-076 leader epochs", leaderEpochs},
		{"BR-021 a producer that nobody knows any more", forgottenProducer},
		{"BR-018 operations on lists", listOperations},
		{"BR-159 BR-027 keys of DescribeConfigs", describedKeys},
		{"BR-029 null and empty lists of topics", offsetFetchLists},
		{"BR-206 metadata of offsets", offsetMetadata},
		{"BR-075 LogAppendTime", logAppendTime},
		{"BR-154 of two errors the right one", twoErrors},
		{"BR-133 deleted records stay deleted", deletedRecords},
		{"BR-126 log directories", logDirectories},
		{"BR-012 a topic made again is another topic", topicMadeAgain},
		{"BR-066 zstd for old fetches", zstdForOldFetches},
		{"BR-089 aborted transactions by isolation", abortedByIsolation},
	} {
		t.Run(bug.name, func(t *testing.T) {
			s := &site{t: t, fs: vfs.NewMemory(), memory: true, properties: map[string]string{
				"log.initial.task.delay.ms": "3600000", // some records are of 1970, and must not go while they are looked at
			}}
			bug.test(t, s.start().dial())
		})
	}
}

func apiVersionsHeader(t *testing.T, c *conn) {
	q := &kmsg.ApiVersionsRequest{Version: 4, ClientSoftwareName: "a", ClientSoftwareVersion: "1"}
	answer, err := c.exchange(frame(18, 4, 77, true, q.AppendTo(nil)))
	if err != nil || len(answer) < 7 || answer[3] != 77 || answer[4] != 0 || answer[5] != 0 || answer[6] < 20 {
		t.Errorf("%v, %x", err, answer[:min(10, len(answer))]) // correlation id, error code, number of keys + 1
	}
}

func softwareNames(t *testing.T, c *conn) {
	for _, one := range []struct {
		name, version string
		want          protocol.Code
	}{
		{"", "1", protocol.InvalidRequest}, {"a b", "1", protocol.InvalidRequest}, {"a-", "1", protocol.InvalidRequest},
		{"a", "", protocol.InvalidRequest}, {"a", "-1", protocol.InvalidRequest}, {"a-b.c", "1.0-rc1", protocol.None},
	} {
		q := &kmsg.ApiVersionsRequest{Version: 3, ClientSoftwareName: one.name, ClientSoftwareVersion: one.version}
		if got := protocol.Code(ask[*kmsg.ApiVersionsResponse](c, q).ErrorCode); got != one.want {
			t.Errorf("%q %q: %v", one.name, one.version, got.Name())
		}
	}
}

func advertisedRanges(t *testing.T, c *conn) {
	for _, key := range c.advertised() {
		switch kmsg.Key(key.ApiKey) {
		case kmsg.Produce:
			if key.MinVersion != 0 {
				t.Errorf("Produce is advertised from %d on", key.MinVersion)
			}
		case kmsg.SASLHandshake:
			if key.MaxVersion > 1 {
				t.Errorf("SaslHandshake is advertised up to %d", key.MaxVersion)
			}
		case kmsg.LeaderAndISR, kmsg.StopReplica, kmsg.UpdateMetadata, kmsg.ControlledShutdown:
			t.Errorf("%s is advertised", kmsg.NameForKey(key.ApiKey))
		}
	}
}

func topicIDVersions(t *testing.T, c *conn) {
	versions := map[kmsg.Key]int16{}
	for _, key := range c.advertised() {
		versions[kmsg.Key(key.ApiKey)] = key.MaxVersion
	}
	if versions[kmsg.Metadata] < 10 || versions[kmsg.Fetch] < 13 || versions[kmsg.Produce] < 13 ||
		versions[kmsg.OffsetFetch] < 10 || versions[kmsg.OffsetCommit] < 10 {
		t.Errorf("versions %v", versions)
	}
}

func nullClientID(t *testing.T, c *conn) {
	answer, err := c.exchange([]byte("\x00\x00\x00\x0e\x00\x03\x00\x01\x00\x00\x00\x05\xff\xff\xff\xff\xff\xff"))
	if err != nil || answer[3] != 5 {
		t.Errorf("%v, %x", err, answer)
	}
}

func apiVersionsAgain(t *testing.T, c *conn) {
	newest := int16(0)
	for _, key := range c.advertised() {
		if kmsg.Key(key.ApiKey) == kmsg.ApiVersions {
			newest = key.MaxVersion
		}
	}
	q := kmsg.NewPtrApiVersionsRequest()
	q.Version, q.ClientSoftwareName, q.ClientSoftwareVersion = newest, "a", "1"
	answer, err := c.exchange(frame(18, newest+1, 1, true, q.AppendTo(nil)))
	var old kmsg.ApiVersionsResponse
	if err != nil || old.ReadFrom(answer[4:]) != nil || protocol.Code(old.ErrorCode) != protocol.UnsupportedVersion || len(old.ApiKeys) != 1 {
		t.Errorf("%v, %+v", err, old)
	}
	if again := ask[*kmsg.ApiVersionsResponse](c, q); again.ErrorCode != 0 || len(again.ApiKeys) < 20 {
		t.Errorf("%+v", again)
	}
}

func emptyFetch(t *testing.T, c *conn) {
	c.create("orders", 1)
	for _, version := range []int16{4, 11, 12} {
		q := fetchRequest("orders", 0, 0)
		q.Version = version
		p := ask[*kmsg.FetchResponse](c, q).Topics[0].Partitions[0]
		if p.ErrorCode != 0 || p.RecordBatches == nil || len(p.RecordBatches) != 0 {
			t.Errorf("version %d: %+v", version, p)
		}
	}
	c.produce("orders", 0, batch(record.BuilderOptions{}, strings.Repeat("x", 400)))
	q := fetchRequest("orders", 0, 0)
	q.Topics[0].Partitions[0].PartitionMaxBytes = 10 // less than the batch
	if p := ask[*kmsg.FetchResponse](c, q).Topics[0].Partitions[0]; len(p.RecordBatches) != record.Batch(p.RecordBatches).Length() {
		t.Errorf("%d bytes, not one whole batch", len(p.RecordBatches))
	}
	if p := c.fetch("orders", 0, 1); p.ErrorCode != 0 || len(p.RecordBatches) != 0 || p.HighWatermark != 1 {
		t.Errorf("at the end: %+v", p)
	}
}

func fetchOutOfRange(t *testing.T, c *conn) {
	c.create("orders", 1)
	c.produce("orders", 0, batch(record.BuilderOptions{}, "a", "b", "c"))
	c.deleteRecords("orders", 0, 2)
	for _, offset := range []int64{0, 4, 1 << 60, -5} {
		p := c.fetch("orders", 0, offset)
		if protocol.Code(p.ErrorCode) != protocol.OffsetOutOfRange || p.HighWatermark != -1 || p.LogStartOffset != -1 || len(p.RecordBatches) != 0 {
			t.Errorf("at %d: %+v", offset, p)
		}
	}
	q := fetchRequest("orders", 0, 1)
	q.Topics[0].Partitions[0].LastFetchedEpoch = 0
	q.Topics[0].Partitions[0].CurrentLeaderEpoch = 0
	if p := ask[*kmsg.FetchResponse](c, q).Topics[0].Partitions[0]; protocol.Code(p.ErrorCode) != protocol.OffsetOutOfRange {
		t.Errorf("below the start with an epoch: %+v", p)
	}
}

func negativeSizes(t *testing.T, c *conn) {
	c.create("orders", 1)
	c.produce("orders", 0, batch(record.BuilderOptions{}, "a"))
	for _, size := range []int32{-1 << 31, -1, 0} {
		q := fetchRequest("orders", 0, 0)
		q.MaxBytes, q.MinBytes, q.MaxWaitMillis = size, size, size
		q.Topics[0].Partitions[0].PartitionMaxBytes = size
		response, err := c.request(q)
		if err != nil {
			t.Fatalf("size %d: %v", size, err)
		}
		if p := response.(*kmsg.FetchResponse).Topics[0].Partitions[0]; len(p.RecordBatches) > 200 {
			t.Errorf("size %d: %d bytes", size, len(p.RecordBatches))
		}
	}
	c.alive()
}

// wideFetch reads all partitions of a topic.
func wideFetch(topic string, partitions int32) *kmsg.FetchRequest {
	q := fetchRequest(topic, 0, 0)
	one := q.Topics[0].Partitions[0]
	q.Topics[0].Partitions = nil
	for p := range partitions {
		one.Partition = p
		q.Topics[0].Partitions = append(q.Topics[0].Partitions, one)
	}
	return q
}

func sharedLimit(t *testing.T, c *conn) {
	const partitions = 50
	c.create("wide", partitions)
	for p := range int32(partitions) {
		for range 3 {
			c.produce("wide", p, batch(record.BuilderOptions{}, strings.Repeat("x", 100_000)))
		}
	}
	q := wideFetch("wide", partitions)
	q.MaxBytes = 1 << 20
	total := 0
	for _, p := range ask[*kmsg.FetchResponse](c, q).Topics[0].Partitions {
		total += len(p.RecordBatches)
	}
	if total < 900_000 || total > 1<<20 {
		t.Errorf("%d bytes, the limit was %d", total, 1<<20)
	}
}

func sessionTurns(t *testing.T, c *conn) {
	const partitions = 20
	c.create("wide", partitions)
	for p := range int32(partitions) {
		for range 10 {
			c.produce("wide", p, batch(record.BuilderOptions{}, strings.Repeat("x", 1000)))
		}
	}
	q := wideFetch("wide", partitions)
	q.SessionEpoch, q.MaxBytes = 0, 2500
	next := map[int32]int64{}
	for range 60 {
		response := ask[*kmsg.FetchResponse](c, q)
		if response.ErrorCode != 0 {
			t.Fatal(protocol.Code(response.ErrorCode))
		}
		q.SessionID, q.Topics = response.SessionID, nil
		q.SessionEpoch++
		for _, topic := range response.Topics {
			for _, p := range topic.Partitions {
				if len(p.RecordBatches) == 0 {
					continue
				}
				for b := range record.Batches(p.RecordBatches) {
					next[p.Partition] = int64(b.NextOffset())
				}
				one := fetchRequest("wide", p.Partition, next[p.Partition])
				q.Topics = append(q.Topics, one.Topics...)
			}
		}
	}
	for p := range int32(partitions) {
		if next[p] < 3 {
			t.Errorf("partition %d got to %d: starved; %v", p, next[p], next)
		}
	}
}

func offsetsByTime(t *testing.T, c *conn) {
	c.create("times", 1)
	c.create("empty", 1)
	for _, at := range []int64{2, 4, 6, 8} {
		b := record.NewBuilder(record.BuilderOptions{})
		b.Append(at, nil, []byte("v"))
		c.produce("times", 0, b.Build())
	}
	for target, want := range []int64{0, 0, 0, 1, 1, 2, 2, 3, 3, -1} {
		got := c.listOffset("times", 0, int64(target))
		if got.ErrorCode != 0 || got.Offset != want || (want == -1) != (got.Timestamp == -1) {
			t.Errorf("from %d on: %+v, want offset %d", target, got, want)
		}
	}
	if got := c.listOffset("empty", 0, 5); got.ErrorCode != 0 || got.Offset != -1 || got.Timestamp != -1 {
		t.Errorf("in an empty log: %+v", got)
	}
	for _, codec := range []record.Codec{record.None, record.Gzip} {
		topic := "max-" + codec.String()
		c.create(topic, 1)
		c.produce(topic, 0, batch(record.BuilderOptions{}, "a", "b", "c", "d", "e"))
		b := record.NewBuilder(record.BuilderOptions{Codec: codec})
		far := time.Now().UnixMilli() + 10_000
		for _, at := range []int64{10, 30, 20} {
			b.Append(far+at, nil, []byte("v"))
		}
		c.produce(topic, 0, b.Build())
		if got := c.listOffset(topic, 0, -3); got.Offset != 6 || got.Timestamp != far+30 {
			t.Errorf("%s: %+v, want 6 at %d", topic, got, far+30)
		}
	}
}

func leaderEpochs(t *testing.T, c *conn) {
	c.create("orders", 1)
	c.produce("orders", 0, batch(record.BuilderOptions{}, "a", "b"))
	for epoch, want := range map[int32]int64{-1: -1, 0: 2, 1: -1, 1 << 30: -1} {
		q := kmsg.NewPtrOffsetForLeaderEpochRequest()
		q.Version, q.ReplicaID = 4, -1
		q.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: "orders", Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{
			{CurrentLeaderEpoch: -1, LeaderEpoch: epoch},
		}}}
		if got := ask[*kmsg.OffsetForLeaderEpochResponse](c, q).Topics[0].Partitions[0]; got.ErrorCode != 0 || got.EndOffset != want {
			t.Errorf("end of epoch %d: %+v, want %d", epoch, got, want)
		}
	}
	q := kmsg.NewPtrMetadataRequest()
	q.Version = 12
	told := ask[*kmsg.MetadataResponse](c, q).Topics[0].Partitions[0].LeaderEpoch
	if read := record.Batch(c.fetch("orders", 0, 0).RecordBatches).LeaderEpoch(); told != int32(read) || told != c.listOffset("orders", 0, -1).LeaderEpoch {
		t.Errorf("leader epoch in metadata %d, in the batch %d, in ListOffsets %d", told, read, c.listOffset("orders", 0, -1).LeaderEpoch)
	}
}

func forgottenProducer(t *testing.T, c *conn) {
	c.create("orders", 1)
	unknown := batch(record.BuilderOptions{Idempotent: true, ProducerID: 77, BaseSequence: 5}, "a")
	if got := c.produce("orders", 0, unknown); got.ErrorCode != 0 {
		t.Errorf("a producer without state at sequence 5: %v", protocol.Code(got.ErrorCode))
	}
	gap := batch(record.BuilderOptions{Idempotent: true, ProducerID: 77, BaseSequence: 9}, "a")
	if got := c.produce("orders", 0, gap); protocol.Code(got.ErrorCode) != protocol.OutOfOrderSequenceNumber {
		t.Errorf("a gap: %v", protocol.Code(got.ErrorCode))
	}
}

// change is one operation of IncrementalAlterConfigs.
func (c *conn) change(topic string, changes ...kmsg.IncrementalAlterConfigsRequestResourceConfig) protocol.Code {
	c.t.Helper()
	q := alterRequest(topic, "", "")
	q.Resources[0].Configs = changes
	return protocol.Code(ask[*kmsg.IncrementalAlterConfigsResponse](c, q).Resources[0].ErrorCode)
}

func listOperations(t *testing.T, c *conn) {
	type config = kmsg.IncrementalAlterConfigsRequestResourceConfig
	policy := func(op kmsg.IncrementalAlterConfigOp, value string) config {
		return config{Name: "cleanup.policy", Op: op, Value: &value}
	}
	c.create("orders", 1)
	for _, step := range []struct {
		changes []config
		want    protocol.Code
		policy  string
	}{
		{[]config{policy(kmsg.IncrementalAlterConfigOpAppend, "compact")}, protocol.None, "delete,compact"},
		{[]config{policy(kmsg.IncrementalAlterConfigOpAppend, "compact")}, protocol.None, "delete,compact"},
		{[]config{policy(kmsg.IncrementalAlterConfigOpSubtract, "delete")}, protocol.None, "compact"},
		{[]config{policy(kmsg.IncrementalAlterConfigOpSubtract, "delete")}, protocol.None, "compact"},
		{[]config{policy(kmsg.IncrementalAlterConfigOpSet, "delete"), policy(kmsg.IncrementalAlterConfigOpSet, "compact")}, protocol.InvalidRequest, "compact"},
		{[]config{{Name: "retention.ms", Op: kmsg.IncrementalAlterConfigOpAppend, Value: new("5")}}, protocol.InvalidConfig, "compact"},
		{[]config{policy(kmsg.IncrementalAlterConfigOpDelete, "ignored")}, protocol.None, "delete"}, // BR-027
	} {
		if got := c.change("orders", step.changes...); got != step.want {
			t.Errorf("%v: %v", step.changes, got.Name())
		}
		if got := c.property("orders", "cleanup.policy"); got != step.policy {
			t.Errorf("%v: cleanup.policy is %q, want %q", step.changes, got, step.policy)
		}
	}
}

func describedKeys(t *testing.T, c *conn) {
	c.create("orders", 1)
	for _, one := range []struct {
		keys []string
		want []string // nil: all
	}{
		{nil, nil},
		{[]string{"retention.ms"}, []string{"retention.ms"}},
		{[]string{"retention.ms", "cleanup.policy"}, []string{"cleanup.policy", "retention.ms"}},
		{[]string{"no.such.key", "retention.ms"}, []string{"retention.ms"}},
		{[]string{"no.such.key"}, []string{}},
	} {
		q := kmsg.NewPtrDescribeConfigsRequest()
		q.Version = 4
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeTopic, "orders", one.keys
		q.Resources = []kmsg.DescribeConfigsRequestResource{r}
		var got []string
		for _, entry := range ask[*kmsg.DescribeConfigsResponse](c, q).Resources[0].Configs {
			got = append(got, entry.Name)
		}
		slices.Sort(got)
		if one.want == nil && len(got) < 30 || one.want != nil && !slices.Equal(got, one.want) {
			t.Errorf("keys %v: %v", one.keys, got)
		}
	}
}

func offsetFetchLists(t *testing.T, c *conn) {
	c.create("x", 1)
	c.warm("group")
	c.commit("group", "x", 0, 7)
	for version := int16(2); version <= 7; version++ {
		for _, topics := range [][]kmsg.OffsetFetchRequestTopic{nil, {}} {
			q := &kmsg.OffsetFetchRequest{Version: version, Group: "group", Topics: topics}
			want := 0
			if topics == nil {
				want = 1
			}
			if got := ask[*kmsg.OffsetFetchResponse](c, q); len(got.Topics) != want || got.ErrorCode != 0 {
				t.Errorf("version %d, null %v: %+v", version, topics == nil, got)
			}
		}
	}
}

func offsetMetadata(t *testing.T, c *conn) {
	c.create("x", 1)
	c.warm("group")
	long := strings.Repeat("m", 4097)
	for _, one := range []struct {
		metadata *string
		want     protocol.Code
	}{{nil, protocol.None}, {new(""), protocol.None}, {new("ü\x00"), protocol.None}, {&long, protocol.OffsetMetadataTooLarge}} {
		q := commitRequest("group", "x", 0, 1)
		q.Topics[0].Partitions[0].Metadata = one.metadata
		if got := protocol.Code(ask[*kmsg.OffsetCommitResponse](c, q).Topics[0].Partitions[0].ErrorCode); got != one.want {
			t.Errorf("%v", got)
		}
	}
}

func logAppendTime(t *testing.T, c *conn) {
	c.create("stamped", 1, "message.timestamp.type", "LogAppendTime")
	b := record.NewBuilder(record.BuilderOptions{})
	for _, at := range []int64{1000, 1005, 1010} {
		b.Append(at, nil, []byte("v"))
	}
	sent := b.Build()
	deltas := slices.Clone(sent[atRecords:])
	answer := c.produce("stamped", 0, sent)
	stored := record.Batch(c.fetch("stamped", 0, 0).RecordBatches)
	if stored.TimestampType() != record.LogAppendTime || stored.MaxTimestamp() != answer.LogAppendTime || !stored.ValidCRC() ||
		!slices.Equal(stored[atRecords:], deltas) {
		t.Errorf("stored %x, answered %+v", stored, answer)
	}
	if got := c.offset("stamped", 0, answer.LogAppendTime); got != 0 {
		t.Errorf("looked up by its append time it is at %d", got)
	}
}

func twoErrors(t *testing.T, c *conn) {
	c.create("compacted", 1, "cleanup.policy", "compact")
	b := record.NewBuilder(record.BuilderOptions{})
	b.Append(time.Now().UnixMilli(), nil, []byte("without a key"))
	b.Append(time.Now().Add(1000*time.Hour).UnixMilli(), []byte("k"), []byte("from the future"))
	answer := c.produce("compacted", 0, b.Build())
	if protocol.Code(answer.ErrorCode) != protocol.InvalidTimestamp || len(answer.ErrorRecords) != 2 {
		t.Errorf("%+v", answer)
	}
	if end := c.offset("compacted", 0, -1); end != 0 {
		t.Errorf("appended up to %d", end)
	}
}

func deletedRecords(t *testing.T, c *conn) {
	c.create("orders", 1)
	c.produce("orders", 0, batch(record.BuilderOptions{}, "a", "b", "c"))
	for _, one := range []struct {
		offset int64
		want   protocol.Code
		start  int64
	}{
		{2, protocol.None, 2}, {1, protocol.None, 2}, {4, protocol.OffsetOutOfRange, 2}, {-2, protocol.OffsetOutOfRange, 2}, {-1, protocol.None, 3},
	} {
		if got := c.deleteRecords("orders", 0, one.offset); got != one.want {
			t.Errorf("below %d: %v", one.offset, got)
		}
		if got := c.offset("orders", 0, -2); got != one.start {
			t.Errorf("below %d: the log starts at %d, want %d", one.offset, got, one.start)
		}
	}
}

func logDirectories(t *testing.T, c *conn) {
	c.create("one", 2)
	c.create("two", 1)
	q := &kmsg.DescribeLogDirsRequest{Version: 4, Topics: []kmsg.DescribeLogDirsRequestTopic{{Topic: "one", Partitions: []int32{0}}, {Topic: "none", Partitions: []int32{0}}}}
	if got := ask[*kmsg.DescribeLogDirsResponse](c, q).Dirs[0].Topics; len(got) != 1 || len(got[0].Partitions) != 1 {
		t.Errorf("one partition of one topic: %+v", got)
	}
	q.Topics = nil
	if got := ask[*kmsg.DescribeLogDirsResponse](c, q).Dirs[0].Topics; len(got) != 2 {
		t.Errorf("all topics: %+v", got)
	}
}

func topicMadeAgain(t *testing.T, c *conn) {
	first := c.create("orders", 1)
	c.produce("orders", 0, batch(record.BuilderOptions{}, "old", "old"))
	if code := c.deleteTopic("orders"); code != protocol.None {
		t.Fatal(code)
	}
	if second := c.create("orders", 1); second == first {
		t.Error("the topic has its old id")
	}
	if got := c.readAll("orders", 0); len(got) != 0 {
		t.Errorf("a new topic has old records: %v", got)
	}
	q := fetchRequest("", 0, 0)
	q.Version, q.Topics[0].TopicID = 13, first
	if got := ask[*kmsg.FetchResponse](c, q).Topics[0].Partitions[0]; protocol.Code(got.ErrorCode) != protocol.UnknownTopicID {
		t.Errorf("fetching by the old id: %v", protocol.Code(got.ErrorCode))
	}
}

// As Kafka 4, which does not answer UNSUPPORTED_COMPRESSION_TYPE any more: clients below Fetch 10 that know zstd
// get what they want, and those that do not say so themselves.
func zstdForOldFetches(t *testing.T, c *conn) {
	c.create("forced", 1, "compression.type", "zstd")
	c.create("passed", 1)
	c.produce("forced", 0, batch(record.BuilderOptions{}, "v"))
	c.produce("passed", 0, batch(record.BuilderOptions{Codec: record.Zstd}, "v"))
	for _, topic := range []string{"forced", "passed"} {
		q := fetchRequest(topic, 0, 0)
		q.Version = 4
		p := ask[*kmsg.FetchResponse](c, q).Topics[0].Partitions[0]
		if p.ErrorCode != 0 || record.Batch(p.RecordBatches).Codec() != record.Zstd {
			t.Errorf("%s: %+v", topic, p)
		}
	}
}

func abortedByIsolation(t *testing.T, c *conn) {
	c.create("orders", 1)
	c.produce("orders", 0, batch(record.BuilderOptions{}, "v"))
	for _, version := range []int16{4, 11, 12} {
		for isolation := range int8(2) {
			q := fetchRequest("orders", 0, 0)
			q.Version, q.IsolationLevel = version, isolation
			p := ask[*kmsg.FetchResponse](c, q).Topics[0].Partitions[0]
			if (p.AbortedTransactions == nil) != (isolation == 0) || len(p.AbortedTransactions) > 0 || len(p.RecordBatches) == 0 {
				t.Errorf("version %d, isolation %d: %+v", version, isolation, p)
			}
		}
	}
}

// TestEndpointsOfTheListener asks both listeners of a broker where it is (BR-205): each tells its own port.
func TestEndpointsOfTheListener(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory(), memory: true, properties: map[string]string{
		"listeners":                      "PLAINTEXT://127.0.0.1:0,SECOND://127.0.0.1:0",
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECOND:PLAINTEXT",
	}}
	r := s.start()
	for _, address := range r.Addresses() {
		network, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c := newConn(t, network)
		c.warm("group")
		metadata := ask[*kmsg.MetadataResponse](c, &kmsg.MetadataRequest{Version: 1})
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.Version, find.CoordinatorKey = 2, "group"
		coordinator := ask[*kmsg.FindCoordinatorResponse](c, find)
		cluster := ask[*kmsg.DescribeClusterResponse](c, &kmsg.DescribeClusterRequest{})
		for what, port := range map[string]int32{
			"Metadata": metadata.Brokers[0].Port, "FindCoordinator": coordinator.Port, "DescribeCluster": cluster.Brokers[0].Port,
		} {
			if told := fmt.Sprintf("127.0.0.1:%d", port); told != address {
				t.Errorf("%s at %s tells %s", what, address, told)
			}
		}
	}
}

// TestAcksNoneKeepsTheOrder sends a batch that wants no answer, a join that waits, and two requests behind
// them (BR-049): the answers come in the order of the requests that have one.
func TestAcksNoneKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{t: t, fs: vfs.NewMemory(), memory: true, network: new(pipes), properties: map[string]string{"group.initial.rebalance.delay.ms": "2000"}}
		c := s.start().dial()
		c.create("orders", 1)
		c.warm("group")
		join := kmsg.NewPtrJoinGroupRequest()
		join.Version, join.Group, join.SessionTimeoutMillis, join.ProtocolType = 2, "group", 10_000, "consumer"
		join.RebalanceTimeoutMillis = 10_000
		join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range"}}
		heartbeat := &kmsg.HeartbeatRequest{Version: 1, Group: "group", MemberID: "nobody"}
		metadata := &kmsg.MetadataRequest{Version: 1}
		go func() {
			c.send(produceRequest("orders", 0, 0, batch(record.BuilderOptions{}, "a")))
			for _, q := range []kmsg.Request{join, heartbeat, metadata} {
				c.send(q)
			}
		}()
		for i, q := range []kmsg.Request{join, heartbeat, metadata} {
			answer, err := c.next()
			if err != nil || int32(binary.BigEndian.Uint32(answer)) != c.correlation-int32(2-i) {
				t.Errorf("%s: %v, correlation id %x", kmsg.NameForKey(q.Key()), err, answer[:4])
			}
		}
		if got := c.readAll("orders", 0); len(got) != 1 {
			t.Errorf("%d records", len(got))
		}
	})
}

// TestIdleConnections opens connections that say nothing (BR-121): they are closed in time.
func TestIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{t: t, fs: vfs.NewMemory(), memory: true, network: new(pipes), properties: map[string]string{"connections.max.idle.ms": "5000"}}
		r := s.start()
		began := time.Now()
		var all []*conn
		for range 200 {
			all = append(all, r.dial())
		}
		for i, c := range all {
			c.closed(fmt.Sprint("idle connection ", i))
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("closed after %v", took)
		}
	})
}
