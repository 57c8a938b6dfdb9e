package kafka

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"
)

// readLines reads input with reader properties.
func readLines(t *testing.T, input string, properties ...string) ([]*kgo.Record, error) {
	t.Helper()
	given := []string{"--topic", "t"}
	for _, p := range properties {
		given = append(given, "--reader-property", p)
	}
	a, err := parse(consoleProducerFlags(), given)
	if err != nil {
		t.Fatal(err)
	}
	r, err := newLineReader(&call{Process: &Process{In: strings.NewReader(input)}, arguments: a})
	if err != nil {
		return nil, err
	}
	var records []*kgo.Record
	for {
		record, err := r.next()
		if errors.Is(err, io.EOF) {
			return records, nil
		} else if err != nil {
			return records, err
		}
		records = append(records, record)
	}
}

func TestLineReader(t *testing.T) {
	for _, test := range []struct {
		name, input string
		properties  []string
		want        []kgo.Record
	}{
		{"values", "a\tb\n\nlast", nil, []kgo.Record{{Value: []byte("a\tb")}, {Value: []byte("")}, {Value: []byte("last")}}},
		{"keys", "k\tv\tw", []string{"parse.key=true"}, []kgo.Record{{Key: []byte("k"), Value: []byte("v\tw")}}},
		{"a separator", "k: v", []string{"parse.key=TRUE", "key.separator=: "}, []kgo.Record{{Key: []byte("k"), Value: []byte("v")}}},
		{"headers", "a:1,b:\tv", []string{"parse.headers=true"}, []kgo.Record{{Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b", Value: []byte("")}}}}},
		{"all of it", "a=1;b=NIL|NIL->NIL", []string{"parse.headers=true", "parse.key=true", "headers.delimiter=|", "headers.separator=;", "headers.key.separator==", "key.separator=->", "null.marker=NIL"},
			[]kgo.Record{{Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b"}}}}},
		{"no headers", "NIL\tv", []string{"parse.headers=true", "null.marker=NIL"}, []kgo.Record{{Value: []byte("v")}}},
		{"errors ignored", "v", []string{"parse.key=true", "parse.headers=true", "ignore.error=true"}, []kgo.Record{{Value: []byte("v")}}},
		{"a header without value", "h\tv", []string{"parse.headers=true", "ignore.error=true"}, []kgo.Record{{Value: []byte("v"), Headers: []kgo.RecordHeader{{Key: "h"}}}}},
	} {
		got, err := readLines(t, test.input, test.properties...)
		if err != nil || len(got) != len(test.want) {
			t.Errorf("%s: %d records, %v", test.name, len(got), err)
			continue
		}
		for i, r := range got {
			if diff := cmp.Diff([]any{test.want[i].Key, test.want[i].Value, test.want[i].Headers}, []any{r.Key, r.Value, r.Headers}); diff != "" {
				t.Errorf("%s: %s", test.name, diff)
			}
		}
	}
}

func TestLineReaderErrors(t *testing.T) {
	for _, test := range []struct {
		input      string
		properties []string
		want       string
	}{
		{"a\tb\nv", []string{"parse.key=true"}, "No key separator found on line number 2: 'v'"},
		{"v", []string{"parse.headers=true"}, "No headers delimiter found on line number 1: 'v'"},
		{"h\tv", []string{"parse.headers=true"}, "No header key separator found in pair 'h' on line number 1"},
		{"N:1\tv", []string{"parse.headers=true", "null.marker=N"}, "Header keys should not be equal to the null marker 'N' as they can't be null"},
		{"", []string{"headers.delimiter=,"}, "headers.delimiter and headers.separator may not be equal"},
		{"", []string{"headers.separator=:"}, "headers.separator and headers.key.separator may not be equal"},
		{"", []string{"null.marker=\t"}, "null.marker and key.separator may not be equal"},
	} {
		if _, err := readLines(t, test.input, test.properties...); err == nil || err.Error() != test.want {
			t.Errorf("%q %v gives %v, expected %s", test.input, test.properties, err, test.want)
		}
	}
}
