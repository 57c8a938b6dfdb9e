package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// kafkaAnswer is a line of testdata/kafka-4.4.jsonl: what Apache Kafka 4.4.0 answered to a differential, and
// where it took the batch, what a fetch gave back.
type kafkaAnswer struct {
	Name            string        `json:"name"`
	Code            protocol.Code `json:"code"`
	RecordErrors    []int32       `json:"recordErrors"`
	Attributes      Attributes    `json:"attributes"`
	MaxTimestamp    int64         `json:"maxTimestamp"`
	LastOffsetDelta int32         `json:"lastOffsetDelta"`
	Offsets         []int64       `json:"offsets"`
	Same            bool          `json:"same"`
	Timestamps      []int64       `json:"timestamps"`
}

// noAnswer stands for a request that Kafka never answered.
const noAnswer protocol.Code = -999

func kafkaAnswers(t *testing.T) map[string]kafkaAnswer {
	t.Helper()
	file, err := os.Open("testdata/kafka-4.4.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	answers := map[string]kafkaAnswer{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var a kafkaAnswer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		answers[a.Name] = a
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return answers
}

// ourCode is our code for a batch that Kafka answered with code: the same, except where Validate's comment
// says that it differs.
func ourCode(name string, code protocol.Code) protocol.Code {
	switch {
	case strings.Contains(name, "plain: codec "):
		return protocol.UnsupportedCompressionType
	case strings.Contains(name, "gzip: offsets "):
		return protocol.None
	case strings.HasSuffix(name, "transactional"), strings.HasSuffix(name, "transactional without producer"):
		return protocol.InvalidRecord // Kafka asks the coordinator first, or takes it
	case strings.HasSuffix(name, "record length too long"):
		return protocol.InvalidRecord
	case code == protocol.UnknownServerError, code == noAnswer:
		return protocol.InvalidRecord
	}
	return code
}

// validationOf is the validation that a differential's topic asks for.
func validationOf(t *testing.T, d differential) Validation {
	t.Helper()
	v := Validation{
		Partition: protocol.TopicPartition{Topic: d.topic}, ProduceVersion: d.version, Now: differentialNow(),
		BeforeMax: math.MaxInt64, AfterMax: time.Hour, MaxMessageBytes: 1048588, SegmentBytes: 1 << 30,
	}
	limit := func(value string) int64 {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for key, value := range differentialTopics()[d.topic] {
		switch key {
		case "cleanup.policy":
			v.Compacted = true
		case "message.timestamp.type":
			v.TimestampType = LogAppendTime
		case "message.timestamp.before.max.ms":
			v.BeforeMax = time.Duration(limit(value)) * time.Millisecond
		case "message.timestamp.after.max.ms":
			v.AfterMax = time.Duration(limit(value)) * time.Millisecond
		case "max.message.bytes":
			v.MaxMessageBytes = int32(limit(value))
		case "compression.type":
			codec, err := ParseCodec(value)
			if err != nil {
				t.Fatal(err)
			}
			v.Recompress, v.Codec = true, codec
		default:
			t.Fatalf("config %s", key)
		}
	}
	return v
}

func TestAsKafka44(t *testing.T) {
	answers := kafkaAnswers(t)
	for _, d := range differentials() {
		t.Run(d.name, func(t *testing.T) {
			answer, ok := answers[d.name]
			if !ok {
				t.Fatal("nobody asked Kafka")
			}
			raw := bytes.Clone(d.raw)
			got, err := Validate(raw, validationOf(t, d))
			if want := ourCode(d.name, answer.Code); protocol.CodeOf(err) != want {
				t.Fatalf("%v, want %s", err, want.Name())
			}
			if err != nil {
				compareRefusal(t, d, raw, err, answer)
				return
			}
			compareStored(t, got, answer)
		})
	}
}

// compareRefusal checks that a refused batch is untouched and the same records are blamed.
func compareRefusal(t *testing.T, d differential, raw []byte, err error, answer kafkaAnswer) {
	t.Helper()
	if !bytes.Equal(raw, d.raw) {
		t.Error("a refused batch was changed")
	}
	var blamed []int32
	for _, r := range RecordErrorsOf(err) {
		blamed = append(blamed, r.Index)
		if r.Message == "" {
			t.Error("a record error without a message")
		}
	}
	if !slices.Equal(blamed, answer.RecordErrors) {
		t.Errorf("records %v are blamed, want %v", blamed, answer.RecordErrors)
	}
}

// compareStored checks what would be stored against what Kafka stored.
func compareStored(t *testing.T, got Validated, answer kafkaAnswer) {
	t.Helper()
	b := got.Batch
	if !b.ValidCRC() || b.Length() != len(b) || got.MaxTimestamp != b.MaxTimestamp() {
		t.Fatalf("stored batch is not sound: %x", []byte(b))
	}
	offsets, timestamps := []int64{}, []int64{}
	for r, err := range b.Records(nil) {
		if err != nil {
			t.Fatalf("a record that was taken cannot be read: %v", err)
		}
		offsets, timestamps = append(offsets, int64(r.Offset)), append(timestamps, r.Timestamp)
	}
	if strings.Contains(answer.Name, ": offsets") {
		if want := []int64{0, 1, 2}; !slices.Equal(offsets, want) || !got.Rewritten {
			t.Errorf("offsets %v, want %v", offsets, want)
		}
		return
	}
	if !slices.Equal(offsets, answer.Offsets) || b.LastOffsetDelta() != answer.LastOffsetDelta {
		t.Errorf("offsets %v to %d, want %v to %d", offsets, b.LastOffsetDelta(), answer.Offsets, answer.LastOffsetDelta)
	}
	if want := answer.Attributes &^ deleteHorizonBit; b.Attributes()&^(1<<7) != want&^(1<<7) {
		t.Errorf("attributes %#x, want %#x", b.Attributes(), want)
	}
	if b.TimestampType() == LogAppendTime {
		if got.AppendTime != differentialNow().UnixMilli() || timestamps[0] != got.AppendTime || got.OffsetOfMaxTimestamp != 0 {
			t.Errorf("append time %d, records %v", got.AppendTime, timestamps)
		}
		return
	}
	// Kafka keeps the maximum that a batch with log append time claims, although its records say another.
	if answer.Name != "plain: log append time, other maximum" && b.MaxTimestamp() != answer.MaxTimestamp ||
		!slices.Equal(timestamps, answer.Timestamps) {
		t.Errorf("timestamps %v to %d, want %v to %d", timestamps, b.MaxTimestamp(), answer.Timestamps, answer.MaxTimestamp)
	}
}
