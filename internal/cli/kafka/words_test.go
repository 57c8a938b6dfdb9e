package kafka

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

func TestISODurations(t *testing.T) {
	for given, want := range map[string]time.Duration{
		"P1D": 24 * time.Hour, "PT5M": 5 * time.Minute, "P1DT2H3M4.5S": 26*time.Hour + 3*time.Minute + 4500*time.Millisecond,
		"pt0s": 0, "-PT1H": -time.Hour, "PT-1H": -time.Hour,
	} {
		if got, err := parseISODuration(given); err != nil || got != want {
			t.Errorf("%s is %v, %v, expected %v", given, got, err, want)
		}
	}
	for _, given := range []string{"", "P", "PT", "1D", "P1", "P1M", "PT1D", "PT1S2H", "PTxH"} {
		if got, err := parseISODuration(given); err == nil {
			t.Errorf("%q is %v", given, got)
		}
	}
}

func TestDateTimes(t *testing.T) {
	want := time.Date(2026, 1, 31, 12, 0, 0, int(500*time.Millisecond), time.UTC)
	for _, given := range []string{"2026-01-31T12:00:00.500", "2026-01-31T12:00:00.500Z", "2026-01-31T13:00:00.500+01:00", "2026-01-31T13:00:00.500+0100"} {
		if got, err := parseDateTime(given); err != nil || !got.Equal(want) {
			t.Errorf("%s is %v, %v", given, got, err)
		}
	}
	for _, given := range []string{"2026-01-31 12:00:00", "T", "2026-01-31Tnoon"} {
		if got, err := parseDateTime(given); err == nil {
			t.Errorf("%s is %v", given, got)
		}
	}
}

func TestJavaDates(t *testing.T) {
	at := time.Date(2026, 3, 4, 15, 6, 7, int(8*time.Millisecond), time.UTC)
	for pattern, want := range map[string]string{
		"yyyy-MM-dd HH:mm:ss:SSS": "2026-03-04 15:06:07:008", "yy/M/d h:m a": "26/3/4 3:6 PM", "EEE, d MMM": "Wed, 4 Mar",
		"'at' HH''mm": "at 15'06", "yyyy.MM.dd'T'HH": "2026.03.04T15", "Z z": "+0000 UTC", "'open": "open",
	} {
		if got := javaDate(at, pattern); got != want {
			t.Errorf("%q is %q, expected %q", pattern, got, want)
		}
	}
}

func TestSplitOutside(t *testing.T) {
	for given, want := range map[string][]string{
		"a=1,b=2": {"a=1", "b=2"}, "a=[1,2],b=": {"a=[1,2]", "b="}, "": {""}, "a=[x=[1,2],3],b": {"a=[x=[1,2],3]", "b"},
	} {
		if got := splitOutside(given, ','); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %q, expected %q", given, got, want)
		}
	}
}

func TestTopicPatterns(t *testing.T) {
	for _, test := range []struct {
		pattern string
		matches string
		not     string
	}{
		{"", "anything", ""}, {"orders", "orders", "orders2"}, {"a,b", "b", "ab"}, {"my.topic", "my-topic", "mytopic"},
		{"order.*", "orders", "reorders"}, {`"quoted"`, "quoted", `"quoted"`}, {" a | b ", "a", " a"},
	} {
		matches, err := topicPattern(test.pattern)
		if err != nil || !matches(test.matches) || test.not != "" && matches(test.not) {
			t.Errorf("%q: %v, matches %q: %v, %q: %v", test.pattern, err, test.matches, matches(test.matches), test.not, matches(test.not))
		}
	}
	if _, err := topicPattern("("); err == nil {
		t.Error("( is a pattern")
	}
}

func TestPartitionRules(t *testing.T) {
	for _, test := range []struct {
		rule, topic string
		numbers     []int32
		not         []int32
	}{
		{"orders:1", "orders", []int32{1}, []int32{0, 2}}, {"orders:1-3", "orders", []int32{1, 2}, []int32{0, 3}}, {"orders:2-", "orders", []int32{2, 99}, []int32{1}},
		{"orders:-2", "orders", []int32{0, 1}, []int32{2}}, {"orders", "orders", []int32{0, 7}, nil}, {":0", "any", []int32{0}, []int32{1}},
	} {
		rule, err := parsePartitionRule(test.rule)
		if err != nil {
			t.Errorf("%s: %v", test.rule, err)
			continue
		}
		for _, n := range test.numbers {
			if !rule.allows(test.topic, n) {
				t.Errorf("%s does not allow %d", test.rule, n)
			}
		}
		for _, n := range test.not {
			if rule.allows(test.topic, n) {
				t.Errorf("%s allows %d", test.rule, n)
			}
		}
	}
	for _, bad := range []string{"orders:x", "orders:1-x", "(:1"} {
		if _, err := parsePartitionRule(bad); err == nil {
			t.Errorf("%s is a rule", bad)
		}
	}
}

func TestCSVFields(t *testing.T) {
	for given, want := range map[string]string{
		"orders": "orders", "my-topic.v2": "my-topic.v2", "with,comma": `"with,comma"`, `a"b`: `"a""b"`,
		strings.Repeat("x", 24): strings.Repeat("x", 24), strings.Repeat("x", 25): `"` + strings.Repeat("x", 25) + `"`,
	} {
		if got := csvField(given); got != want {
			t.Errorf("%q is %s, expected %s", given, got, want)
		}
	}
}

func TestAssignments(t *testing.T) {
	if got, err := parseAssignment("1:2,2:3"); err != nil || !reflect.DeepEqual(got, [][]int32{{1, 2}, {2, 3}}) {
		t.Error(got, err)
	}
	for _, bad := range []string{"1:1", "1,2:3", "a", "1:"} {
		if got, err := parseAssignment(bad); err == nil {
			t.Errorf("%s is %v", bad, got)
		}
	}
	partitions := []admin.TopicPartition{{Topic: "a", Partition: 0}, {Topic: "a", Partition: 2}, {Topic: "b", Partition: 1}}
	if got := assignmentText(partitions); got != "a:0,2;b:1" {
		t.Error(got)
	}
}

func TestJavaErrors(t *testing.T) {
	for err, want := range map[error]string{
		kerr.UnknownTopicOrPartition:  "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this topic-partition.",
		kerr.TopicAuthorizationFailed: "org.apache.kafka.common.errors.TopicAuthorizationException: ",
		&admin.DetailedError{Code: kerr.NonEmptyGroup, Message: "it has members"}: "org.apache.kafka.common.errors.GroupNotEmptyException: it has members",
		sentence("plain"): "plain",
	} {
		if got := javaError(err); !strings.HasPrefix(got, want) {
			t.Errorf("%v is %s, expected %s", err, got, want)
		}
	}
}

func TestBrokerProcesses(t *testing.T) {
	processes := parsePS(`  12 /usr/bin/barnabas start server.properties
 13 barnabas topic list
 14 /opt/kafka/bin/kafka-server-start.sh server.properties
 15 vim barnabas start
 16 barnabas start
bad line
 17 barnabas
`)
	if len(processes) != 6 {
		t.Fatalf("%v", processes)
	}
	var pids []int
	for _, p := range brokersOf(processes, 16) {
		pids = append(pids, p.pid)
	}
	if !reflect.DeepEqual(pids, []int{12, 14}) {
		t.Errorf("brokers are %v", pids)
	}
	if got := nodeID([]string{"barnabas", "start", "--override", "node.id=9"}); got != "9" {
		t.Errorf("node.id is %q", got)
	}
}
