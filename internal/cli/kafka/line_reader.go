package kafka

import (
	"bufio"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// lineMax bounds a line of input.
const lineMax = 128 << 20

// lineReader reads a record a line, with key and headers where its properties say so:
//
//	headers delimiter key separator value
type lineReader struct {
	topic                                             string
	parseKey, parseHeaders, ignoreError               bool
	keySeparator, headersDelimiter                    string
	headersSeparator, headersKeySeparator, nullMarker string
	hasNullMarker                                     bool

	lines  *bufio.Scanner
	prompt io.Writer
	number int
}

// newLineReader is the reader that --reader-property and --reader-config describe.
//
//	h1:v1,h2:v2 <headers.delimiter> key <key.separator> value
//
// parse.headers and parse.key say which parts there are. A line without a separator that it must have is an
// error that ends the tool, unless ignore.error has the part left out. null.marker is the text that stands for
// null, in any part; without it nothing is null, and an empty value is an empty one.
func newLineReader(t *call) (*lineReader, error) {
	props := map[string]string{}
	if t.has("reader-config") {
		loaded, err := loadProperties(t.value("reader-config"))
		if err != nil {
			return nil, err
		}
		props = loaded
	}
	maps.Copy(props, keyValues(t.all("reader-property")))
	if class := t.value("line-reader"); class != "" && !strings.HasSuffix(class, "LineMessageReader") {
		return nil, sentencef("There is no line reader %s here: only LineMessageReader is", class)
	}
	r := &lineReader{
		topic:               t.value("topic"),
		parseKey:            isTrue(props["parse.key"]),
		parseHeaders:        isTrue(props["parse.headers"]),
		ignoreError:         isTrue(props["ignore.error"]),
		keySeparator:        orDefault(props, "key.separator", "\t"),
		headersDelimiter:    orDefault(props, "headers.delimiter", "\t"),
		headersSeparator:    orDefault(props, "headers.separator", ","),
		headersKeySeparator: orDefault(props, "headers.key.separator", ":"),
		lines:               bufio.NewScanner(t.In),
	}
	r.nullMarker, r.hasNullMarker = props["null.marker"]
	r.lines.Buffer(make([]byte, 0, 1<<16), lineMax)
	if isTerminal(t.In) && isTerminal(t.Out) {
		r.prompt = t.Out
	}
	return r, r.check()
}

func isTrue(text string) bool { return strings.EqualFold(strings.TrimSpace(text), "true") }

// orDefault is a property, or what it is where it is not set at all.
func orDefault(props map[string]string, key, otherwise string) string {
	if value, ok := props[key]; ok {
		return value
	}
	return otherwise
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// check refuses separators that cannot be told apart.
func (r *lineReader) check() error {
	type named struct{ name, value string }
	pairs := [][2]named{
		{{"headers.delimiter", r.headersDelimiter}, {"headers.separator", r.headersSeparator}},
		{{"headers.delimiter", r.headersDelimiter}, {"headers.key.separator", r.headersKeySeparator}},
		{{"headers.separator", r.headersSeparator}, {"headers.key.separator", r.headersKeySeparator}},
	}
	if r.hasNullMarker {
		marker := named{"null.marker", r.nullMarker}
		pairs = append(pairs,
			[2]named{marker, {"key.separator", r.keySeparator}},
			[2]named{marker, {"headers.separator", r.headersSeparator}},
			[2]named{marker, {"headers.delimiter", r.headersDelimiter}},
			[2]named{marker, {"headers.key.separator", r.headersKeySeparator}})
	}
	for _, pair := range pairs {
		if pair[0].value == pair[1].value {
			return sentencef("%s and %s may not be equal", pair[0].name, pair[1].name)
		}
	}
	return nil
}

// next reads a record, io.EOF behind the last.
func (r *lineReader) next() (*kgo.Record, error) {
	r.number++
	if r.prompt != nil {
		io.WriteString(r.prompt, ">")
	}
	if !r.lines.Scan() {
		if err := r.lines.Err(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	line := r.lines.Text()
	record := &kgo.Record{Topic: r.topic}
	headers, rest, hasHeaders, err := r.cut(r.parseHeaders, line, line, r.headersDelimiter, "headers delimiter")
	if err != nil {
		return nil, err
	}
	key, value, hasKey, err := r.cut(r.parseKey, line, rest, r.keySeparator, "key separator")
	if err != nil {
		return nil, err
	}
	if hasKey {
		record.Key = r.bytes(key)
	}
	record.Value = r.bytes(value)
	if hasHeaders && !(r.hasNullMarker && headers == r.nullMarker) {
		record.Headers, err = r.headers(headers)
	}
	return record, err
}

// bytes are those of a field, nil for the marker of null.
func (r *lineReader) bytes(field string) []byte {
	if r.hasNullMarker && field == r.nullMarker {
		return nil
	}
	return []byte(field)
}

// cut takes a field from the front of what is left of a line.
func (r *lineReader) cut(enabled bool, line, rest, separator, name string) (field, after string, found bool, err error) {
	if !enabled {
		return "", rest, false, nil
	}
	field, after, found = strings.Cut(rest, separator)
	if found {
		return field, after, true, nil
	}
	if r.ignoreError {
		return "", rest, false, nil
	}
	return "", "", false, sentencef("No %s found on line number %d: '%s'", name, r.number, line)
}

func (r *lineReader) headers(list string) ([]kgo.RecordHeader, error) {
	var headers []kgo.RecordHeader
	for _, pair := range strings.Split(list, r.headersSeparator) {
		key, value, ok := strings.Cut(pair, r.headersKeySeparator)
		switch {
		case !ok && r.ignoreError:
			headers = append(headers, kgo.RecordHeader{Key: pair})
			continue
		case !ok:
			return nil, sentencef("No header key separator found in pair '%s' on line number %d", pair, r.number)
		case r.hasNullMarker && key == r.nullMarker:
			return nil, sentencef("Header keys should not be equal to the null marker '%s' as they can't be null", r.nullMarker)
		}
		headers = append(headers, kgo.RecordHeader{Key: key, Value: r.bytes(value)})
	}
	return headers, nil
}
