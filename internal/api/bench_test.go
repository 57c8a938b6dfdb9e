package api

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

// benchWidths are how many partitions the requests of benchmarks name.
var benchWidths = []int32{1, 8, 100}

// BenchmarkDecodeProduce reads a request with a batch of 1 KiB for each partition, as produce does: also whether one of
// them is in a transaction.
func BenchmarkDecodeProduce(b *testing.B) {
	for _, version := range []int16{8, 13} {
		for _, partitions := range benchWidths {
			for name, producer := range map[string]record.BuilderOptions{"plain": {}, "idempotent": {Idempotent: true, ProducerID: 7}} {
				b.Run(fmt.Sprintf("version=%d/partitions=%d/%s", version, partitions, name), func(b *testing.B) {
					body := produceBody(version, partitions, producer)
					r := &Request{RequestHeader: wire.RequestHeader{Version: version}, pools: newPools()}
					b.ReportAllocs()
					for b.Loop() {
						p := r.pools.produces.Get().(*produce)
						p.reset(r)
						if err := p.request.UnsafeReadFrom(body); err != nil {
							b.Fatal(err)
						}
						if transactional(&p.request) {
							b.Fatal("in a transaction")
						}
						p.done(r)
					}
				})
			}
		}
	}
}

// produceBody is a request with a batch of a record of 1 KiB for each partition.
func produceBody(version int16, partitions int32, producer record.BuilderOptions) []byte {
	q := kmsg.NewPtrProduceRequest()
	q.SetVersion(version)
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic = "orders"
	for number := range partitions {
		batch := record.NewBuilder(producer)
		batch.Append(1000, nil, make([]byte, 1<<10))
		topic.Partitions = append(topic.Partitions, kmsg.ProduceRequestTopicPartition{Partition: number, Records: batch.Build()})
	}
	q.Topics = append(q.Topics, topic)
	return q.AppendTo(nil)
}

// BenchmarkFetch is a whole request but for the connection: decoded, the ranges found, the answer put together.
func BenchmarkFetch(b *testing.B) {
	for _, partitions := range benchWidths {
		b.Run(fmt.Sprintf("partitions=%d", partitions), func(b *testing.B) {
			s := newStage(b)
			s.lead("t", partitions, true)
			q := kmsg.NewPtrFetchRequest()
			q.SetVersion(12)
			q.MaxBytes, q.SessionEpoch, q.MinBytes = 1<<20, -1, 1
			topic := kmsg.NewFetchRequestTopic()
			topic.Topic = "t"
			for number := range partitions {
				produce := s.producing("t", 1, records(10))
				produce.Topics[0].Partitions[0].Partition = number
				if got := produced(ask[*kmsg.ProduceResponse](s, produce)); got.ErrorCode != 0 {
					b.Fatal(protocol.Code(got.ErrorCode))
				}
				p := kmsg.NewFetchRequestTopicPartition()
				p.Partition, p.PartitionMaxBytes, p.CurrentLeaderEpoch = number, 1<<20, -1
				topic.Partitions = append(topic.Partitions, p)
			}
			q.Topics = append(q.Topics, topic)
			answer := ask[*kmsg.FetchResponse](s, q)
			if got := answer.Topics[0].Partitions; len(got) != int(partitions) || len(got[0].RecordBatches) == 0 {
				b.Fatalf("%d partitions", len(got))
			}
			frame := frameOf(q)
			b.ReportAllocs()
			for b.Loop() {
				s.handle(frame).Response.Release()
			}
		})
	}
}

// BenchmarkFetchFrame puts answers together from ranges that have been found.
func BenchmarkFetchFrame(b *testing.B) {
	for _, partitions := range benchWidths {
		b.Run(fmt.Sprintf("partitions=%d", partitions), func(b *testing.B) {
			r := &Request{RequestHeader: wire.RequestHeader{Key: int16(kmsg.Fetch), Version: 12}, pools: newPools()}
			results := make([]fetchResult, partitions)
			for i := range results {
				part := &fetchPart{fetchKey: fetchKey{topic: "orders", number: int32(i)}}
				results[i] = fetchResult{part: part, watermark: 10, stable: 10, slice: log.Slice{Position: 100, Length: 64 << 10}, preferred: protocol.NoBroker}
			}
			b.ReportAllocs()
			for b.Loop() {
				frameFetch(r, protocol.None, 0, false, results).Release()
			}
		})
	}
}
