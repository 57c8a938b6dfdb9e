package shard

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/record"
)

// What Kafka 4.4's coordinators wrote, records and markers, is what we would have written.
func TestBatchesAreKafkas(t *testing.T) {
	segment, err := os.ReadFile("testdata/consumer-offsets-4.4.0.log")
	if err != nil {
		t.Fatal(err)
	}
	plain, transactional, markers := 0, 0, 0
	for want, err := range record.Batches(segment) {
		if err != nil {
			t.Fatal(err)
		}
		now := Now{Wall: want.BaseTimestamp()}
		producer := Producer{ID: want.ProducerID(), Epoch: want.ProducerEpoch()}
		var records []Record
		for r, err := range want.Records(nil) {
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, Record{slices.Clone(r.Key), slices.Clone(r.Value)})
		}
		var got record.Batch
		switch {
		case want.Control():
			markers++
			got = markerBatch(Marker{
				Producer: producer, Commit: records[0].Key[3] == 1,
				CoordinatorEpoch: int32(binary.BigEndian.Uint32(records[0].Value[2:])),
			}, now)
		case want.Transactional():
			transactional++
			got = build(records, &producer, now, Config{})
		default:
			plain++
			got = build(records, nil, now, Config{})
		}
		got.SetBaseOffset(want.BaseOffset())
		got.SetLeaderEpoch(want.LeaderEpoch())
		if !bytes.Equal(got, want) {
			t.Errorf("batch at offset %d:\nkafka %x\nours  %x", want.BaseOffset(), []byte(want), []byte(got))
		}
	}
	if plain < 8 || transactional != 2 || markers != 2 {
		t.Errorf("%d plain, %d transactional, %d markers compared", plain, transactional, markers)
	}
}
