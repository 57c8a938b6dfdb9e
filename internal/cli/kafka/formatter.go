package kafka

import (
	"bufio"
	"maps"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// formatter prints a record.
type formatter interface {
	write(w *bufio.Writer, r *kgo.Record) error
}

// newFormatter makes the formatter that --formatter names. Properties of a file are weakest, then the flags for
// deserializers, then --formatter-property.
//
//	DefaultMessageFormatter        the fields that print.key, print.value and so on ask for, a record a line
//	LoggingMessageFormatter        the same: Kafka's writes to its log
//	NoOpMessageFormatter           nothing, for measuring
//	OffsetsMessageFormatter        committed offsets in __consumer_offsets, as JSON
//	GroupMetadataMessageFormatter  classic groups in it, as JSON
//
// Formatters of one's own are Java classes, and refused. A class is found by its last name, since its package has
// moved between versions.
func newFormatter(t *call) (formatter, error) {
	props := map[string]string{}
	if t.has("formatter-config") {
		loaded, err := loadProperties(t.value("formatter-config"))
		if err != nil {
			return nil, err
		}
		props = loaded
	}
	for _, name := range []string{"key", "value"} {
		if class := t.value(name + "-deserializer"); class != "" {
			props[name+".deserializer"] = class
		}
	}
	maps.Copy(props, keyValues(t.all("formatter-property")))
	class := t.value("formatter")
	switch simpleName(class) {
	case "DefaultMessageFormatter":
		return newDefaultFormatter(props)
	case "LoggingMessageFormatter":
		plain, err := newDefaultFormatter(props)
		return plain, err
	case "NoOpMessageFormatter":
		return silentFormatter{}, nil
	case "OffsetsMessageFormatter":
		return coordinatorFormatter{offsets: true}, nil
	case "GroupMetadataMessageFormatter":
		return coordinatorFormatter{}, nil
	}
	return nil, usagef("%s", class)
}

// simpleName is a Java class without its package and outer class.
func simpleName(class string) string {
	return class[strings.LastIndexAny(class, ".$")+1:]
}

// silentFormatter prints nothing.
type silentFormatter struct{}

func (silentFormatter) write(*bufio.Writer, *kgo.Record) error { return nil }

// defaultFormatter prints the fields that were asked for, with separators between them.
//
// A line, with everything asked for and the default separators (tabs):
//
//	CreateTime:1700000000000	Partition:0	Offset:7	header:value	key	value
//
// A null field is printed as null.literal; where there are no headers, NO_HEADERS stands in their place.
type defaultFormatter struct {
	// columns are what is printed before the value, in order.
	columns                                                    []column
	keySeparator, lineSeparator, headersSeparator, nullLiteral string
	key, value, header                                         deserializer
}

// column prints one field.
type column func(f *defaultFormatter, w *bufio.Writer, r *kgo.Record) error

func newDefaultFormatter(props map[string]string) (*defaultFormatter, error) {
	f := &defaultFormatter{
		keySeparator:     orDefault(props, "key.separator", "\t"),
		lineSeparator:    orDefault(props, "line.separator", "\n"),
		headersSeparator: orDefault(props, "headers.separator", ","),
		nullLiteral:      orDefault(props, "null.literal", "null"),
	}
	for _, one := range []struct {
		property string
		column   column
	}{
		{"print.timestamp", printTimestamp}, {"print.partition", printPartitionNumber}, {"print.offset", printOffset},
		{"print.delivery", printDelivery}, {"print.epoch", printEpoch}, {"print.headers", printHeaders}, {"print.key", printKey},
	} {
		if isTrue(props[one.property]) {
			f.columns = append(f.columns, one.column)
		}
	}
	if isTrue(orDefault(props, "print.value", "true")) {
		f.columns = append(f.columns, printValue)
	}
	var err error
	if f.key, err = deserializerOf(props["key.deserializer"]); err != nil {
		return nil, err
	}
	if f.value, err = deserializerOf(props["value.deserializer"]); err != nil {
		return nil, err
	}
	f.header, err = deserializerOf(props["headers.deserializer"])
	return f, err
}

func (f *defaultFormatter) write(w *bufio.Writer, r *kgo.Record) error {
	for i, print := range f.columns {
		if err := print(f, w, r); err != nil {
			return err
		}
		separator := f.keySeparator
		if i == len(f.columns)-1 {
			separator = f.lineSeparator
		}
		if _, err := w.WriteString(separator); err != nil {
			return err
		}
	}
	return nil
}

func printTimestamp(_ *defaultFormatter, w *bufio.Writer, r *kgo.Record) error {
	kind := "CreateTime:"
	switch r.Attrs.TimestampType() {
	case -1:
		_, err := w.WriteString("NO_TIMESTAMP")
		return err
	case 1:
		kind = "LogAppendTime:"
	}
	_, err := w.WriteString(kind + strconv.FormatInt(r.Timestamp.UnixMilli(), 10))
	return err
}

func printPartitionNumber(_ *defaultFormatter, w *bufio.Writer, r *kgo.Record) error {
	_, err := w.WriteString("Partition:" + strconv.Itoa(int(r.Partition)))
	return err
}

func printOffset(_ *defaultFormatter, w *bufio.Writer, r *kgo.Record) error {
	_, err := w.WriteString("Offset:" + strconv.FormatInt(r.Offset, 10))
	return err
}

// The tool hands its formatters records without these two.
func printDelivery(_ *defaultFormatter, w *bufio.Writer, _ *kgo.Record) error {
	_, err := w.WriteString("Delivery:NOT_PRESENT")
	return err
}

func printEpoch(_ *defaultFormatter, w *bufio.Writer, _ *kgo.Record) error {
	_, err := w.WriteString("Epoch:NOT_PRESENT")
	return err
}

func printHeaders(f *defaultFormatter, w *bufio.Writer, r *kgo.Record) error {
	if len(r.Headers) == 0 {
		_, err := w.WriteString("NO_HEADERS")
		return err
	}
	for i, h := range r.Headers {
		if i > 0 {
			w.WriteString(f.headersSeparator)
		}
		w.WriteString(h.Key + ":")
		if err := f.field(w, f.header, h.Value); err != nil {
			return err
		}
	}
	return nil
}

func printKey(f *defaultFormatter, w *bufio.Writer, r *kgo.Record) error {
	return f.field(w, f.key, r.Key)
}

func printValue(f *defaultFormatter, w *bufio.Writer, r *kgo.Record) error {
	return f.field(w, f.value, r.Value)
}

// field prints bytes; null goes through the deserializer as its literal, as in the tool.
func (f *defaultFormatter) field(w *bufio.Writer, d deserializer, b []byte) error {
	if b == nil {
		b = []byte(f.nullLiteral)
	}
	if d == nil {
		_, err := w.Write(b)
		return err
	}
	text, err := d(b)
	if err != nil {
		return err
	}
	_, err = w.WriteString(text)
	return err
}
