package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// jsonRecord is a record as one line of JSON. What is no UTF-8 is in base64 under the name with "_base64",
// so that every record comes back as it was.
//
//	{"topic":"t","partition":0,"offset":7,"timestamp":1700000000000,"key":"k","value":"v",
//	 "headers":[{"key":"h","value":"x"}]}
//
// key and value are always there, null for null; "" is a record with an empty one, which to a compacted topic
// is something else. Of produce --input json, topic, partition and offset are ignored, so that what one command
// prints another can read.
type jsonRecord struct {
	Topic       string       `json:"topic,omitempty"`
	Partition   *int32       `json:"partition,omitempty"`
	Offset      *int64       `json:"offset,omitempty"`
	Timestamp   *int64       `json:"timestamp,omitempty"`
	Key         *string      `json:"key"`
	KeyBase64   []byte       `json:"key_base64,omitempty"`
	Value       *string      `json:"value"`
	ValueBase64 []byte       `json:"value_base64,omitempty"`
	Headers     []jsonHeader `json:"headers,omitempty"`
}

// jsonHeader is a header: a list, since a key may be there several times.
type jsonHeader struct {
	Key         string  `json:"key"`
	Value       *string `json:"value"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
}

// split puts bytes where they are readable: text for UTF-8, else raw; both nil for null.
func split(b []byte) (text *string, raw []byte) {
	if b == nil {
		return nil, nil
	}
	if utf8.Valid(b) {
		s := string(b)
		return &s, nil
	}
	return nil, b
}

// join is the reverse of split.
func join(text *string, raw []byte) []byte {
	if text != nil {
		return append([]byte{}, *text...)
	}
	return raw
}

func jsonOf(r *kgo.Record) jsonRecord {
	ms := r.Timestamp.UnixMilli()
	j := jsonRecord{Topic: r.Topic, Partition: &r.Partition, Offset: &r.Offset, Timestamp: &ms}
	j.Key, j.KeyBase64 = split(r.Key)
	j.Value, j.ValueBase64 = split(r.Value)
	for _, h := range r.Headers {
		header := jsonHeader{Key: h.Key}
		header.Value, header.ValueBase64 = split(h.Value)
		j.Headers = append(j.Headers, header)
	}
	return j
}

// appendJSON appends a record as a line.
func appendJSON(dst []byte, r *kgo.Record) ([]byte, error) {
	buffer := bytes.NewBuffer(dst)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(jsonOf(r))
	return buffer.Bytes(), err
}

// record is the record to write: with key, value, headers and timestamp of the line; where it goes is not
// the line's to say.
func (j *jsonRecord) record() *kgo.Record {
	r := &kgo.Record{Key: join(j.Key, j.KeyBase64), Value: join(j.Value, j.ValueBase64)}
	if j.Timestamp != nil {
		r.Timestamp = time.UnixMilli(*j.Timestamp)
	}
	for _, h := range j.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: join(h.Value, h.ValueBase64)})
	}
	return r
}

// jsonRecords reads objects, one after another.
func jsonRecords(in io.Reader) func() (*kgo.Record, error) {
	decoder := json.NewDecoder(in)
	decoder.DisallowUnknownFields()
	return func() (*kgo.Record, error) {
		var j jsonRecord
		if err := decoder.Decode(&j); errors.Is(err, io.EOF) {
			return nil, io.EOF
		} else if err != nil {
			return nil, fmt.Errorf("not a record in JSON: %w", err)
		}
		return j.record(), nil
	}
}
