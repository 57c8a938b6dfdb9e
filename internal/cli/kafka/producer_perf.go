package kafka

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/perf"
)

// producerPerfTool is kafka-producer-perf-test. It creates the topic where the broker allows it, prints a line
// each --reporting-interval and one at the end:
//
//	N records sent, R records/sec (M MB/sec), A ms avg latency, B ms max latency, 50th, 95th, 99th, 99.9th.
//
// Latency counts from when a record is handed to the client; the throughput of -1 is as fast as it goes.
// Records that fail are told on standard error and do not end the run.
func producerPerfTool() *tool {
	return &tool{
		name:    "kafka-producer-perf-test",
		summary: "This tool is used to verify the producer performance.",
		flags:   producerPerfFlags(),
		run:     runProducerPerf,
		helps:   true,
	}
}

func producerPerfFlags() []flag {
	return []flag{
		bootstrapFlag(),
		{names: []string{"topic"}, argument: "topic", doc: "the topic to write to"},
		{names: []string{"num-records"}, argument: "number", kind: long, doc: "how many records"},
		{names: []string{"record-size"}, argument: "bytes", kind: integer, doc: "bytes of a value"},
		{names: []string{"payload-file"}, argument: "file", doc: "a file with values"},
		{names: []string{"payload-monotonic"}, doc: "values are numbers that count up"},
		{names: []string{"payload-delimiter"}, argument: "text", fallback: `\n`, doc: "what stands between the values of the file"},
		{names: []string{"throughput"}, argument: "number", kind: decimal, doc: "records a second; -1 for as fast as they go"},
		{names: []string{"producer-props"}, argument: "key=value...", many: true, plus: true, doc: "older name of " +
			"--command-property"},
		{names: []string{"command-property"}, argument: "key=value...", many: true, plus: true, doc: "properties of the producer"},
		{names: []string{"producer.config"}, argument: "file", doc: "older name of --command-config"},
		commandConfigFlag(),
		{names: []string{"print-metrics"}, doc: "taken, without effect here"},
		{names: []string{"transactional-id"}, argument: "id", doc: "not there yet"},
		{names: []string{"transaction-duration-ms"}, argument: "ms", kind: long, doc: "not there yet"},
		{names: []string{"warmup-records"}, argument: "number", kind: long, fallback: "0", doc: "records at the " +
			"beginning that do not count"},
		{names: []string{"reporting-interval"}, argument: "ms", kind: long, fallback: "5000", doc: "how often to tell how it goes"},
		{names: []string{"record-key-range"}, argument: "number", kind: integer, doc: "how many keys"},
		{names: []string{"key-distribution"}, argument: "how", fallback: "none", doc: "none, range or random"},
		{names: []string{"random-seed"}, argument: "number", kind: long, fallback: "0", doc: "what the random values begin from"},
	}
}

func runProducerPerf(ctx context.Context, t *call) error {
	if err := checkProducerPerf(t); err != nil {
		return err
	}
	value, err := t.payloads()
	if err != nil {
		return err
	}
	props, err := t.perfProperties()
	if err != nil {
		return err
	}
	options, err := producerOptions(props)
	if err != nil {
		return err
	}
	client, err := t.connect(props, append(options, kgo.AllowAutoTopicCreation())...)
	if err != nil {
		return err
	}
	defer client.Close()
	records, warmup := t.number("num-records"), t.number("warmup-records")
	if warmup > 0 {
		t.printf("Warmup first %d records. Steady state results will print after the complete test summary.\n", warmup)
	}
	meters := newPerfMeters(t, records, warmup)
	rate, _ := strconv.ParseFloat(t.value("throughput"), 64)
	_, err = perf.Produce(ctx, perf.Load{
		Topic: t.value("topic"), Records: records, Rate: max(rate, 0), Value: value, Key: t.keys(), Acknowledged: meters.acknowledged,
		Patience: client.Timeout(), Failed: func(err error) { fmt.Fprintln(t.Err, javaError(err)) },
	}, client.Kafka())
	if err != nil {
		return client.Explain(err)
	}
	meters.print()
	return nil
}

// checkProducerPerf refuses command lines in the words of the tool.
func checkProducerPerf(t *call) error {
	if err := t.require("topic", "num-records", "throughput"); err != nil {
		return err
	}
	switch {
	case t.count("record-size", "payload-file", "payload-monotonic") != 1:
		return usagef("one of the arguments --record-size --payload-file --payload-monotonic is required")
	case t.number("num-records") <= 0:
		return usagef("--num-records should be greater than zero.")
	case t.number("warmup-records") >= t.number("num-records"):
		return usagef("The value for --warmup-records must be strictly fewer than the number of records in the test, " +
			"--num-records.")
	case t.has("record-size") && t.number("record-size") <= 0:
		return usagef("--record-size should be greater than zero.")
	case t.count("bootstrap-server", "command-property", "producer-props", "producer.config", "command-config") == 0:
		return usagef("At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or " +
			"--command-config must be specified.")
	case t.number("reporting-interval") <= 0:
		return usagef("--reporting-interval should be greater than zero.")
	case t.value("key-distribution") != "none" && t.number("record-key-range") <= 0:
		return usagef("--record-key-range is required when --key-distribution is 'range' or 'random'.")
	case t.value("key-distribution") == "none" && t.has("record-key-range"):
		return usagef("--key-distribution must be 'range' or 'random' when --record-key-range is specified.")
	case t.count("transactional-id", "transaction-duration-ms") > 0:
		return sentence("Transactions are not there yet")
	}
	return t.renamed("Option --%s has been deprecated and will be removed in a future version. Use --%s "+
		"instead.\n", "--%s and --%s",
		[2]string{"command-property", "producer-props"}, [2]string{"command-config", "producer.config"})
}

// perfProperties are the producer's properties.
func (t *call) perfProperties() (map[string]string, error) {
	props, err := t.clientProperties()
	if err != nil {
		return nil, err
	}
	maps.Copy(props, keyValues(t.all("command-property")))
	props["client.id"] = cmp.Or(props["client.id"], "perf-producer-client")
	return props, nil
}

// payloads returns what makes values: of a file, numbers, or nil for random letters.
//
//	--record-size N           random letters, the same for the same --random-seed
//	--payload-file F          records of the file, split at --payload-delimiter, drawn at random
//	--payload-monotonic       0, 1, 2, … as text
func (t *call) payloads() (func(i int64) []byte, error) {
	switch {
	case t.has("payload-monotonic"):
		return func(i int64) []byte { return strconv.AppendInt(nil, i, 10) }, nil
	case !t.has("payload-file"):
		return perf.Letters(int(t.number("record-size")), uint64(t.number("random-seed"))), nil
	}
	path, err := filepath.Abs(t.value("payload-file"))
	if err != nil {
		return nil, err
	}
	t.printf("Reading payloads from: %s\n", path)
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(raw) == 0 {
		return nil, sentence("File does not exist or empty file provided.")
	} else if err != nil {
		return nil, err
	}
	delimiter := t.value("payload-delimiter")
	if delimiter == `\n` {
		delimiter = "\n"
	}
	all := bytes.Split(bytes.TrimSuffix(raw, []byte(delimiter)), []byte(delimiter))
	t.printf("Number of records read: %d\n", len(all))
	random := rand.New(rand.NewPCG(uint64(t.number("random-seed")), 0))
	return func(int64) []byte { return all[random.IntN(len(all))] }, nil
}

// keys returns what makes keys; nil where there are none.
func (t *call) keys() func(i int64) []byte {
	span := t.number("record-key-range")
	switch t.value("key-distribution") {
	case "range":
		return func(i int64) []byte { return strconv.AppendInt(nil, i%span, 10) }
	case "random":
		random := rand.New(rand.NewPCG(uint64(t.number("random-seed")), 1))
		return func(int64) []byte { return strconv.AppendInt(nil, random.Int64N(span), 10) }
	}
	return nil
}

// perfMeters measure all records, and those behind the warm-up.
type perfMeters struct {
	t      *call
	warmup int64
	whole  *perfMeter
	// steady is nil without a warm-up, and until it is over.
	steady *perfMeter
	count  int64
	total  int64
}

func newPerfMeters(t *call, total, warmup int64) *perfMeters {
	return &perfMeters{t: t, warmup: warmup, total: total, whole: newPerfMeter(t, total)}
}

// acknowledged counts a record; calls come one at a time.
func (m *perfMeters) acknowledged(took time.Duration, size int) {
	m.count++
	if m.warmup > 0 && m.count == m.warmup {
		m.steady = newPerfMeter(m.t, m.total-m.warmup)
		m.steady.label = " steady state"
		m.whole.silent = true
	}
	m.whole.add(took, size)
	if m.steady != nil && m.count > m.warmup {
		m.steady.add(took, size)
	}
}

func (m *perfMeters) print() {
	m.whole.printTotal()
	if m.steady != nil {
		m.steady.printTotal()
	}
}

// latenciesMax is how many latencies are kept for the quantiles; of more records every n-th is.
const latenciesMax = 500_000

// perfWindow counts records since some time.
type perfWindow struct {
	began         time.Time
	records, size int64
	latency       int64
	longest       int64
}

func (w *perfWindow) add(ms int64, size int) {
	w.records++
	w.size += int64(size)
	w.latency += ms
	w.longest = max(w.longest, ms)
}

// rates are records and megabytes a second.
func (w *perfWindow) rates() (records, megabytes float64) {
	elapsed := float64(time.Since(w.began).Milliseconds())
	return 1000 * float64(w.records) / elapsed, 1000 * float64(w.size) / elapsed / (1 << 20)
}

// perfMeter prints how it goes, and at the end the whole, as the tool does: in whole milliseconds.
//
//	whole      since the beginning, for the last line
//	window     since the last line, every reporting interval
//	latencies  every n-th, so that a long run keeps half a million of them at most
type perfMeter struct {
	t             *call
	label         string
	silent        bool
	interval      time.Duration
	whole, window perfWindow
	every         int64
	latencies     []int64
}

func newPerfMeter(t *call, records int64) *perfMeter {
	now := time.Now()
	return &perfMeter{
		t: t, interval: time.Duration(t.number("reporting-interval")) * time.Millisecond, every: max(records/min(records, latenciesMax), 1),
		whole: perfWindow{began: now}, window: perfWindow{began: now},
	}
}

func (m *perfMeter) add(took time.Duration, size int) {
	ms := took.Milliseconds()
	if m.whole.records%m.every == 0 {
		m.latencies = append(m.latencies, ms)
	}
	m.whole.add(ms, size)
	m.window.add(ms, size)
	if time.Since(m.window.began) < m.interval {
		return
	}
	if m.label != "" && m.whole.records == m.window.records {
		m.t.printf("In steady state.\n")
	}
	if !m.silent {
		records, megabytes := m.window.rates()
		m.t.printf("%d records sent, %.1f records/sec (%.2f MB/sec), %.1f ms avg latency, %.1f ms max latency.\n",
			m.window.records, records, megabytes, float64(m.window.latency)/float64(m.window.records), float64(m.window.longest))
	}
	m.window = perfWindow{began: time.Now()}
}

func (m *perfMeter) printTotal() {
	records, megabytes := m.whole.rates()
	m.t.printf("%d%s records sent, %f records/sec (%.2f MB/sec), %.2f ms avg latency, %.2f ms max latency, %d ms 50th, "+
		"%d ms 95th, %d ms 99th, %d ms 99.9th.\n",
		m.whole.records, m.label, records, megabytes, float64(m.whole.latency)/float64(m.whole.records), float64(m.whole.longest),
		quantile(m.latencies, 0.5), quantile(m.latencies, 0.95), quantile(m.latencies, 0.99), quantile(m.latencies, 0.999))
}

// quantile is the latency that the share q did not exceed; it sorts them.
func quantile(latencies []int64, q float64) int64 {
	if len(latencies) == 0 {
		return 0
	}
	slices.Sort(latencies)
	return latencies[min(int(q*float64(len(latencies))), len(latencies)-1)]
}
