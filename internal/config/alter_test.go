package config

import (
	"maps"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/google/go-cmp/cmp"
)

// op reads "set:key=value", "delete:key", "append:key=value" or "subtract:key=value"; without = there is no value.
func op(text string) Op {
	kinds := map[string]OpKind{"set": OpSet, "delete": OpDelete, "append": OpAppend, "subtract": OpSubtract, "bad": 7}
	kind, rest, _ := strings.Cut(text, ":")
	name, value, ok := strings.Cut(rest, "=")
	o := Op{Name: name, Kind: kinds[kind]}
	if ok {
		o.Value = &value
	}
	return o
}

func ops(texts ...string) []Op {
	var all []Op
	for _, text := range texts {
		all = append(all, op(text))
	}
	return all
}

// What comes out, and the sentences, are those of Kafka 4.4.0, but for the unknown operation on a topic, which
// is an UNKNOWN_SERVER_ERROR there.
func TestApplyOps(t *testing.T) {
	none := map[string]string{}
	policy := func(v string) map[string]string { return map[string]string{"cleanup.policy": v} }
	for _, c := range []struct {
		scope   Scope
		current map[string]string
		ops     []Op
		want    map[string]string
		code    protocol.Code
		message string
	}{
		{ScopeTopic, nil, ops("append:cleanup.policy=compact"), policy("delete,compact"), 0, ""},
		{ScopeTopic, policy("delete,compact"), ops("append:cleanup.policy=compact"), policy("delete,compact"), 0, ""},
		{ScopeTopic, policy("compact"), ops("append:cleanup.policy=delete,"), policy("compact,delete"), 0, ""},
		{ScopeTopic, policy("compact"), ops("append:cleanup.policy="), policy("compact"), 0, ""},
		{ScopeTopic, nil, ops("subtract:cleanup.policy=delete"), policy(""), 0, ""},
		{ScopeTopic, policy("delete,compact"), ops("subtract:cleanup.policy=delete"), policy("compact"), 0, ""},
		{ScopeTopic, policy("delete"), ops("subtract:cleanup.policy=zzz"), policy("delete"), 0, ""},
		{ScopeTopic, policy("delete,compact"), ops("subtract:cleanup.policy= delete"), policy("delete,compact"), 0, ""},
		{ScopeTopic, policy(""), ops("append:cleanup.policy=delete"), policy("delete"), 0, ""},
		{ScopeTopic, policy("delete"), ops("delete:cleanup.policy=ignored", "delete:nosuch", "set:retention.ms=5"), map[string]string{"retention.ms": "5"}, 0, ""},
		{ScopeTopic, nil, ops("append:retention.ms=5"), nil, protocol.InvalidConfig, "Can't APPEND to key retention.ms because its type is not LIST."},
		{ScopeTopic, nil, ops("subtract:retention.ms=5"), nil, protocol.InvalidConfig, "Can't SUBTRACT to key retention.ms because its type is not LIST."},
		{ScopeTopic, nil, ops("append:nosuch=1"), nil, protocol.InvalidConfig, "Can't APPEND to key nosuch because its type is not LIST."},
		{ScopeTopic, nil, ops("set:retention.ms=5", "set:retention.ms=6"), nil, protocol.InvalidRequest, "Error due to duplicate config keys"},
		{ScopeTopic, nil, ops("set:a", "append:b", "delete:c"), nil, protocol.InvalidRequest, "Null value not supported for : a, b"},
		{ScopeTopic, nil, ops("bad:retention.ms=5"), nil, protocol.InvalidRequest, "Unknown operations type 7"},
		{ScopeBroker, nil, ops("append:num.io.threads=5"), nil, protocol.InvalidConfig, "Config value append is not allowed for config key: num.io.threads"},
		{ScopeBroker, nil, ops("append:log.cleanup.policy=compact"), map[string]string{"log.cleanup.policy": "delete,compact"}, 0, ""},
		{ScopeGroup, nil, ops("append:share.auto.offset.reset=x"), nil, protocol.InvalidConfig, "Can't APPEND to key share.auto.offset.reset because its type is not LIST."},
		{ScopeGroup, none, ops("append:streams.rack.aware.assignment.tags=a"), map[string]string{"streams.rack.aware.assignment.tags": "a"}, 0, ""},
	} {
		before := maps.Clone(c.current)
		got, err := ApplyOps(c.scope, c.current, c.ops)
		if messageOf(err) != c.message || protocol.CodeOf(err) != c.code || !cmp.Equal(got, c.want) {
			t.Errorf("%v on %v:\n got %v, %v\nwant %v, %s", c.ops, before, got, err, c.want, c.message)
		}
		if !maps.Equal(before, c.current) {
			t.Errorf("%v changed its input", c.ops)
		}
	}
}

// Sentences and codes are those of Kafka 4.4.0; threads and values across properties have its code only.
func TestValidateDynamic(t *testing.T) {
	b := Default()
	for _, c := range []struct {
		forBroker bool
		entries   string
		want      string
	}{
		{true, "broker.id=2,log.dirs=5", "Cannot update these configs dynamically: [broker.id, log.dirs]"},
		{true, "log.retention.hours=5", "Cannot update these configs dynamically: [log.retention.hours]"},
		{false, "ssl.keystore.location=x", "These security configs can be dynamically updated only per-listener using the listener prefix: [ssl.keystore.location]"},
		{true, "listener.name.plaintext.ssl.keystore.location=/x", ""},
		{false, "listener.name.plaintext.ssl.keystore.location=/x", "Cannot update these configs at default cluster level, broker id must be specified: [listener.name.plaintext.ssl.keystore.location]"},
		{false, "listener.name.plaintext.max.connections=9", ""},
		{true, "listener.name.plaintext.max.connections=abc", "Invalid value abc for configuration max.connections: Not a number of type INT"},
		{false, "listeners=PLAINTEXT://:21092", "Cannot update these configs at default cluster level, broker id must be specified: [listeners]"},
		{true, "listeners=PLAINTEXT://:21092", "listeners can only change with a restart: set it in the broker's property file"},
		{true, "listeners=PLAINTEXT://127.0.0.1:9092", ""},
		{true, "num.io.threads=abc", "Invalid value abc for configuration num.io.threads: Not a number of type INT"},
		{true, "num.io.threads=0", "Invalid value 0 for configuration num.io.threads: Value must be at least 1"},
		{true, "num.io.threads=16", ""},
		{true, "num.io.threads=17", "Dynamic thread count update validation failed for num.io.threads=17, value should not be greater than double the current value 8"},
		{true, "num.io.threads=3", "Dynamic thread count update validation failed for num.io.threads=3, value should be at least half the current value 8"},
		{true, "log.cleaner.threads=0", "Dynamic thread count update validation failed for log.cleaner.threads=0, value should be at least 1"},
		{true, "nosuch=5", ""},
		{true, "leader.replication.throttled.rate=-1", "Invalid value -1 for configuration leader.replication.throttled.rate: Value must be at least 0"},
		{true, "log.retention.ms=-2", ""},
		{true, "log.roll.ms=0", "log.roll.ms must be greater than or equal to 1"},
		{true, "log.cleaner.dedupe.buffer.size=5", "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."},
		{false, "log.cleanup.policy=", ""},
		{true, "max.connections.per.ip.overrides=foo", "Invalid value foo for configuration max.connections.per.ip.overrides: Each entry should be in the form host:connections"},
		{true, "zookeeper.connect=a:1", "Cannot update these configs dynamically: [zookeeper.connect]"},
	} {
		entries := map[string]string{}
		for _, e := range strings.Split(c.entries, ",") {
			name, value, _ := strings.Cut(e, "=")
			entries[name] = value
		}
		err := b.ValidateDynamic(c.forBroker, entries)
		if got := messageOf(err); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.entries, got, c.want)
		}
		if err != nil && protocol.CodeOf(err) != protocol.InvalidRequest {
			t.Errorf("%s: code %v", c.entries, protocol.CodeOf(err))
		}
	}
}

func TestWithDynamic(t *testing.T) {
	b, err := load(t, "log.retention.hours=1").WithDynamic(
		map[string]string{"num.io.threads": "5", "log.retention.ms": "7", "node.id": "9"},
		map[string]string{"num.io.threads": "6", "log.cleaner.threads": "x", "max.connections": "4", "listeners": "PLAINTEXT://:1"},
	)
	if err == nil || strings.Count(err.Error(), "dynamic configuration of") != 3 {
		t.Errorf("the three entries that cannot apply must be named: %v", err)
	}
	if b.Int("num.io.threads") != 5 || b.Int("max.connections") != 4 || b.Int("log.cleaner.threads") != 1 || b.BrokerID() != 1 || b.Duration("log.retention.ms").Milliseconds() != 7 {
		t.Error("the valid ones must apply")
	}
	if b.Origin("num.io.threads") != OriginDynamicBroker || b.Origin("max.connections") != OriginDynamicDefault {
		t.Error("origins are wrong")
	}
	if fixed, err := b.WithDynamic(map[string]string{"listeners": "FOO"}, nil); err == nil || len(fixed.Listeners()) != 1 {
		t.Errorf("listeners from the store cannot apply: %v", err)
	}
	b, err = b.WithDynamic(nil, nil)
	if err != nil || b.Int("num.io.threads") != 8 || b.Duration("log.retention.ms").Hours() != 1 {
		t.Error("what the store no longer holds must go", err)
	}
}

// The sentences are those of Kafka 4.4.0.
func TestValidateGroup(t *testing.T) {
	for entry, want := range map[string]string{
		"consumer.session.timeout.ms=1":                  "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
		"consumer.session.timeout.ms=abc":                "Invalid value abc for configuration consumer.session.timeout.ms: Not a number of type INT",
		"consumer.heartbeat.interval.ms=1":               "consumer.heartbeat.interval.ms must be in the range 5000 to 15000 inclusive.",
		"consumer.assignment.interval.ms=999999":         "consumer.assignment.interval.ms must be in the range 0 to 15000 inclusive.",
		"nosuch=1":                                       "Unknown group config name: nosuch",
		"share.isolation.level=x":                        "Invalid value x for configuration share.isolation.level: String must be one of: read_committed, read_uncommitted",
		"share.delivery.count.limit=100":                 "share.delivery.count.limit must be in the range 2 to 10 inclusive.",
		"share.record.lock.duration.ms=1000":             "share.record.lock.duration.ms must be in the range 15000 to 60000 inclusive.",
		"share.partition.max.record.locks=5000":          "share.partition.max.record.locks must be in the range 100 to 4000 inclusive.",
		"streams.num.standby.replicas=50":                "streams.num.standby.replicas must be less than or equal to 2",
		"streams.assignor.name=foo":                      "streams.assignor.name 'foo' is not a registered task assignor. Registered assignors are: [sticky].",
		"errors.deadletterqueue.topic.name=__x":          "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'",
		"streams.task.offset.interval.ms=1":              "streams.task.offset.interval.ms must be greater than or equal to 15000",
		"consumer.session.timeout.ms=50000":              "",
		"share.auto.offset.reset=by_duration:PT1H":       "",
		"errors.deadletterqueue.copy.record.enable=true": "",
	} {
		name, value, _ := strings.Cut(entry, "=")
		err := Default().ValidateGroup(map[string]string{name: value})
		if got := messageOf(err); got != want || err != nil && protocol.CodeOf(err) != protocol.InvalidConfig {
			t.Errorf("%s:\n got %q\nwant %q", entry, got, want)
		}
	}
	wide := load(t, "group.consumer.max.heartbeat.interval.ms=100000")
	if err := wide.ValidateGroup(map[string]string{"consumer.heartbeat.interval.ms": "45000"}); messageOf(err) != "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms" {
		t.Error(err)
	}
}

func TestDescribeNamedOnly(t *testing.T) {
	b := Default()
	count := func(names ...string) int { return len(b.DescribeTopic(nil, names)) }
	if count("retention.ms") != 1 || count("retention.ms", "segment.ms", "nosuch") != 2 || count("nosuch") != 0 || count() != 37 {
		t.Error(count("retention.ms"), count("retention.ms", "segment.ms", "nosuch"), count("nosuch"), count())
	}
	old := b.DescribeTopic(map[string]string{"message.format.version": "2.0", "nosuch": "x"}, nil)
	if len(old) != 39 {
		t.Errorf("%d entries: what is set must be listed, whoever knows it", len(old))
	}
	for _, e := range old {
		if e.Name == "nosuch" && (e.Value != nil || !e.Sensitive || e.Type != Unknown) {
			t.Errorf("%+v: an unknown value may be a secret", e)
		}
	}
}

func TestValuesHideSecrets(t *testing.T) {
	b := load(t, "ssl.keystore.password=secret\nplugin=x\nlistener.name.plaintext.max.connections=5")
	seen := 0
	for _, s := range b.Values() {
		switch s.Key.Name {
		case "ssl.keystore.password", "plugin":
			seen++
			if s.Value != nil || s.Origin != OriginFile {
				t.Errorf("%s shows %v from %s", s.Key.Name, s.Value, s.Origin)
			}
		case "listener.name.plaintext.max.connections":
			seen++
			if s.Value == nil || *s.Value != "5" {
				t.Error("a listener's own value is not shown")
			}
		case "http.listener":
			seen++
		}
	}
	if seen != 4 {
		t.Errorf("saw %d of the settings", seen)
	}
}

func TestAskingForAWrongTypeIsABug(t *testing.T) {
	defer func() {
		if r, ok := recover().(string); !ok || !strings.HasPrefix(r, "BUG: ") {
			t.Errorf("recovered %v", r)
		}
	}()
	Default().Int("log.dirs")
}
