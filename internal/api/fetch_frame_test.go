package api

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/server"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

// flatten reads the pieces of a response as the peer would.
func flatten(t *testing.T, r *server.Response) []byte {
	t.Helper()
	var out []byte
	for _, piece := range r.Pieces {
		if piece.File == nil {
			out = append(out, piece.Bytes...)
			continue
		}
		part := make([]byte, piece.Length)
		if _, err := piece.File.ReadAt(part, piece.Offset); err != nil {
			t.Fatal(err)
		}
		out = append(out, part...)
	}
	return out
}

// frameCase is a response with everything that a frame can hold.
func frameCase(file vfs.File, id protocol.TopicID) []fetchResult {
	orders := func(number int32) *fetchPart {
		return &fetchPart{fetchKey: fetchKey{topic: "orders", id: id, number: number}}
	}
	return []fetchResult{
		{part: orders(0), watermark: 10, stable: 9, start: 1, slice: log.Slice{File: file, Position: 2, Length: 5}, aborted: []log.AbortedTransaction{{ProducerID: 7, First: 3}}, preferred: protocol.NoBroker},
		{},
		{part: orders(1), watermark: 4, stable: 4, start: 0, preferred: 3},
		{part: &fetchPart{fetchKey: fetchKey{topic: "other", number: 3}}, err: protocol.NotLeaderOrFollower, watermark: -1, stable: -1, start: -1, preferred: protocol.NoBroker},
		{part: orders(2), watermark: 300, stable: 300, start: 0, slice: log.Slice{File: file, Position: 0, Length: 9}, aborted: []log.AbortedTransaction{}, preferred: protocol.NoBroker},
	}
}

// asKmsg is what kmsg's decoder must find in the frame.
func asKmsg(version int16, byID bool, id protocol.TopicID, contents []byte) *kmsg.FetchResponse {
	response := kmsg.NewPtrFetchResponse()
	response.SetVersion(version)
	if version >= 7 {
		response.SessionID = 77
	}
	topic := func(name string, id [16]byte, parts ...kmsg.FetchResponseTopicPartition) {
		t := kmsg.NewFetchResponseTopic()
		if byID {
			t.TopicID = id
		} else {
			t.Topic = name
		}
		t.Partitions = parts
		response.Topics = append(response.Topics, t)
	}
	part := func(number int32, code int16, watermark, stable, start int64, records []byte) kmsg.FetchResponseTopicPartition {
		p := kmsg.NewFetchResponseTopicPartition()
		p.Partition, p.ErrorCode, p.HighWatermark, p.LastStableOffset, p.RecordBatches = number, code, watermark, stable, records
		if version >= 5 {
			p.LogStartOffset = start
		}
		return p
	}
	first := part(0, 0, 10, 9, 1, contents[2:7])
	first.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: 7, FirstOffset: 3}}
	last := part(2, 0, 300, 300, 0, contents[:9])
	last.AbortedTransactions = []kmsg.FetchResponseTopicPartitionAbortedTransaction{}
	topic("orders", id, first)
	elsewhere := part(1, 0, 4, 4, 0, []byte{})
	if version >= 11 {
		elsewhere.PreferredReadReplica = 3
	}
	topic("orders", id, elsewhere)
	topic("other", [16]byte{}, part(3, 6, -1, -1, -1, []byte{}))
	topic("orders", id, last)
	return response
}

func TestFetchFrameIsWhatKmsgWrites(t *testing.T) {
	fs := vfs.NewMemory()
	file, err := fs.OpenFile("segment", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	contents := []byte("0123456789")
	if _, err := file.WriteAt(contents, 0); err != nil {
		t.Fatal(err)
	}
	id := protocol.NewTopicID()
	for version := int16(4); version <= 18; version++ {
		r := &Request{RequestHeader: wire.RequestHeader{Key: int16(kmsg.Fetch), Version: version, CorrelationID: 5}, pools: newPools()}
		byID := version >= 13
		got := flatten(t, frameFetch(r, protocol.None, 77, byID, frameCase(file, id)))
		want := asKmsg(version, byID, id, contents)
		wanted := want.AppendTo(wire.AppendResponseHeader(nil, r.Key, version, 5))
		if !bytes.Equal(got, wanted) {
			decoded := kmsg.NewPtrFetchResponse()
			decoded.SetVersion(version)
			header := len(wire.AppendResponseHeader(nil, r.Key, version, 5))
			err := decoded.ReadFrom(got[header:])
			t.Errorf("version %d: differs from what kmsg writes (%v):\n%s", version, err, cmp.Diff(want, decoded))
		}
	}
}

// TestFetchFrameEndsInTheFile: where the file has the zeros that a response ends in, they are sent with the
// last range.
func TestFetchFrameEndsInTheFile(t *testing.T) {
	fs := vfs.NewMemory()
	file, err := fs.OpenFile("segment", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte("0123\x00\x00\x00\x00\x00\x00\x00\x05"), 0); err != nil {
		t.Fatal(err)
	}
	results := func(zeros int) []fetchResult {
		part := &fetchPart{fetchKey: fetchKey{topic: "orders"}}
		return []fetchResult{{part: part, slice: log.Slice{File: file, Length: 4, Zeros: zeros}}}
	}
	for version := int16(4); version <= 12; version++ {
		r := &Request{RequestHeader: wire.RequestHeader{Key: int16(kmsg.Fetch), Version: version}, pools: newPools()}
		without := frameFetch(r, protocol.None, 0, false, results(0))
		with := frameFetch(r, protocol.None, 0, false, results(3))
		if a, b := flatten(t, without), flatten(t, with); !bytes.Equal(a, b) {
			t.Errorf("version %d: %x, expected %x", version, b, a)
		}
		if last := with.Pieces[len(with.Pieces)-1]; last.File == nil {
			t.Errorf("version %d: the answer ends in %d bytes that are not the file's", version, len(last.Bytes))
		}
	}
}
