package kafka

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// consoleConsumerTool is kafka-console-consumer: a record a line on standard output, and at the end "Processed a total
// of N messages" on standard error. It reads from the end unless --from-beginning is given or a group has offsets, and
// follows until --max-messages, --timeout-ms or a signal ends it.
func consoleConsumerTool() *tool {
	return &tool{
		name:    "kafka-console-consumer",
		summary: "This tool helps to read data from Kafka topics and outputs it to standard output.",
		flags:   consoleConsumerFlags(),
		run:     runConsoleConsumer,
	}
}

func consoleConsumerFlags() []flag {
	return []flag{
		{names: []string{"topic"}, argument: "topic", doc: "the topic to read"},
		{names: []string{"include", "whitelist"}, argument: "regex", doc: "the topics to read, as a regular expression"},
		{names: []string{"partition"}, argument: "number", kind: integer, doc: "the partition to read, without a group"},
		{names: []string{"offset"}, argument: "offset", fallback: "latest", doc: "where to begin: an offset, earliest or latest"},
		{names: []string{"consumer-property"}, argument: "key=value", many: true, doc: "older name of --command-property"},
		{names: []string{"command-property"}, argument: "key=value", many: true, doc: "a property of the consumer"},
		{names: []string{"consumer.config"}, argument: "file", doc: "older name of --command-config"},
		commandConfigFlag(),
		{names: []string{"formatter"}, argument: "class", fallback: "org.apache.kafka.tools.consumer.DefaultMessageFormatter", doc: "how records are printed"},
		{names: []string{"property"}, argument: "key=value", many: true, doc: "older name of --formatter-property"},
		{names: []string{"formatter-property"}, argument: "key=value", many: true, doc: "print.timestamp, print.key, " +
			"print.offset, print.epoch, print.partition, print.headers, print.value, key.separator, line.separator, " +
			"headers.separator, null.literal, key.deserializer, value.deserializer, headers.deserializer"},
		{names: []string{"formatter-config"}, argument: "file", doc: "properties of the formatter"},
		{names: []string{"from-beginning"}, doc: "begin with the first record where there is no offset yet"},
		{names: []string{"max-messages"}, argument: "number", kind: integer, doc: "end after so many records"},
		{names: []string{"timeout-ms"}, argument: "ms", kind: long, doc: "end where no record comes for so long"},
		{names: []string{"skip-message-on-error"}, doc: "go on where a record cannot be printed"},
		bootstrapFlag(),
		{names: []string{"key-deserializer"}, argument: "class", doc: "how keys are read"},
		{names: []string{"value-deserializer"}, argument: "class", doc: "how values are read"},
		{names: []string{"enable-systest-events"}, doc: "print the end of the tool too"},
		{names: []string{"isolation-level"}, argument: "level", fallback: "read_uncommitted", doc: "read_committed or " +
			"read_uncommitted"},
		{names: []string{"group"}, argument: "group", doc: "read as a member of this group"},
	}
}

// Groups are joined only where --group or a property names one. Kafka's tool makes up a name,
// console-consumer-<number>, and leaves it behind in the list of groups for as long as offsets are kept.
func runConsoleConsumer(ctx context.Context, t *call) error {
	if err := checkConsoleConsumer(t); err != nil {
		return err
	}
	props, err := t.consumerProperties()
	if err != nil {
		return err
	}
	formatter, err := newFormatter(t)
	if err != nil {
		return err
	}
	options, err := consumerOptions(props)
	if err != nil {
		return err
	}
	what, err := reading(t)
	if err != nil {
		return err
	}
	client, err := t.connect(props, append(options, what...)...)
	if err != nil {
		return err
	}
	defer client.Close()
	// A consumer would try forever to reach a cluster.
	if _, err := client.Cluster(ctx); err != nil {
		return err
	}
	c := &consoleConsumer{call: t, client: client, formatter: formatter, out: bufio.NewWriterSize(t.Out, 1<<16), commits: commits(props)}
	err = c.run(ctx)
	fmt.Fprintf(t.Err, "Processed a total of %d messages\n", c.count)
	if t.has("enable-systest-events") {
		t.printf("shutdown_complete\n")
	}
	return err
}

func checkConsoleConsumer(t *call) error {
	if t.count("topic", "include") != 1 {
		return usagef("Exactly one of the following arguments is required: [topic], [include]")
	}
	switch {
	case t.has("partition") && !t.has("topic"):
		return usagef("The topic is required when partition is specified.")
	case t.has("partition") && t.has("from-beginning") && t.has("offset"):
		return usagef("Options from-beginning and offset cannot be specified together.")
	case !t.has("partition") && t.has("offset"):
		return usagef("The partition is required when offset is specified.")
	}
	if err := t.require("bootstrap-server"); err != nil {
		return err
	}
	return t.renamed("Option --%s is deprecated and will be removed in a future version. Use --%s "+
		"instead.\n", "--%[2]s and --%[1]s",
		[2]string{"command-property", "consumer-property"}, [2]string{"command-config", "consumer.config"},
		[2]string{"formatter-property", "property"})
}

// consumerProperties are the consumer's properties; what the flags say of the group beats them.
//
// Precedence: the file of --command-config, over it --command-property, over both the flags that say the same.
// A group that two places name differently is refused rather than guessed.
func (t *call) consumerProperties() (map[string]string, error) {
	props, err := t.layered("command-config", "command-property")
	if err != nil {
		return nil, err
	}
	if given := t.value("group"); given != "" {
		if other, ok := props["group.id"]; ok && other != given {
			return nil, usagef("The group ids provided in different places (directly using '--group', via "+
				"'--consumer-property', or via '--consumer.config') do not match. Detected group ids: '%s', '%s'", given, other)
		}
		props["group.id"] = given
	}
	if props["group.id"] != "" && t.has("partition") {
		return nil, usagef("Options group and partition cannot be specified together.")
	}
	reset := props["auto.offset.reset"]
	switch {
	case reset == "" && t.has("from-beginning"):
		props["auto.offset.reset"] = "earliest"
	case reset == "":
		props["auto.offset.reset"] = "latest"
	case t.has("from-beginning") && reset != "earliest":
		return nil, sentencef("Can't simultaneously specify --from-beginning and 'auto.offset.reset=%s', please remove "+
			"one option", reset)
	}
	if props["client.id"] == "" {
		props["client.id"] = "console-consumer"
	}
	if props["isolation.level"] == "" || t.has("isolation-level") {
		props["isolation.level"] = t.value("isolation-level")
	}
	return props, nil
}

// commits reports whether offsets are committed: only those of a group that somebody named.
func commits(props map[string]string) bool {
	return props["group.id"] != "" && !strings.EqualFold(props["enable.auto.commit"], "false")
}

// resetOffset is where to begin without an offset.
func resetOffset(props map[string]string) kgo.Offset {
	if props["auto.offset.reset"] == "earliest" {
		return kgo.NewOffset().AtStart()
	}
	return kgo.NewOffset().AtEnd()
}

// consumerOptions are a Java consumer's properties in the words of our client.
//
//	auto.offset.reset     earliest, latest (the default)
//	isolation.level       read_uncommitted (the default, unlike that of 'barnabas consume'), read_committed
//	group.id, group.instance.id, enable.auto.commit
//
// Nothing else of a consumer's properties changes what is read.
func consumerOptions(props map[string]string) ([]kgo.Opt, error) {
	reset := resetOffset(props)
	options := []kgo.Opt{kgo.ConsumeStartOffset(reset), kgo.ConsumeResetOffset(reset), kgo.AllowAutoTopicCreation()}
	switch props["isolation.level"] {
	case "read_committed":
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	case "read_uncommitted":
	default:
		return nil, sentencef("Invalid value %s for configuration isolation.level: String must be one of: "+
			"read_committed, read_uncommitted", props["isolation.level"])
	}
	if props["group.id"] != "" {
		options = append(options, kgo.ConsumerGroup(props["group.id"]), kgo.AutoCommitMarks(),
			kgo.Balancers(kgo.RangeBalancer(), kgo.CooperativeStickyBalancer()))
		if props["group.instance.id"] != "" {
			options = append(options, kgo.InstanceID(props["group.instance.id"]))
		}
	}
	return options, nil
}

// subscription is --topic or --include in the words of our client.
func subscription(t *call) []kgo.Opt {
	if t.has("include") {
		return []kgo.Opt{kgo.ConsumeRegex(), kgo.ConsumeTopics("^(?:" + t.value("include") + ")$")}
	}
	return []kgo.Opt{kgo.ConsumeTopics(t.value("topic"))}
}

// reading is what the command line wants to read.
func reading(t *call) ([]kgo.Opt, error) {
	if !t.has("partition") {
		return subscription(t), nil
	}
	offset, err := firstOffset(t)
	if err != nil {
		return nil, err
	}
	return []kgo.Opt{kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{t.value("topic"): {int32(t.number("partition")): offset}})}, nil
}

// firstOffset is where --partition begins.
func firstOffset(t *call) (kgo.Offset, error) {
	given := t.value("offset")
	switch strings.ToLower(given) {
	case "earliest":
		return kgo.NewOffset().AtStart(), nil
	case "latest":
		if t.has("from-beginning") {
			return kgo.NewOffset().AtStart(), nil
		}
		return kgo.NewOffset().AtEnd(), nil
	}
	offset, err := strconv.ParseInt(given, 10, 64)
	if err != nil || offset < 0 {
		return kgo.Offset{}, usagef("The provided offset value '%s' is incorrect. Valid values are 'earliest', "+
			"'latest', or a non-negative long.", given)
	}
	return kgo.NewOffset().At(offset), nil
}

// consoleConsumer prints records.
type consoleConsumer struct {
	*call
	client    *admin.Client
	formatter formatter
	out       *bufio.Writer
	commits   bool
	count     int64
}

// run prints until there is an end: of the records asked for, of the time to wait, or by a signal.
//
// --timeout-ms counts from the last batch, not from the last record printed: a topic that is written to faster
// than that never ends.
func (c *consoleConsumer) run(ctx context.Context) error {
	sink := admin.Sink{Each: c.print, Batch: c.out.Flush}
	if c.has("max-messages") && c.number("max-messages") == 0 {
		return nil
	}
	idle := time.Duration(c.number("timeout-ms")) * time.Millisecond
	if c.has("timeout-ms") && idle >= 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		timer := time.AfterFunc(idle, cancel)
		defer timer.Stop()
		sink.Batch = func() error {
			timer.Reset(idle)
			return c.out.Flush()
		}
	}
	return errors.Join(c.client.Consume(ctx, c.commits, sink), c.out.Flush())
}

func (c *consoleConsumer) print(record *kgo.Record) error {
	err := c.formatter.write(c.out, record)
	switch {
	case err != nil && c.has("skip-message-on-error"):
		fmt.Fprintf(c.Err, "Error processing message, skipping this message: %v\n", err)
	case err != nil:
		return err
	}
	c.count++
	if c.has("max-messages") && c.count == c.number("max-messages") {
		return admin.ErrStop
	}
	return nil
}
