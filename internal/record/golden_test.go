package record

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// expected is a line of expected.jsonl: what a Java consumer read from the partition. The folder has
// segments that brokers of three releases wrote, one file a partition.
type expected struct {
	Topic         string            `json:"topic"`
	Partition     int32             `json:"partition"`
	Offset        protocol.Offset   `json:"offset"`
	Timestamp     int64             `json:"timestamp"`
	TimestampType string            `json:"timestampType"`
	LeaderEpoch   *int32            `json:"leaderEpoch"`
	Key           []byte            `json:"key"`
	Value         []byte            `json:"value"`
	ValueLength   int               `json:"valueLength"`
	ValueSHA256   string            `json:"valueSha256"`
	Headers       []json.RawMessage `json:"headers"`
}

func readExpected(t *testing.T, version string) map[string][]expected {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata/segments", version, "expected.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	partitions := map[string][]expected{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e expected
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("%s-%d", e.Topic, e.Partition)
		partitions[name] = append(partitions[name], e)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return partitions
}

func TestGoldenSegments(t *testing.T) {
	var d Decompressor
	for _, version := range []string{"2.8.2", "3.9.2", "4.4.0"} {
		partitions := readExpected(t, version)
		files, err := filepath.Glob(filepath.Join("testdata/segments", version, "*.log"))
		if err != nil || len(files) < 10 {
			t.Fatalf("%d segments: %v", len(files), err)
		}
		for _, file := range files {
			name := filepath.Base(file[:len(file)-len(".log")])
			t.Run(version+"/"+name, func(t *testing.T) {
				raw, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				compareSegment(t, raw, &d, partitions[name])
			})
		}
	}
}

// compareSegment walks a segment and compares its records with what the consumer got.
func compareSegment(t *testing.T, raw []byte, d *Decompressor, want []expected) {
	for entry, err := range Entries(raw) {
		if err != nil {
			t.Fatal(err)
		}
		if !entry.ValidCRC() {
			t.Fatalf("CRC at offset %d is wrong", entry.BaseOffset)
		}
		first, err := entry.FirstOffset(d)
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range entry.Records(d) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Offset < first || r.Offset > entry.LastOffset {
				t.Fatalf("offset %d outside [%d, %d]", r.Offset, first, entry.LastOffset)
			}
			if entry.Control() {
				continue
			}
			if len(want) == 0 {
				t.Fatalf("record at offset %d is too much", r.Offset)
			}
			compareRecord(t, &entry, &r, &want[0])
			want = want[1:]
		}
	}
	if len(want) > 0 {
		t.Fatalf("%d records are missing, from offset %d on", len(want), want[0].Offset)
	}
}

func compareRecord(t *testing.T, entry *Entry, r *Record, want *expected) {
	t.Helper()
	if r.Offset != want.Offset || r.Timestamp != want.Timestamp {
		t.Fatalf("record at offset %d, time %d; want %d, %d", r.Offset, r.Timestamp, want.Offset, want.Timestamp)
	}
	if want.LeaderEpoch != nil && entry.LeaderEpoch != protocol.LeaderEpoch(*want.LeaderEpoch) {
		t.Fatalf("offset %d: leader epoch %d, want %d", r.Offset, entry.LeaderEpoch, *want.LeaderEpoch)
	}
	if want.TimestampType != "NoTimestampType" && entry.TimestampType().String() != want.TimestampType {
		t.Fatalf("offset %d: %s, want %s", r.Offset, entry.TimestampType(), want.TimestampType)
	}
	if !bytes.Equal(r.Key, want.Key) || (r.Key == nil) != (want.Key == nil) {
		t.Fatalf("offset %d: key %q, want %q", r.Offset, r.Key, want.Key)
	}
	if want.ValueSHA256 != "" {
		sum := sha256.Sum256(r.Value)
		if len(r.Value) != want.ValueLength || hex.EncodeToString(sum[:]) != want.ValueSHA256 {
			t.Fatalf("offset %d: value of %d bytes is another", r.Offset, len(r.Value))
		}
	} else if !bytes.Equal(r.Value, want.Value) || (r.Value == nil) != (want.Value == nil) {
		t.Fatalf("offset %d: value %q, want %q", r.Offset, r.Value, want.Value)
	}
	compareHeaders(t, r, want.Headers)
}

func compareHeaders(t *testing.T, r *Record, want []json.RawMessage) {
	t.Helper()
	if r.Headers.Len() != len(want) {
		t.Fatalf("offset %d: %d headers, want %d", r.Offset, r.Headers.Len(), len(want))
	}
	for key, value := range r.Headers.All() {
		got, err := json.Marshal([]any{string(key), value})
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want[0]) {
			t.Fatalf("offset %d: header %s, want %s", r.Offset, got, want[0])
		}
		want = want[1:]
	}
}
