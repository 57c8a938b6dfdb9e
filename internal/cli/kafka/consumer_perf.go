package kafka

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// consumerPerfTool is kafka-consumer-perf-test. Its last line is a row of CSV under a heading, which
// --show-detailed-stats precedes with one row an interval:
//
//	start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms,
//	fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec
//
// MB are MiB. The time to join the group counts as rebalance time and not as fetch time.
func consumerPerfTool() *tool {
	return &tool{
		name:    "kafka-consumer-perf-test",
		summary: "This tool is used to verify the consumer performance.",
		flags: []flag{
			bootstrapFlag(),
			{names: []string{"topic"}, argument: "topic", doc: "the topic to read"},
			{names: []string{"include"}, argument: "regex", doc: "the topics to read, as a regular expression"},
			{names: []string{"group"}, argument: "group", doc: "read as a member of this group; without it there is none"},
			{names: []string{"fetch-size"}, argument: "bytes", kind: integer, fallback: "1048576", doc: "most bytes of " +
				"a partition in one answer"},
			{names: []string{"command-property"}, argument: "key=value", many: true, doc: "a property of the consumer"},
			{names: []string{"from-latest"}, doc: "begin at the end where there is no offset yet"},
			{names: []string{"socket-buffer-size"}, argument: "bytes", kind: integer, doc: "taken, without effect here"},
			{names: []string{"consumer.config"}, argument: "file", doc: "older name of --command-config"},
			commandConfigFlag(),
			{names: []string{"print-metrics"}, doc: "taken, without effect here"},
			{names: []string{"show-detailed-stats"}, doc: "tell how it goes"},
			{names: []string{"timeout"}, argument: "ms", optional: true, kind: long, fallback: "10000", doc: "end where no record comes for so long"},
			{names: []string{"messages"}, argument: "number", kind: long, doc: "older name of --num-records"},
			{names: []string{"num-records"}, argument: "number", kind: long, doc: "how many records"},
			{names: []string{"reporting-interval"}, argument: "ms", kind: long, fallback: "5000", doc: "how often to tell how it goes"},
			{names: []string{"date-format"}, argument: "pattern", fallback: "yyyy-MM-dd HH:mm:ss:SSS", doc: "how times are written, in Java's letters"},
			{names: []string{"hide-header"}, doc: "print no heading"},
		},
		run: runConsumerPerf,
	}
}

func runConsumerPerf(ctx context.Context, t *call) error {
	props, err := checkConsumerPerf(t)
	if err != nil {
		return err
	}
	p := &consumerPerf{call: t}
	options, err := consumerOptions(props)
	if err != nil {
		return err
	}
	options = append(append(options, subscription(t)...), kgo.FetchMaxPartitionBytes(int32(t.number("fetch-size"))))
	if props["group.id"] != "" {
		options = append(options, kgo.OnPartitionsAssigned(p.assigned))
	}
	if !t.has("hide-header") {
		p.printHeading()
	}
	client, err := t.connect(props, options...)
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := client.Cluster(ctx); err != nil {
		return err
	}
	return p.run(ctx, client, commits(props))
}

func checkConsumerPerf(t *call) (map[string]string, error) {
	if err := t.require("bootstrap-server"); err != nil {
		return nil, err
	}
	switch {
	case t.count("topic", "include") != 1:
		return nil, usagef("Exactly one of the following arguments is required: [topic], [include]")
	case t.count("messages", "num-records") != 1:
		return nil, usagef("Exactly one of the following arguments is required: [messages], [num-records]")
	}
	if err := t.exclude("consumer.config", "command-config"); err != nil {
		return nil, err
	}
	if t.has("messages") {
		t.printf("Warning: --messages is deprecated. Use --num-records instead.\n")
		t.values["num-records"] = t.values["messages"]
	}
	if t.has("consumer.config") {
		t.printf("Warning: --consumer.config is deprecated. Use --command-config instead.\n")
		t.values["command-config"] = t.values["consumer.config"]
	}
	props, err := t.clientProperties()
	if err != nil {
		return nil, err
	}
	maps.Copy(props, keyValues(t.all("command-property")))
	props["client.id"] = cmp.Or(props["client.id"], "perf-consumer-client")
	props["isolation.level"] = cmp.Or(props["isolation.level"], "read_uncommitted")
	props["auto.offset.reset"] = "earliest"
	if t.has("from-latest") {
		props["auto.offset.reset"] = "latest"
	}
	props["group.id"] = t.value("group")
	return props, nil
}

// consumerPerf reads and counts.
//
// assigned is called on the client's goroutine, the rest on the reading one. Time to join is what Kafka's tool
// calls rebalance.time.ms; without a group it is 0.
type consumerPerf struct {
	*call
	began, reported time.Time
	records, bytes  int64
	// The same at the last report.
	lastRecords, lastBytes int64
	// joined is how long joining the group took.
	joined time.Duration
}

func (p *consumerPerf) assigned(context.Context, *kgo.Client, map[string][]int32) {
	if p.joined == 0 && !p.began.IsZero() {
		p.joined = time.Since(p.began)
	}
}

func (p *consumerPerf) printHeading() {
	first := "start.time, end.time"
	if p.has("show-detailed-stats") {
		first = "time, threadId"
	}
	p.printf("%s, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, "+
		"fetch.MB.sec, fetch.nMsg.sec\n", first)
}

func (p *consumerPerf) run(ctx context.Context, client *admin.Client, commit bool) error {
	wanted := p.number("num-records")
	idle := time.Duration(p.number("timeout")) * time.Millisecond
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timer := time.AfterFunc(idle, cancel)
	defer timer.Stop()
	p.began = time.Now()
	p.reported = p.began
	err := client.Consume(ctx, commit, admin.Sink{
		Each: func(r *kgo.Record) error {
			p.records++
			p.bytes += int64(len(r.Key) + len(r.Value))
			if p.records >= wanted {
				return admin.ErrStop
			}
			return nil
		},
		Batch: func() error {
			timer.Reset(idle)
			p.report()
			return nil
		},
	})
	if err != nil {
		return err
	}
	if p.records < wanted {
		p.printf("WARNING: Exiting before consuming the expected number of records: timeout (%d ms) exceeded. You can "+
			"use the --timeout option to increase the timeout.\n", idle.Milliseconds())
	}
	p.printTotal()
	return nil
}

const megabyte = 1 << 20

// report tells how it goes, once an interval.
func (p *consumerPerf) report() {
	now := time.Now()
	elapsed := now.Sub(p.reported)
	if elapsed < time.Duration(p.number("reporting-interval"))*time.Millisecond {
		return
	}
	if p.has("show-detailed-stats") {
		megabytes, records := float64(p.bytes-p.lastBytes)/megabyte/elapsed.Seconds(), float64(p.records-p.lastRecords)/elapsed.Seconds()
		p.printf("%s, 0, %.4f, %.4f, %d, %.4f, 0, %d, %.4f, %.4f\n", javaDate(now, p.value("date-format")),
			float64(p.bytes)/megabyte, megabytes, p.records, records, elapsed.Milliseconds(), megabytes, records)
	}
	p.reported, p.lastRecords, p.lastBytes = now, p.records, p.bytes
}

func (p *consumerPerf) printTotal() {
	if p.has("show-detailed-stats") {
		return
	}
	end := time.Now()
	elapsed, megabytes := end.Sub(p.began), float64(p.bytes)/megabyte
	fetching := elapsed - p.joined
	layout := p.value("date-format")
	p.printf("%s, %s, %.4f, %.4f, %d, %.4f, %d, %d, %.4f, %.4f\n", javaDate(p.began, layout), javaDate(end, layout),
		megabytes, megabytes/elapsed.Seconds(), p.records, float64(p.records)/elapsed.Seconds(),
		p.joined.Milliseconds(), fetching.Milliseconds(), megabytes/fetching.Seconds(), float64(p.records)/fetching.Seconds())
}
