package kafka

import (
	"bufio"
	"bytes"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// formatted is a record as the formatter with these properties prints it.
func formatted(t *testing.T, r *kgo.Record, props map[string]string) (string, error) {
	t.Helper()
	f, err := newDefaultFormatter(props)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	err = f.write(w, r)
	w.Flush()
	return out.String(), err
}

func TestDefaultFormatter(t *testing.T) {
	record := &kgo.Record{
		Topic: "t", Partition: 3, Offset: 42, Timestamp: time.UnixMilli(1700000000000), Key: []byte("k"),
		Headers: []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b"}},
	}
	for _, test := range []struct {
		props map[string]string
		want  string
	}{
		{nil, "null\n"},
		{map[string]string{"print.key": "true"}, "k\tnull\n"},
		{map[string]string{"print.value": "false", "print.key": "true"}, "k\n"},
		{map[string]string{"print.value": "false"}, ""},
		{map[string]string{"print.timestamp": "true", "print.partition": "true", "print.offset": "true", "print.headers": "true", "print.epoch": "true", "print.delivery": "true"},
			"CreateTime:1700000000000\tPartition:3\tOffset:42\tDelivery:NOT_PRESENT\tEpoch:NOT_PRESENT\ta:1,b:null\tnull\n"},
		{map[string]string{"print.key": "true", "key.separator": "=", "null.literal": "", "line.separator": ";", "print.headers": "TRUE", "headers.separator": "+"}, "a:1+b:=k=;"},
	} {
		if got, err := formatted(t, record, test.props); err != nil || got != test.want {
			t.Errorf("%v gives %q, %v, expected %q", test.props, got, err, test.want)
		}
	}
	if got, _ := formatted(t, &kgo.Record{Value: []byte("v")}, map[string]string{"print.headers": "true"}); got != "NO_HEADERS\tv\n" {
		t.Errorf("%q", got)
	}
}

func TestDeserializers(t *testing.T) {
	const names = "org.apache.kafka.common.serialization."
	for _, test := range []struct {
		class string
		bytes []byte
		want  string
	}{
		{"StringDeserializer", []byte("text"), "text"},
		{"ShortDeserializer", []byte{0xff, 0xfe}, "-2"},
		{"IntegerDeserializer", []byte{0, 0, 1, 0}, "256"},
		{"LongDeserializer", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "-1"},
		{"FloatDeserializer", []byte{0x3f, 0x80, 0, 0}, "1.0"},
		{"DoubleDeserializer", []byte{0x40, 0x59, 0, 0, 0, 0, 0, 0}, "100.0"},
		{"BooleanDeserializer", []byte{1}, "true"},
		{"UUIDDeserializer", []byte("A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
	} {
		got, err := formatted(t, &kgo.Record{Value: test.bytes}, map[string]string{"value.deserializer": names + test.class})
		if err != nil || got != test.want+"\n" {
			t.Errorf("%s gives %q, %v", test.class, got, err)
		}
	}
	if _, err := formatted(t, &kgo.Record{Value: []byte("x")}, map[string]string{"value.deserializer": names + "LongDeserializer"}); err == nil {
		t.Error("a byte is a long")
	}
	if _, err := newDefaultFormatter(map[string]string{"key.deserializer": "com.example.Mine"}); err == nil {
		t.Error("somebody's class is taken")
	}
}

func TestJavaFloat(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0.0", 1: "1.0", -1.5: "-1.5", 100: "100.0", 1e7: "1.0E7", 12345678: "1.2345678E7", 0.001: "0.001", 0.0001: "1.0E-4", 1e-10: "1.0E-10",
	} {
		if got := javaFloat(x, 64); got != want {
			t.Errorf("%v is %s, expected %s", x, got, want)
		}
	}
}
