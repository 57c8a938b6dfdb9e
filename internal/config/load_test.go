package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/google/go-cmp/cmp"
)

// load reads a property file given as text; overrides follow.
func load(t *testing.T, file string, overrides ...string) *Broker {
	t.Helper()
	b, _, err := Load(LoadOptions{Reader: strings.NewReader(file), Overrides: overrides})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestNoConfiguration(t *testing.T) {
	b := Default()
	if got := b.Listeners(); !cmp.Equal(got, []Listener{{"PLAINTEXT", "127.0.0.1", 9092, Plaintext}}) {
		t.Errorf("listeners %v", got)
	}
	if b.BrokerID() != 1 || !cmp.Equal(b.LogDirs(), []string{"./data"}) || b.MetadataLogDir() != "./data" || b.ClusterID() != "" {
		t.Error(b.BrokerID(), b.LogDirs(), b.MetadataLogDir(), b.ClusterID())
	}
	if b.String("http.listener") != "127.0.0.1:9644" || b.String("logging.format") != "text" || len(b.Unsupported()) != 0 {
		t.Error("own defaults are wrong", b.Unsupported())
	}
	if b.Double("log.cleaner.io.buffer.load.factor") != 0.9 || OriginEnvironment.String() != "environment" {
		t.Error("a double or a word is wrong")
	}
	topic, err := b.Topic(nil)
	week := 7 * 24 * time.Hour
	want := Topic{
		SegmentBytes: 1 << 30, SegmentAge: week, IndexBytes: 10 << 20, IndexIntervalBytes: 4096, RetentionAge: week, RetentionBytes: -1,
		Delete: true, DeleteRetention: 24 * time.Hour, MaxCompactionLag: 1<<63 - 1, FileDeleteDelay: time.Minute, MinCleanableRatio: 0.5,
		MaxMessageBytes: 1<<20 + 12, MaxDecompressedBytes: 2147483639, Compression: "producer", GzipLevel: -1, Lz4Level: 9, ZstdLevel: 3,
		TimestampBeforeMax: 1<<63 - 1, TimestampAfterMax: time.Hour, FlushMessages: 1<<63 - 1, FlushInterval: 1<<63 - 1, MinInsyncReplicas: 1,
	}
	if err != nil || topic != want {
		t.Errorf("topic: %v\n%s", err, cmp.Diff(want, topic))
	}
}

// TestDefaultsOfAnImage gives what a container image does: a file, or whatever says something about a property,
// beats it.
func TestDefaultsOfAnImage(t *testing.T) {
	defaults := []string{"listeners=PLAINTEXT://:9092", "advertised.listeners=PLAINTEXT://localhost:9092", "log.dirs=/data"}
	for _, c := range []struct {
		environ                       []string
		file                          string
		listeners, advertised, logDir string
	}{
		{nil, "", ":9092", "localhost:9092", "/data"},
		{[]string{"KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://kafka:9093"}, "", ":9093", "kafka:9093", "/data"},
		{[]string{"KAFKA_LISTENERS=PLAINTEXT://:9094"}, "", ":9094", "here:9094", "/data"},
		{[]string{"KAFKA_LOG_DIRS=/mine"}, "", ":9092", "localhost:9092", "/mine"},
		{nil, "num.partitions=3", ":9092", "here:9092", "/tmp/kafka-logs"},
	} {
		o := LoadOptions{Environ: c.environ, Defaults: defaults}
		if c.file != "" {
			o.Reader = strings.NewReader(c.file)
		}
		b, warnings, err := Load(o)
		if err != nil || len(warnings) > 0 {
			t.Fatal(err, warnings)
		}
		got := [3]string{b.Listeners()[0].Address(), b.Advertised("here")[0].Address(), b.LogDirs()[0]}
		if want := [3]string{c.listeners, c.advertised, c.logDir}; got != want {
			t.Errorf("with %v and file %q: %v, want %v", c.environ, c.file, got, want)
		}
	}
	for _, wrong := range []string{"num.partitions=many", "num.partition=3", "num.partitions"} {
		if _, _, err := Load(LoadOptions{Defaults: []string{wrong}}); err == nil {
			t.Errorf("default %q is taken", wrong)
		}
	}
}

func TestServerPropertiesOfKafka44(t *testing.T) {
	b, warnings, err := Load(LoadOptions{File: "testdata/kafka-4.4/server.properties"})
	if err != nil || len(warnings) > 0 || len(b.Unsupported()) > 0 {
		t.Fatal(err, warnings, b.Unsupported())
	}
	if got := b.Listeners(); !cmp.Equal(got, []Listener{{"PLAINTEXT", "", 9092, Plaintext}}) {
		t.Errorf("listeners %v: the controller's must be left out", got)
	}
	if got := b.Advertised("h"); !cmp.Equal(got, []Listener{{"PLAINTEXT", "localhost", 9092, Plaintext}}) {
		t.Errorf("advertised %v", got)
	}
	if b.InterBrokerListener() != "PLAINTEXT" || b.LogDirs()[0] != "/tmp/kraft-combined-logs" || b.Duration("log.retention.ms") != 168*time.Hour || b.Long("group.initial.rebalance.delay.ms") != 0 {
		t.Error("values are not those of the file")
	}
	if b.Origin("node.id") != OriginFile || b.Origin("broker.id") != OriginFile || b.Origin("log.segment.bytes") != OriginDefault {
		t.Error("origins are wrong")
	}
}

func TestServerPropertiesOfKafka39NameZooKeeper(t *testing.T) {
	b, warnings, err := Load(LoadOptions{File: "testdata/kafka-3.9/server.properties"})
	if err != nil || len(warnings) > 0 || len(b.Unsupported()) > 0 {
		t.Fatal(err, warnings, b.Unsupported())
	}
	if b.String("zookeeper.connect") != "localhost:2181" || b.BrokerID() != 0 {
		t.Errorf("broker %d on %s", b.BrokerID(), b.String("zookeeper.connect"))
	}
}

func TestWhatCannotBeObeyedOnZooKeeper(t *testing.T) {
	for override, want := range map[string]string{
		"process.roles=broker":                     "either on ZooKeeper or not",
		"zookeeper.metadata.migration.enable=true": "not supported",
		"zookeeper.ssl.crl.enable=true":            "not supported",
		"zookeeper.ssl.ocsp.enable=true":           "not supported",
		"inter.broker.protocol.version=3.8-IV0":    "set it to 3.9 on all brokers of Apache Kafka first",
		"inter.broker.protocol.version=0.10.2":     "set it to 3.9 on all brokers of Apache Kafka first",
		"inter.broker.protocol.version=3.90":       "set it to 3.9 on all brokers of Apache Kafka first",
	} {
		b, _, err := Load(LoadOptions{Overrides: []string{"zookeeper.connect=localhost:2181", override}})
		if err != nil {
			t.Fatal(err)
		}
		if faults := b.Unsupported(); len(faults) != 1 || !strings.Contains(faults[0].Error(), want) {
			t.Errorf("%s: %v", override, faults)
		}
	}
}

// The version that is spoken is taken in each of its forms, and one that says nothing about other brokers in any.
func TestInterBrokerProtocol(t *testing.T) {
	for _, overrides := range [][]string{
		{"zookeeper.connect=localhost:2181", "inter.broker.protocol.version=3.9"},
		{"zookeeper.connect=localhost:2181", "inter.broker.protocol.version=3.9-IV0"},
		{"inter.broker.protocol.version=2.8"},
	} {
		b, _, err := Load(LoadOptions{Overrides: overrides})
		if err != nil || len(b.Unsupported()) > 0 {
			t.Errorf("%v: %v %v", overrides, err, b.Unsupported())
		}
	}
}

func TestPrecedence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.properties")
	if err := os.WriteFile(file, []byte("num.partitions=2\nnum.io.threads=2\nlog.dirs=/file\nbackground.threads=2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, _, err := Load(LoadOptions{
		File:      file,
		Environ:   []string{"KAFKA_NUM_PARTITIONS=3", "KAFKA_NUM_IO_THREADS=3", "HOME=/", "NUM_PARTITIONS=9"},
		Overrides: []string{"num.partitions=4", "num.partitions=5", "log.dir=/flag"},
	})
	if err != nil {
		t.Fatal(err)
	}
	type value struct {
		n      int32
		origin Origin
	}
	for name, want := range map[string]value{
		"num.partitions": {5, OriginFlag}, "num.io.threads": {3, OriginEnvironment}, "background.threads": {2, OriginFile}, "num.network.threads": {3, OriginDefault},
	} {
		if got := (value{b.Int(name), b.Origin(name)}); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if !cmp.Equal(b.LogDirs(), []string{"/flag"}) {
		t.Errorf("log.dir of the command line must beat log.dirs of the file: %v", b.LogDirs())
	}
}

func TestEnvironment(t *testing.T) {
	b, warnings, err := Load(LoadOptions{Environ: []string{
		"KAFKA_LISTENER_NAME_INTERNAL_MAX_CONNECTIONS=7", "KAFKA_CFG_NUM_PARTITIONS=3", "KAFKA_CFG_NUM_IO_THREADS=3", "KAFKA_NUM_IO_THREADS=4",
		"KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://example.org:19092", "CLUSTER_ID=4L6g3nShT-eMCtK--X86sw", "KAFKA_LOG4J_ROOT_LOGLEVEL=WARN",
		"KAFKA_HEAP_OPTS=-Xmx1G", "KAFKA_JMX_PORT=9999", "KAFKA_LOG4J_LOGGERS=a=b", "KAFKA_SERVICE_HOST=10.0.0.1", "KAFKA_PORT=tcp://10.0.0.1:9092",
		"KAFKA_PORT_9092_TCP_ADDR=10.0.0.1", "KAFKA_SERVICE_PORT_CLIENT=9092", "KAFKA_ZOOKEEPER_CLIENTCNXNSOCKET=x", "KAFKA_NUM_PARTITION=1",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].Message, "KAFKA_NUM_PARTITION: no property is named num.partition; did you mean num.partitions?") {
		t.Errorf("warnings %v", warnings)
	}
	if b.ListenerLong("INTERNAL", "max.connections") != 7 || b.ListenerLong("OTHER", "max.connections") != 1<<31-1 {
		t.Error("a listener's own limit does not count")
	}
	if b.Int("num.partitions") != 3 || b.Int("num.io.threads") != 4 || b.ClusterID() != "4L6g3nShT-eMCtK--X86sw" || b.String("logging.level") != "WARN" || b.String("zookeeper.clientCnxnSocket") != "x" {
		t.Error("variables are not mapped")
	}
	if got := b.Listeners(); !cmp.Equal(got, []Listener{{"PLAINTEXT", "", 19092, Plaintext}}) {
		t.Errorf("listeners follow the advertised ones where only those are set: %v", got)
	}
	if got := propertyOf("A__B___C_D"); got != "a_b-c.d" {
		t.Errorf("propertyOf gave %s", got)
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	_, warnings, err := Load(LoadOptions{
		Reader:    strings.NewReader("num.io.threads=abc\nlog.segment.bytes=5\nnum.partitons=3\nreplica.fetch.wait.max.ms=60000\nmy.plugin=1\nnode.id=1\nbroker.id=2\n"),
		Environ:   []string{"KAFKA_LOG_DIRS=/a,/a"},
		Overrides: []string{"novalue", "log.roll.ms=0"},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"Invalid value abc for configuration num.io.threads: Not a number of type INT (property file)",
		"Invalid value 5 for configuration log.segment.bytes: Value must be at least 1048576",
		"Configuration 'log.dirs' values must not be duplicated. (KAFKA_LOG_DIRS)",
		"replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms",
		"log.roll.ms must be greater than or equal to 1",
		"--override novalue: the form is key=value",
		"`node.id` and `broker.id` must be set to the same value",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
	if len(warnings) != 2 || !strings.Contains(warnings[1].Message, "did you mean num.partitions?") || strings.Contains(warnings[0].Message, "did you mean") {
		t.Errorf("warnings %v", warnings)
	}
	if !errors.Is(err, protocol.InvalidConfig) {
		t.Error("the code is lost")
	}
}

func TestMissingFile(t *testing.T) {
	if _, _, err := Load(LoadOptions{File: filepath.Join(t.TempDir(), "none")}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, _, err := Load(LoadOptions{Reader: strings.NewReader(`a=\u12`)}); err == nil {
		t.Error("a broken escape must be an error")
	}
}

func TestNodeAndBrokerID(t *testing.T) {
	for _, c := range []struct {
		file      string
		overrides []string
		want      protocol.BrokerID
	}{
		{"node.id=3", nil, 3}, {"broker.id=4", nil, 4}, {"", nil, 1},
		{"broker.id=4", []string{"node.id=5"}, 5}, {"node.id=4", []string{"broker.id=6"}, 6}, {"node.id=7\nbroker.id=7", nil, 7},
	} {
		b := load(t, c.file, c.overrides...)
		if b.BrokerID() != c.want {
			t.Errorf("%q %v: id %d, want %d", c.file, c.overrides, b.BrokerID(), c.want)
		}
		if c.file != "" && b.Int("broker.id") != int32(c.want) {
			t.Errorf("%q: broker.id %d", c.file, b.Int("broker.id"))
		}
	}
	if _, _, err := Load(LoadOptions{Overrides: []string{"broker.id=-1"}}); err == nil {
		t.Error("a negative id must be refused")
	}
}

func TestProperties(t *testing.T) {
	got, err := parseProperties([]byte("# c\n! c\n a = b \nc:d\ne f\nlong=one,\\\n   two\nu=\\u00e9\\t\\\\\ntwice=1\ntwice=2\nexpand=${a}\nempty=\nkey\\ with\\:x=y\n"))
	want := map[string]string{"a": "b ", "c": "d", "e": "f", "long": "one,two", "u": "é\t\\", "twice": "2", "expand": "${a}", "empty": "", "key with:x": "y"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	utf8, _ := parseProperties([]byte("a=ü"))
	latin, _ := parseProperties([]byte("a=\xfc"))
	if utf8["a"] != "ü" || latin["a"] != "ü" {
		t.Error(utf8, latin)
	}
}

func TestUnsupportedIsNamed(t *testing.T) {
	for setting, want := range map[string]string{
		"listeners=SSL://:9093\nsecurity.inter.broker.protocol=SSL":               "security protocol SSL is not supported yet",
		"authorizer.class.name=org.example.A":                                     "org.example.A",
		"remote.log.storage.system.enable=true":                                   "tiered storage",
		"process.roles=controller":                                                "process.roles=controller",
		"process.roles=broker,controller\ncontroller.quorum.voters=1@a:1,2@b:1":   "several nodes",
		"process.roles=broker\ncontroller.quorum.bootstrap.servers=a:1":           "joining the controllers",
		"config.providers=file":                                                   "config.providers",
		"process.roles=broker,controller\ncontroller.quorum.voters=1@localhost:1": "",
	} {
		faults := errors.Join(load(t, setting).Unsupported()...)
		if want == "" {
			if faults != nil {
				t.Errorf("%q: %v", setting, faults)
			}
		} else if faults == nil || !strings.Contains(faults.Error(), want) {
			t.Errorf("%q: %v, want a sentence about %q", setting, faults, want)
		}
	}
}

func FuzzProperties(f *testing.F) {
	for _, file := range []string{"testdata/kafka-4.4/server.properties", "testdata/kafka-3.9/server.properties"} {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, seed := range []string{"", "a", "=", "a\\", "a=\\u00", "\xff\xfe", "a=${b}\nb=${a}", "listeners=\\\n\n,", "listeners=A://[:1,://:", "node.id=\r\n", "a=b\\\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, _, err := Load(LoadOptions{Reader: strings.NewReader(string(data))})
		if err != nil {
			return
		}
		// What loaded must be usable without a panic.
		b.Listeners()
		b.Advertised("host")
		b.Unsupported()
		b.Values()
		b.DescribeBroker(nil)
		if _, err := b.Topic(nil); err != nil {
			t.Errorf("a topic of a valid broker: %v", err)
		}
	})
}
