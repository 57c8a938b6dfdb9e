package cli

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"
)

// content is what of a record must come through JSON unchanged.
type content struct {
	Key, Value []byte
	Headers    []kgo.RecordHeader
	Timestamp  int64
}

func contentOf(r *kgo.Record) content {
	return content{r.Key, r.Value, r.Headers, r.Timestamp.UnixMilli()}
}

func TestRecordsComeBackFromJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytesOrNull := rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 0, 20), rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }))
		var records []*kgo.Record
		var lines []byte
		for range rapid.IntRange(1, 4).Draw(t, "records") {
			r := &kgo.Record{
				Topic: "t", Key: bytesOrNull.Draw(t, "key"), Value: bytesOrNull.Draw(t, "value"),
				Timestamp: time.UnixMilli(rapid.Int64Range(0, 1<<45).Draw(t, "timestamp")),
			}
			for range rapid.IntRange(0, 3).Draw(t, "headers") {
				r.Headers = append(r.Headers, kgo.RecordHeader{Key: rapid.StringMatching(`[a-z<>&"]{0,5}`).Draw(t, "header"), Value: bytesOrNull.Draw(t, "header value")})
			}
			var err error
			if lines, err = appendJSON(lines, r); err != nil {
				t.Fatal(err)
			}
			records = append(records, r)
		}
		next := jsonRecords(bytes.NewReader(lines))
		for _, want := range records {
			got, err := next()
			if err != nil {
				t.Fatalf("%v in %s", err, lines)
			}
			if diff := cmp.Diff(contentOf(want), contentOf(got)); diff != "" {
				t.Fatalf("%s\nin %s", diff, lines)
			}
		}
		if _, err := next(); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	})
}

func FuzzJSONRecords(f *testing.F) {
	f.Add(`{"key":"k","value":null}`)
	f.Add(`{"key_base64":"/wA=","headers":[{"key":"h","value_base64":"AA=="}]} {"value":"next"}`)
	f.Add(`{"value":`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, input string) {
		next := jsonRecords(strings.NewReader(input))
		for range 100 {
			if _, err := next(); err != nil {
				return
			}
		}
	})
}

func TestLines(t *testing.T) {
	flags := recordFlags{input: "lines", keySeparator: ":", key: "none", headers: []string{"h=a=b"}, tombstone: true}
	next, err := flags.reader(strings.NewReader("k:v:w\n:x\ny:\nlast:line"))
	if err != nil {
		t.Fatal(err)
	}
	header := []kgo.RecordHeader{{Key: "h", Value: []byte("a=b")}}
	for _, want := range []content{
		{[]byte("k"), []byte("v:w"), header, 0}, {[]byte{}, []byte("x"), header, 0}, {[]byte("y"), nil, header, 0}, {[]byte("last"), []byte("line"), header, 0},
	} {
		got, err := next()
		if err != nil {
			t.Fatal(err)
		}
		got.Timestamp = time.UnixMilli(0)
		if diff := cmp.Diff(want, contentOf(got)); diff != "" {
			t.Error(diff)
		}
	}
	if _, err := next(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
