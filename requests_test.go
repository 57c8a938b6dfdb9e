package barnabas_test

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// ask sends one request to the only broker.
func ask[R kmsg.Response](t *testing.T, ctx context.Context, c *kgo.Client, q kmsg.Request) R {
	t.Helper()
	response, err := c.Broker(1).Request(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	return response.(R)
}

// wantCode compares an error code with one of kerr's; nil for none.
func wantCode(t *testing.T, what string, got int16, want *kerr.Error) {
	t.Helper()
	code := int16(0)
	if want != nil {
		code = want.Code
	}
	if got != code {
		t.Errorf("%s: error code %d, want %d", what, got, code)
	}
}

func create(t *testing.T, ctx context.Context, c *kgo.Client, topic string) [16]byte {
	t.Helper()
	made, err := kadm.NewClient(c).CreateTopic(ctx, 1, 1, nil, topic)
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// Without a coordinator nobody could end a transaction, which would hold the last stable offset for ever.
func TestTransactionalBatchesAreRefused(t *testing.T) {
	ctx := within(t)
	c := client(t, start(t, ctx, barnabas.Options{}))
	id := create(t, ctx, c, "t")
	b := record.NewBuilder(record.BuilderOptions{Transactional: true, Idempotent: true, ProducerID: 7})
	b.Append(1, []byte("k"), []byte("v"))
	text := "a transaction"
	for want, transaction := range map[*kerr.Error]*string{kerr.TransactionalIDAuthorizationFailed: nil, kerr.InvalidProducerIDMapping: &text} {
		q := kmsg.NewPtrProduceRequest()
		q.Acks, q.TimeoutMillis, q.TransactionID = -1, 1000, transaction
		q.Topics = []kmsg.ProduceRequestTopic{{Topic: "t", TopicID: id, Partitions: []kmsg.ProduceRequestTopicPartition{{Records: b.Build()}}}}
		answer := ask[*kmsg.ProduceResponse](t, ctx, c, q)
		wantCode(t, "produce", answer.Topics[0].Partitions[0].ErrorCode, want)
	}
	ends, err := kadm.NewClient(c).ListEndOffsets(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	if end, _ := ends.Lookup("t", 0); end.Offset != 0 {
		t.Errorf("the log ends at %d", end.Offset)
	}
}

func TestFetchTellsOfDivergingEpochs(t *testing.T) {
	ctx := within(t)
	c := client(t, start(t, ctx, barnabas.Options{}), kgo.DefaultProduceTopic("t"))
	id := create(t, ctx, c, "t")
	produce(t, ctx, c, "t", 3)
	fetch := func(offset int64, last int32) kmsg.FetchResponseTopicPartition {
		q := kmsg.NewPtrFetchRequest()
		q.SessionEpoch, q.MaxBytes = -1, 1<<20
		p := kmsg.NewFetchRequestTopicPartition()
		p.FetchOffset, p.LastFetchedEpoch, p.PartitionMaxBytes = offset, last, 1<<20
		q.Topics = []kmsg.FetchRequestTopic{{Topic: "t", TopicID: id, Partitions: []kmsg.FetchRequestTopicPartition{p}}}
		return ask[*kmsg.FetchResponse](t, ctx, c, q).Topics[0].Partitions[0]
	}
	if p := fetch(1, 0); p.ErrorCode != 0 || len(p.RecordBatches) == 0 || p.DivergingEpoch.EndOffset != -1 {
		t.Errorf("within the epoch: %+v", p)
	}
	if p := fetch(9, 0); p.ErrorCode != 0 || len(p.RecordBatches) != 0 || p.DivergingEpoch.Epoch != 0 || p.DivergingEpoch.EndOffset != 3 {
		t.Errorf("behind the epoch's end: %+v", p)
	}
	wantCode(t, "an epoch that never was", fetch(1, 5).ErrorCode, kerr.OffsetOutOfRange)
}

func TestOffsetsOfPartitionsThatDoNotExist(t *testing.T) {
	ctx := within(t)
	c := client(t, start(t, ctx, barnabas.Options{}))
	id := create(t, ctx, c, "t")
	if _, err := kadm.NewClient(c).FetchOffsets(ctx, "g"); err != nil { // makes the coordinator
		t.Fatal(err)
	}
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Group, q.Generation = "g", -1
	parts := make([]kmsg.OffsetCommitRequestTopicPartition, 2)
	parts[0].Partition, parts[1].Partition = 0, 7
	q.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t", TopicID: id, Partitions: parts}}
	topics := ask[*kmsg.OffsetCommitResponse](t, ctx, c, q).Topics
	if len(topics) != 1 || len(topics[0].Partitions) != 2 {
		t.Fatalf("answer %+v", topics)
	}
	wantCode(t, "commit", topics[0].Partitions[0].ErrorCode, nil)
	wantCode(t, "commit", topics[0].Partitions[1].ErrorCode, kerr.UnknownTopicOrPartition)
	remove := kmsg.NewPtrOffsetDeleteRequest()
	remove.Group = "g"
	remove.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: "t", Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 7}}}}
	gone := ask[*kmsg.OffsetDeleteResponse](t, ctx, c, remove)
	wantCode(t, "delete", gone.Topics[0].Partitions[0].ErrorCode, kerr.UnknownTopicOrPartition)
}

func TestGroupsHaveProperties(t *testing.T) {
	ctx := within(t)
	c := client(t, start(t, ctx, barnabas.Options{}))
	const name, key, value = "a group / with a path", "consumer.session.timeout.ms", "50000"
	alter := kmsg.NewPtrIncrementalAlterConfigsRequest()
	text := value
	alter.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: 32, ResourceName: name,
		Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: key, Value: &text}}}}
	wantCode(t, "alter", ask[*kmsg.IncrementalAlterConfigsResponse](t, ctx, c, alter).Resources[0].ErrorCode, nil)
	describe := kmsg.NewPtrDescribeConfigsRequest()
	describe.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: 32, ResourceName: name, ConfigNames: []string{key}}}
	described := ask[*kmsg.DescribeConfigsResponse](t, ctx, c, describe).Resources[0]
	if len(described.Configs) != 1 || described.Configs[0].Value == nil || *described.Configs[0].Value != value {
		t.Errorf("described as %+v", described)
	}
	list := kmsg.NewPtrListConfigResourcesRequest()
	list.ResourceTypes = []int8{32}
	listed := ask[*kmsg.ListConfigResourcesResponse](t, ctx, c, list).ConfigResources
	if len(listed) != 1 || listed[0].Name != name {
		t.Errorf("listed as %+v", listed)
	}
}

func TestElectLeaders(t *testing.T) {
	ctx := within(t)
	c := client(t, start(t, ctx, barnabas.Options{}))
	create(t, ctx, c, "t")
	q := kmsg.NewPtrElectLeadersRequest()
	q.TimeoutMillis = 5000
	q.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: "t", Partitions: []int32{0, 9}}}
	topics := ask[*kmsg.ElectLeadersResponse](t, ctx, c, q).Topics
	if len(topics) != 1 || len(topics[0].Partitions) != 2 {
		t.Fatalf("answer %+v", topics)
	}
	wantCode(t, "a leader that is the preferred one", topics[0].Partitions[0].ErrorCode, kerr.ElectionNotNeeded)
	wantCode(t, "a partition that does not exist", topics[0].Partitions[1].ErrorCode, kerr.UnknownTopicOrPartition)
}
