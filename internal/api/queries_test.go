package api

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// listed asks ListOffsets about partition 0 of a topic.
func (s *stage) listed(version int16, topic string, timestamp int64, epoch int32) kmsg.ListOffsetsResponseTopicPartition {
	q := kmsg.NewPtrListOffsetsRequest()
	q.Version, q.ReplicaID = version, -1
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Timestamp, p.CurrentLeaderEpoch = timestamp, epoch
	q.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	return ask[*kmsg.ListOffsetsResponse](s, q).Topics[0].Partitions[0]
}

func TestListOffsets(t *testing.T) {
	s := newStage(t)
	s.lead("t", 1, true)
	s.write("t", 0, 3) // at 1000, 1001, 1002
	s.lead("t", 1, true)
	s.write("t", 0, 2) // at 1000, 1001, in epoch 1
	s.lead("empty", 1, true)
	for _, c := range []struct {
		topic      string
		version    int16
		timestamp  int64
		offset, at int64
		epoch      int32
		want       protocol.Code
	}{
		{topic: "t", version: 11, timestamp: latestOffset, offset: 5, at: -1, epoch: 1},
		{topic: "t", version: 11, timestamp: earliestOffset, offset: 0, at: -1, epoch: 0},
		{topic: "t", version: 11, timestamp: earliestLocalOffset, offset: 0, at: -1, epoch: 0},
		{topic: "t", version: 11, timestamp: maxTimestampOffset, offset: 2, at: 1002, epoch: 0},
		{topic: "t", version: 11, timestamp: latestTieredOffset, offset: -1, at: -1, epoch: -1},
		{topic: "t", version: 11, timestamp: 1001, offset: 1, at: 1001, epoch: 0},
		{topic: "t", version: 11, timestamp: 0, offset: 0, at: 1000, epoch: 0},
		{topic: "t", version: 11, timestamp: 1003, offset: -1, at: -1, epoch: -1},
		{topic: "empty", version: 11, timestamp: latestOffset, offset: 0, at: -1, epoch: 0},
		{topic: "empty", version: 11, timestamp: maxTimestampOffset, offset: -1, at: -1, epoch: -1},
		{topic: "t", version: 6, timestamp: maxTimestampOffset, offset: -1, at: -1, epoch: -1, want: protocol.UnsupportedVersion},
		{topic: "t", version: 7, timestamp: earliestLocalOffset, offset: -1, at: -1, epoch: -1, want: protocol.UnsupportedVersion},
		{topic: "t", version: 10, timestamp: earliestPending, offset: -1, at: -1, epoch: -1, want: protocol.UnsupportedVersion},
		{topic: "nobody", version: 11, timestamp: latestOffset, offset: -1, at: -1, epoch: -1, want: protocol.UnknownTopicOrPartition},
	} {
		got := s.listed(c.version, c.topic, c.timestamp, -1)
		if got.Offset != c.offset || got.Timestamp != c.at || got.LeaderEpoch != c.epoch || protocol.Code(got.ErrorCode) != c.want {
			t.Errorf("version %d, %s at %d: %+v, want %+v", c.version, c.topic, c.timestamp, got, c)
		}
	}
	for epoch, want := range map[int32]protocol.Code{0: protocol.FencedLeaderEpoch, 1: protocol.None, 2: protocol.UnknownLeaderEpoch} {
		if got := s.listed(11, "t", latestOffset, epoch); protocol.Code(got.ErrorCode) != want {
			t.Errorf("a client in epoch %d: %v, want %v", epoch, protocol.Code(got.ErrorCode), want.Name())
		}
	}
}

// What is not committed is not there for a consumer.
func TestUncommittedRecordsAreInNoAnswer(t *testing.T) {
	s := newStage(t)
	s.lead("t", 1, false)
	s.write("t", 0, 2)
	for _, timestamp := range []int64{1000, maxTimestampOffset} {
		if got := s.listed(11, "t", timestamp, -1); got.Offset != -1 {
			t.Errorf("offset %d for timestamp %d", got.Offset, timestamp)
		}
	}
	if got := s.listed(11, "t", latestOffset, -1); got.Offset != 0 {
		t.Errorf("latest is %d, want 0", got.Offset)
	}
	c := &consumer{s: s, version: 12}
	c.expect("a fetch", c.fetch(nil, want{"t", 0, 0}), "t-0", "0")
}

func TestOffsetForLeaderEpoch(t *testing.T) {
	s := newStage(t)
	s.lead("t", 1, true)
	s.write("t", 0, 3)
	s.lead("t", 1, true)
	s.lead("t", 1, true)
	s.write("t", 0, 2)
	for _, c := range []struct {
		asked, client int32
		epoch         int32
		end           int64
		want          protocol.Code
	}{
		{asked: 0, client: -1, epoch: 0, end: 3},
		{asked: 1, client: 2, epoch: 0, end: 3}, // nothing was written in it
		{asked: 2, client: 2, epoch: 2, end: 5},
		{asked: 3, client: 2, epoch: -1, end: -1},
		{asked: 0, client: 1, epoch: -1, end: -1, want: protocol.FencedLeaderEpoch},
		{asked: 0, client: 3, epoch: -1, end: -1, want: protocol.UnknownLeaderEpoch},
	} {
		q := kmsg.NewPtrOffsetForLeaderEpochRequest()
		q.Version, q.ReplicaID = 4, -1
		p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		p.LeaderEpoch, p.CurrentLeaderEpoch = c.asked, c.client
		q.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{p}}}
		got := ask[*kmsg.OffsetForLeaderEpochResponse](s, q).Topics[0].Partitions[0]
		if got.LeaderEpoch != c.epoch || got.EndOffset != c.end || protocol.Code(got.ErrorCode) != c.want {
			t.Errorf("epoch %d, client in %d: %+v, want %+v", c.asked, c.client, got, c)
		}
	}
}

func TestDeleteRecords(t *testing.T) {
	s := newStage(t)
	s.lead("t", 1, true)
	s.write("t", 0, 5)
	for _, c := range []struct {
		topic       string
		offset, low int64
		want        protocol.Code
	}{
		{"t", 2, 2, protocol.None},
		{"t", 1, 2, protocol.None}, // done already
		{"t", 6, -1, protocol.OffsetOutOfRange},
		{"t", -2, -1, protocol.OffsetOutOfRange},
		{"t", -1, 5, protocol.None}, // all that is committed
		{"nobody", 0, -1, protocol.UnknownTopicOrPartition},
		{protocol.GroupMetadataTopic, 0, -1, protocol.InvalidTopic},
	} {
		q := kmsg.NewPtrDeleteRecordsRequest()
		q.Version = 2
		q.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: c.topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: c.offset}}}}
		got := asked(s, q)
		if got.LowWatermark != c.low || protocol.Code(got.ErrorCode) != c.want {
			t.Errorf("%s up to %d: %+v, want %d and %v", c.topic, c.offset, got, c.low, c.want.Name())
		}
	}
	if got := s.listed(11, "t", earliestOffset, -1); got.Offset != 5 {
		t.Errorf("earliest is %d, want 5", got.Offset)
	}
	c := &consumer{s: s, version: 12}
	c.expect("a fetch below", c.fetch(nil, want{"t", 0, 4}), "t-0", "OFFSET_OUT_OF_RANGE")
}

// asked is what DeleteRecords says of its only partition.
func asked(s *stage, q *kmsg.DeleteRecordsRequest) kmsg.DeleteRecordsResponseTopicPartition {
	return ask[*kmsg.DeleteRecordsResponse](s, q).Topics[0].Partitions[0]
}

// Pages of DescribeTopicPartitions put together are the whole, whatever the size of a page.
func TestPagesOfTopicPartitions(t *testing.T) {
	s := newStage(t)
	s.lead("a", 3, true)
	s.lead("b", 1, true)
	s.lead("c", 4, true)
	want := []string{"a-0", "a-1", "a-2", "b-0", "c-0", "c-1", "c-2", "c-3"}
	for limit := int32(1); limit < 10; limit++ {
		var got []string
		var cursor *kmsg.DescribeTopicPartitionsRequestCursor
		for pages := 0; ; pages++ {
			q := kmsg.NewPtrDescribeTopicPartitionsRequest()
			q.ResponsePartitionLimit, q.Cursor = limit, cursor
			response := ask[*kmsg.DescribeTopicPartitionsResponse](s, q)
			n := 0
			for _, topic := range response.Topics {
				for _, p := range topic.Partitions {
					got = append(got, fmt.Sprintf("%s-%d", *topic.Topic, p.Partition))
					n++
				}
			}
			if n > int(limit) || pages > len(want) {
				t.Fatalf("page %d has %d partitions, the limit is %d", pages, n, limit)
			}
			if response.NextCursor == nil {
				break
			}
			cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: response.NextCursor.Topic, Partition: response.NextCursor.Partition}
		}
		if !slices.Equal(got, want) {
			t.Errorf("in pages of %d: %v, want %v", limit, got, want)
		}
	}
}

func TestMetadataByVersion(t *testing.T) {
	s := newStage(t)
	s.lead("a", 2, true)
	s.lead("b", 1, true)
	named := func(version int16, topics ...kmsg.MetadataRequestTopic) *kmsg.MetadataResponse {
		q := kmsg.NewPtrMetadataRequest()
		q.Version, q.Topics, q.AllowAutoTopicCreation = version, topics, false
		return ask[*kmsg.MetadataResponse](s, q)
	}
	if got := named(0, []kmsg.MetadataRequestTopic{}...); len(got.Topics) != 2 {
		t.Errorf("version 0, none named: %d topics, want all", len(got.Topics))
	}
	for _, version := range []int16{1, 9, 13} {
		if got := named(version); len(got.Topics) != 2 || got.ClusterID != nil && *got.ClusterID != "cluster" {
			t.Errorf("version %d, null: %d topics, want all", version, len(got.Topics))
		}
		q := kmsg.NewPtrMetadataRequest()
		q.Version, q.Topics = version, []kmsg.MetadataRequestTopic{}
		if got := ask[*kmsg.MetadataResponse](s, q); len(got.Topics) != 0 || len(got.Brokers) != 1 {
			t.Errorf("version %d, none named: %d topics, want none", version, len(got.Topics))
		}
	}
	name, bad := "a", "a b"
	byName := named(12, kmsg.MetadataRequestTopic{Topic: &name}, kmsg.MetadataRequestTopic{Topic: &name}, kmsg.MetadataRequestTopic{Topic: &bad})
	if len(byName.Topics) != 2 || byName.Topics[0].TopicID != s.ids["a"] || len(byName.Topics[0].Partitions) != 2 {
		t.Errorf("named twice: %+v", byName.Topics)
	}
	if code := protocol.Code(byName.Topics[1].ErrorCode); code != protocol.InvalidTopic {
		t.Errorf("a name that cannot be: %v", code)
	}
	byID := named(12, kmsg.MetadataRequestTopic{TopicID: s.ids["b"]}, kmsg.MetadataRequestTopic{TopicID: protocol.NewTopicID()})
	if got := byID.Topics[0]; got.Topic == nil || *got.Topic != "b" || got.ErrorCode != 0 {
		t.Errorf("by id: %+v", got)
	}
	if got := byID.Topics[1]; protocol.Code(got.ErrorCode) != protocol.UnknownTopicID || got.Topic != nil {
		t.Errorf("by an unknown id: %+v", got)
	}
	if got := named(10, kmsg.MetadataRequestTopic{Topic: &name, TopicID: s.ids["a"]}); protocol.Code(got.Topics[0].ErrorCode) != protocol.InvalidRequest {
		t.Errorf("by id in version 10: %+v", got.Topics[0])
	}
}

func TestApiVersions(t *testing.T) {
	s := newStage(t)
	greet := func(version int16, name, software string) *kmsg.ApiVersionsResponse {
		q := kmsg.NewPtrApiVersionsRequest()
		q.Version, q.ClientSoftwareName, q.ClientSoftwareVersion = version, name, software
		return ask[*kmsg.ApiVersionsResponse](s, q)
	}
	for version := range int16(5) {
		got := greet(version, "client", "1.0")
		at := slices.IndexFunc(got.ApiKeys, func(k kmsg.ApiVersionsResponseApiKey) bool { return k.ApiKey == int16(kmsg.Produce) })
		if got.ErrorCode != 0 || at < 0 || got.ApiKeys[at].MinVersion != 0 || got.ApiKeys[at].MaxVersion != 13 {
			t.Errorf("version %d: %v, Produce %+v", version, protocol.Code(got.ErrorCode), got.ApiKeys[max(at, 0)])
		}
		for _, k := range got.ApiKeys {
			if k.ApiKey == int16(kmsg.LeaderAndISR) || k.ApiKey == int16(kmsg.UpdateMetadata) || k.ApiKey == int16(kmsg.StopReplica) {
				t.Errorf("version %d advertises %s, which only the broker itself may send", version, kmsg.NameForKey(k.ApiKey))
			}
		}
	}
	if name, version := s.conn.ClientSoftware(); name != "client" || version != "1.0" {
		t.Errorf("the connection is known as %q %q", name, version)
	}
	// BR-169
	for _, bad := range []string{"", "a client", "client-", "-client", "kunde\u00e4"} {
		if got := greet(3, bad, "1"); protocol.Code(got.ErrorCode) != protocol.InvalidRequest {
			t.Errorf("software name %q: %v, want INVALID_REQUEST", bad, protocol.Code(got.ErrorCode))
		}
	}
	// BR-003 and BR-200: a version that comes after ours is answered as version 0, with one entry.
	q := kmsg.NewPtrApiVersionsRequest()
	q.Version = 5
	frame := frameOf(q)
	frame[3] = 6
	reply := s.handle(frame)
	got := decoded(s, &kmsg.ApiVersionsRequest{Version: 0}, reply.Response).(*kmsg.ApiVersionsResponse)
	if reply.Close || protocol.Code(got.ErrorCode) != protocol.UnsupportedVersion || len(got.ApiKeys) != 1 || got.ApiKeys[0].ApiKey != int16(kmsg.ApiVersions) || got.ApiKeys[0].MaxVersion != 5 {
		t.Errorf("a version too new: %+v", got)
	}
}

// Requests that nobody but the broker itself may send, and versions and keys that are not served, close the
// connection.
func TestUnservedRequests(t *testing.T) {
	s := newStage(t)
	for _, q := range []kmsg.Request{
		&kmsg.LeaderAndISRRequest{Version: 7}, &kmsg.UpdateMetadataRequest{Version: 8}, &kmsg.StopReplicaRequest{Version: 4},
		&kmsg.ProduceRequest{Version: 2}, &kmsg.FetchRequest{Version: 3}, &kmsg.ListOffsetsRequest{Version: 0}, &kmsg.EndTxnRequest{Version: 3},
	} {
		if reply := s.begin(q); !reply.Close || reply.Response != nil || reply.Wait != nil {
			t.Errorf("%s %d: %+v, want a closed connection", kmsg.NameForKey(q.Key()), q.GetVersion(), reply)
		}
	}
	for _, frame := range [][]byte{{}, {0, 1}, {0, 1, 0, 12, 0, 0, 0, 1, 0, 1, 'x'}, {0x7f, 0xff, 0, 0, 0, 0, 0, 1, 0xff, 0xff}} {
		if reply := s.handle(frame); !reply.Close {
			t.Errorf("% x: %+v, want a closed connection", frame, reply)
		}
	}
}
