package record

import (
	"errors"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

func TestBuildAndWalk(t *testing.T) {
	w := NewBuilder(BuilderOptions{BaseOffset: 40, LeaderEpoch: 3, ProducerID: 7, ProducerEpoch: 2, BaseSequence: 9})
	w.Append(1000, []byte("k"), []byte("v"), RecordHeader{"h", []byte("x")}, RecordHeader{"n", nil})
	w.Append(1010, nil, []byte{})
	w.Append(990, []byte{}, nil)
	b := w.Build()
	if !b.ValidCRC() || b.Count() != 3 || b.LastOffset() != 42 || b.NextOffset() != 43 || b.Length() != len(b) ||
		b.MaxTimestamp() != 1010 || b.BaseTimestamp() != 1000 || b.ProducerID() != 7 || b.LastSequence() != 11 {
		t.Fatalf("header is wrong: %x", []byte(b))
	}
	h, err := ParseHeader(b)
	if err != nil || h.LastOffset != 42 || h.Size != len(b) || h.LastSequence() != 11 || h.LeaderEpoch != 3 {
		t.Fatalf("ParseHeader: %+v, %v", h, err)
	}
	var got []Record
	for r, err := range b.Records(nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r)
	}
	if len(got) != 3 || got[0].Offset != 40 || got[2].Timestamp != 990 {
		t.Fatalf("records: %+v", got)
	}
	if got[1].Key != nil || got[1].Value == nil || got[2].Key == nil || got[2].Value != nil {
		t.Fatalf("null and empty are mixed up: %+v", got)
	}
	var headers []RecordHeader
	for k, v := range got[0].Headers.All() {
		headers = append(headers, RecordHeader{string(k), v})
	}
	if len(headers) != 2 || headers[0].Key != "h" || headers[1].Value != nil {
		t.Fatalf("headers: %v", headers)
	}
}

func TestPlainBatchHasNoProducer(t *testing.T) {
	w := NewBuilder(BuilderOptions{})
	w.Append(5, nil, nil)
	if b := w.Build(); b.ProducerID() != -1 || b.ProducerEpoch() != -1 || b.BaseSequence() != -1 || b.LastSequence() != -1 {
		t.Fatalf("%d %d %d", b.ProducerID(), b.ProducerEpoch(), b.BaseSequence())
	}
	w = NewBuilder(BuilderOptions{Idempotent: true})
	w.Append(5, nil, nil)
	if b := w.Build(); b.ProducerID() != 0 || b.BaseSequence() != 0 {
		t.Fatalf("%d %d", b.ProducerID(), b.BaseSequence())
	}
}

func TestBatchesEndsAtTheFirstError(t *testing.T) {
	one := func(offset protocol.Offset) Batch {
		w := NewBuilder(BuilderOptions{BaseOffset: offset})
		w.Append(1, nil, []byte("value"))
		return w.Build()
	}
	whole := append(append([]byte{}, one(0)...), one(1)...)
	walk := func(b []byte) (n int, err error) {
		for batch, e := range Batches(b) {
			if e != nil {
				return n, e
			}
			if batch.BaseOffset() != protocol.Offset(n) {
				t.Fatalf("batch %d at offset %d", n, batch.BaseOffset())
			}
			n++
		}
		return n, nil
	}
	if n, err := walk(whole); n != 2 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	for cut := len(whole)/2 + 1; cut < len(whole); cut++ {
		if n, err := walk(whole[:cut]); n != 1 || !errors.Is(err, ErrShort) {
			t.Fatalf("cut at %d: %d, %v", cut, n, err)
		}
	}
	whole[magicAt] = 9
	if n, err := walk(whole); n != 0 || protocol.CodeOf(err) != protocol.CorruptMessage {
		t.Fatalf("%d, %v", n, err)
	}
}

func TestLastSequenceWraps(t *testing.T) {
	if got := lastSequence(1<<31-2, 3); got != 1 {
		t.Fatalf("got %d, want 1", got)
	}
}
