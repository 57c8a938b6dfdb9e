package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// consoleProducerTool is kafka-console-producer: a record for each line of standard input (see lineReader), idempotent
// and with acks=all unless properties say otherwise. A record that cannot be written is told on standard error, and the
// tool goes on with the next, unless --sync is given: the status is 0 all the same, as it is with Kafka.
func consoleProducerTool() *tool {
	return &tool{
		name:    "kafka-console-producer",
		summary: "This tool helps to read data from standard input and publish it to Kafka.",
		flags:   consoleProducerFlags(),
		run:     runConsoleProducer,
	}
}

func consoleProducerFlags() []flag {
	flags := []flag{
		{names: []string{"topic"}, argument: "topic", doc: "the topic to write to"},
		{names: []string{"bootstrap-server", "broker-list"}, argument: "host:port", doc: "the broker to begin with, or " +
			"several with commas"},
		{names: []string{"sync"}, doc: "write one record at a time"},
		{names: []string{"compression-codec"}, argument: "codec", optional: true, doc: "none, gzip, snappy, lz4 or " +
			"zstd; gzip where none is named"},
		{names: []string{"request-required-acks"}, argument: "acks", fallback: "-1", doc: "all or -1, 1 or 0"},
		{names: []string{"timeout"}, argument: "ms", kind: long, doc: "how long a batch waits to fill"},
		{names: []string{"message-send-max-retries"}, argument: "number", kind: integer, fallback: "3", doc: "how often a record is sent again"},
		{names: []string{"line-reader"}, argument: "class", doc: "the reader; only the one of lines is there"},
		{names: []string{"property"}, argument: "key=value", many: true, doc: "older name of --reader-property"},
		{names: []string{"reader-property"}, argument: "key=value", many: true, doc: "parse.key, key.separator, " +
			"parse.headers, headers.delimiter, headers.separator, headers.key.separator, ignore.error, null.marker"},
		{names: []string{"reader-config"}, argument: "file", doc: "properties of the reader"},
		{names: []string{"producer-property"}, argument: "key=value", many: true, doc: "older name of --command-property"},
		{names: []string{"command-property"}, argument: "key=value", many: true, doc: "a property of the producer"},
		{names: []string{"producer.config"}, argument: "file", doc: "older name of --command-config"},
		commandConfigFlag(),
	}
	for _, name := range []string{
		"batch-size", "retry-backoff-ms", "request-timeout-ms", "metadata-expiry-ms", "max-block-ms", "max-memory-bytes",
		"max-partition-memory-bytes", "socket-buffer-size",
	} {
		flags = append(flags, flag{names: []string{name}, argument: "number", kind: long, doc: "taken, without effect here"})
	}
	return flags
}

func runConsoleProducer(ctx context.Context, t *call) error {
	if err := checkConsoleProducer(t); err != nil {
		return err
	}
	reader, err := newLineReader(t)
	if err != nil {
		return err
	}
	client, err := dialProducer(t)
	if err != nil {
		return err
	}
	defer client.Close()
	p := consoleProducer{call: t, client: client, ctx: ctx}
	err = p.copy(reader)
	return errors.Join(err, p.flush())
}

// checkConsoleProducer refuses what does not go together and warns of older names, in the tool's order.
func checkConsoleProducer(t *call) error {
	if err := t.require("topic"); err != nil {
		return err
	}
	if err := t.renamed("Warning: --%s is deprecated and will be removed in a future version. Use --%s instead.\n", "--%s and --%s",
		[2]string{"command-config", "producer.config"}, [2]string{"command-property", "producer-property"},
		[2]string{"reader-property", "property"}); err != nil {
		return err
	}
	if t.has("max-partition-memory-bytes") {
		t.printf("Warning: --max-partition-memory-bytes is deprecated and will be removed in Apache Kafka 5.0. Use " +
			"--batch-size instead.\n")
	}
	return checkBootstrap(t.value("bootstrap-server"))
}

// renamed refuses a flag beside its older name, and warns of the older name in the words of warning.
func (t *call) renamed(warning, both string, pairs ...[2]string) error {
	for _, pair := range pairs {
		if t.has(pair[0]) && t.has(pair[1]) {
			return usagef("Options "+both+" cannot be specified together.", pair[0], pair[1])
		}
	}
	for _, pair := range pairs {
		if t.has(pair[1]) {
			t.printf(warning, pair[1], pair[0])
			t.values[pair[0]] = t.values[pair[1]]
		}
	}
	return nil
}

// checkBootstrap refuses addresses without a port.
//
// Kafka's tool checks the form before it connects, and scripts know the sentence.
func checkBootstrap(addresses string) error {
	if strings.TrimSpace(addresses) == "" {
		return usagef("Error while validating the bootstrap address\n")
	}
	for _, address := range strings.Split(addresses, ",") {
		_, port, ok := cutLast(address, ":")
		if _, err := strconv.ParseUint(port, 10, 16); !ok || err != nil {
			return usagef("Please provide valid host:port like host1:9091,host2:9092\n")
		}
	}
	return nil
}

func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// layered are the properties of a file with those of repeated flags over them.
func (t *call) layered(fileFlag, pairsFlag string) (map[string]string, error) {
	props := map[string]string{}
	if t.has(fileFlag) {
		loaded, err := loadProperties(t.value(fileFlag))
		if err != nil {
			return nil, err
		}
		props = loaded
	}
	maps.Copy(props, keyValues(t.all(pairsFlag)))
	return props, nil
}

// dialProducer makes the client that writes.
//
//	linger.ms, acks       of the flags --timeout and --request-required-acks where they are given or nothing else is set
//	compression.type      of --compression-codec only; the flag without a word means gzip
//	delivery.timeout.ms   how long a record is tried
func dialProducer(t *call) (*admin.Client, error) {
	props, err := t.layered("command-config", "command-property")
	if err != nil {
		return nil, err
	}
	for _, merged := range []struct{ property, flag string }{{"linger.ms", "timeout"}, {"acks", "request-required-acks"}} {
		if _, set := props[merged.property]; !set || t.has(merged.flag) {
			props[merged.property] = t.value(merged.flag)
		}
	}
	props["compression.type"] = "none"
	if t.has("compression-codec") {
		props["compression.type"] = t.value("compression-codec")
		if props["compression.type"] == "" {
			props["compression.type"] = "gzip"
		}
	}
	if props["client.id"] == "" {
		props["client.id"] = "console-producer"
	}
	options, err := producerOptions(props)
	if err != nil {
		return nil, err
	}
	return t.connect(props, append(options, kgo.AllowAutoTopicCreation(), kgo.RecordRetries(int(t.number("message-send-max-retries"))))...)
}

// producerOptions are a Java producer's properties in the words of our client.
func producerOptions(props map[string]string) ([]kgo.Opt, error) {
	options := []kgo.Opt{kgo.RecordPartitioner(kgo.UniformBytesPartitioner(16<<10, false, true, nil))}
	switch strings.ToLower(props["acks"]) {
	case "", "all", "-1":
		if strings.EqualFold(props["enable.idempotence"], "false") {
			options = append(options, kgo.DisableIdempotentWrite())
		}
	case "1":
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	case "0":
		options = append(options, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	default:
		return nil, sentencef("Invalid value %s for configuration acks: String must be one of: all, -1, 0, 1", props["acks"])
	}
	codec, err := codecOf(props["compression.type"])
	if err != nil {
		return nil, err
	}
	options = append(options, kgo.ProducerBatchCompression(codec), kgo.RecordDeliveryTimeout(deliveryTimeout(props)))
	if linger, err := strconv.ParseInt(props["linger.ms"], 10, 64); err == nil {
		options = append(options, kgo.ProducerLinger(time.Duration(linger)*time.Millisecond))
	}
	if most, err := strconv.ParseInt(props["max.request.size"], 10, 32); err == nil {
		options = append(options, kgo.ProducerBatchMaxBytes(int32(most)))
	}
	return options, nil
}

// deliveryTimeout is how long a record is tried: two minutes, as in Java, unless a property says otherwise.
func deliveryTimeout(props map[string]string) time.Duration {
	if ms, err := strconv.ParseInt(props["delivery.timeout.ms"], 10, 32); err == nil && ms >= 1000 {
		return time.Duration(ms) * time.Millisecond
	}
	return 2 * time.Minute
}

func codecOf(name string) (kgo.CompressionCodec, error) {
	switch name {
	case "", "none":
		return kgo.NoCompression(), nil
	case "gzip":
		return kgo.GzipCompression(), nil
	case "snappy":
		return kgo.SnappyCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	}
	return kgo.CompressionCodec{}, sentencef("Invalid value %s for configuration compression.type: String must be one "+
		"of: none, gzip, snappy, lz4, zstd", name)
}

// consoleProducer sends what the reader reads.
//
// Without --sync records are sent as fast as they are read; their errors come on the client's goroutine, which
// is why only standard error is written there.
type consoleProducer struct {
	*call
	client *admin.Client
	ctx    context.Context
}

func (p *consoleProducer) copy(reader *lineReader) error {
	for {
		record, err := reader.next()
		if errors.Is(err, io.EOF) || p.ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
		if p.has("sync") {
			if err := p.client.Kafka().ProduceSync(p.ctx, record).FirstErr(); err != nil {
				return p.client.Explain(err)
			}
			continue
		}
		p.client.Kafka().Produce(p.ctx, record, p.acknowledged)
	}
}

// acknowledged tells a record that could not be written; the tool goes on with the others.
func (p *consoleProducer) acknowledged(record *kgo.Record, err error) {
	if err != nil {
		fmt.Fprintf(p.Err, "Error when sending message to topic %s with key: %s, value: %d bytes with error: %v\n",
			record.Topic, sized(record.Key), len(record.Value), p.client.Explain(err))
	}
}

func sized(key []byte) string {
	if key == nil {
		return "null"
	}
	return strconv.Itoa(len(key)) + " bytes"
}

// flush waits for the records that are still on their way, even after an interrupt.
func (p *consoleProducer) flush() error {
	return p.client.Kafka().Flush(context.WithoutCancel(p.ctx))
}
