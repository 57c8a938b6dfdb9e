package record

import (
	"bytes"
	"os"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// TestGoldenMarkers builds every marker of the golden transactions again, byte for byte.
func TestGoldenMarkers(t *testing.T) {
	for name, want := range map[string]map[ControlType]int{
		"3.9.2/txn-a-0": {EndAbort: 4, EndCommit: 4}, "3.9.2/rolled-txn-0": {EndAbort: 6, EndCommit: 11},
		"4.4.0/txn-a-0": {EndAbort: 4, EndCommit: 4},
	} {
		raw, err := os.ReadFile("testdata/segments/" + name + ".log")
		if err != nil {
			t.Fatal(err)
		}
		got := map[ControlType]int{}
		for b, err := range Batches(raw) {
			if err != nil {
				t.Fatal(err)
			}
			if !b.Control() {
				continue
			}
			for r, err := range b.Records(nil) {
				if err != nil {
					t.Fatal(err)
				}
				marker, ok, err := ParseEndTxnMarker(r)
				if err != nil || !ok {
					t.Fatalf("%v, %v", ok, err)
				}
				got[marker.Type]++
				again := marker.Batch(r.Timestamp, b.ProducerID(), b.ProducerEpoch())
				again.SetBaseOffset(b.BaseOffset())
				again.SetLeaderEpoch(b.LeaderEpoch())
				if !bytes.Equal(again, b) {
					t.Errorf("%s, offset %d:\n%x, want\n%x", name, r.Offset, []byte(again), []byte(b))
				}
			}
		}
		if got[EndAbort] != want[EndAbort] || got[EndCommit] != want[EndCommit] {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestBadControlRecords(t *testing.T) {
	for name, r := range map[string]Record{
		"no key":          {},
		"short key":       {Key: []byte{0, 0, 0}},
		"negative key":    {Key: []byte{0xff, 0xff, 0, 0}},
		"no value":        {Key: []byte{0, 0, 0, 1}},
		"short value":     {Key: []byte{0, 0, 0, 1}, Value: []byte{0, 0, 0, 0, 0}},
		"negative marker": {Key: []byte{0, 0, 0, 1}, Value: []byte{0xff, 0xff, 0, 0, 0, 0}},
	} {
		if _, _, err := ParseEndTxnMarker(r); protocol.CodeOf(err) != protocol.InvalidRecord {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := Record{Key: []byte{0, 0, 0, 2}}
	if _, ok, err := ParseEndTxnMarker(other); ok || err != nil {
		t.Errorf("a leader change: %v, %v", ok, err)
	}
	if LeaderChange.String() != "LEADER_CHANGE" || ControlType(-1).String() != "UNKNOWN(-1)" || ControlType(7).String() != "UNKNOWN(7)" {
		t.Error("names are wrong")
	}
}
