package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// getOffsetsTool is kafka-get-offsets: a line TOPIC:PARTITION:OFFSET for each partition that has an offset at that time,
// in the order of the names as text (so that partition 10 stands before 2). What cannot be had is told on standard
// error and left out; the status is 1 only where nothing matched at all.
//
// The special times are those of ListOffsets, with the KIP that brought them:
//
//	-1 latest                  the high watermark
//	-2 earliest                the log start offset
//	-3 max-timestamp           the record with the largest timestamp (KIP-734)
//	-4 earliest-local          the first that is not only in the remote tier (KIP-405)
//	-5 latest-tiered           the last that is in the remote tier (KIP-1005)
//	-6 earliest-pending-upload the first that is not in it yet (KIP-1023)
func getOffsetsTool() *tool {
	return &tool{
		name:    "kafka-get-offsets",
		summary: "An interactive shell for getting topic-partition offsets.",
		flags: []flag{
			bootstrapFlag(),
			{names: []string{"topic-partitions"}, argument: "patterns", doc: "partitions, such as " +
				"topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3"},
			{names: []string{"topic"}, argument: "topic", doc: "the topics, as a regular expression"},
			{names: []string{"partitions"}, argument: "numbers", doc: "partitions with commas"},
			{names: []string{"time"}, argument: "time", fallback: "latest", doc: "a time in ms, or -1 or latest, -2 or " +
				"earliest, -3 or max-timestamp, -4 or earliest-local, -5 or latest-tiered, -6 or earliest-pending-upload"},
			commandConfigFlag(),
			{names: []string{"exclude-internal-topics"}, doc: "leave out internal topics"},
		},
		run: runGetOffsets,
		fail: func(t *call, err error) int {
			if told(err) {
				return t.failPlainly(err)
			}
			fmt.Fprintf(t.Err, "Error occurred: %s\n", admin.Message(err))
			return 1
		},
	}
}

// runGetOffsets asks for the offsets of what the filters let through.
func runGetOffsets(ctx context.Context, t *call) error {
	if err := t.require("bootstrap-server"); err != nil {
		return err
	}
	if err := checkBootstrap(t.value("bootstrap-server")); err != nil {
		return err
	}
	point, err := offsetPoint(t.value("time"))
	if err != nil {
		return err
	}
	filter, err := newPartitionFilter(t)
	if err != nil {
		return err
	}
	client, err := t.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	topics, err := fewestTopics(ctx, client, t.value("topic"))
	if err != nil {
		return err
	}
	partitions := filter.choose(topics, t.has("exclude-internal-topics"))
	if len(partitions) == 0 {
		return sentence("Could not match any topic-partitions with the specified filters")
	}
	offsets, err := client.Offsets(ctx, point, partitions)
	if err != nil {
		return err
	}
	t.printOffsets(offsets)
	return nil
}

// printOffsets prints them in the order of the partitions' names as text, as the tool does.
func (t *call) printOffsets(offsets []admin.PartitionOffset) {
	slices.SortFunc(offsets, func(a, b admin.PartitionOffset) int {
		return cmp.Compare(partitionName(a.TopicPartition), partitionName(b.TopicPartition))
	})
	for _, o := range offsets {
		switch {
		case o.Err != nil:
			fmt.Fprintf(t.Err, "Skip getting offsets for topic-partition %s due to "+
				"error: %s\n", partitionName(o.TopicPartition), javaError(o.Err))
		case o.Offset >= 0:
			t.printf("%s:%d:%d\n", o.Topic, o.Partition, o.Offset)
		}
	}
}

// partitionName is a partition as Kafka writes it.
func partitionName(at admin.TopicPartition) string {
	return at.Topic + "-" + strconv.Itoa(int(at.Partition))
}

// offsetPoint reads --time.
func offsetPoint(given string) (int64, error) {
	for i, name := range []string{"latest", "earliest", "max-timestamp", "earliest-local", "latest-tiered", "earliest-pending-upload"} {
		if given == name {
			return int64(-1 - i), nil
		}
	}
	point, err := strconv.ParseInt(given, 10, 64)
	if err != nil {
		return 0, sentencef("Malformed time argument %s. Please use -1 or latest / -2 or earliest / -3 or "+
			"max-timestamp / -4 or earliest-local / -5 or latest-tiered / -6 or earliest-pending-upload, or a "+
			"specified long format timestamp", given)
	}
	return point, nil
}

// partitionRule allows some partitions of some topics.
type partitionRule struct {
	topic func(string) bool
	// numbers are the partitions, where there are any; otherwise from and to (exclusive) are.
	numbers  []int32
	from, to int64
}

func (r partitionRule) allows(topic string, number int32) bool {
	if !r.topic(topic) {
		return false
	}
	if r.numbers != nil {
		return slices.Contains(r.numbers, number)
	}
	return int64(number) >= r.from && int64(number) < r.to
}

// partitionFilter allows what any of its rules does.
type partitionFilter []partitionRule

// newPartitionFilter reads --topic-partitions, or --topic with --partitions.
func newPartitionFilter(t *call) (partitionFilter, error) {
	if !t.has("topic-partitions") {
		rule := partitionRule{to: math.MaxInt64}
		var err error
		if rule.topic, err = topicPattern(t.value("topic")); err != nil {
			return nil, err
		}
		rule.numbers, err = partitionNumbers(t.value("partitions"))
		return partitionFilter{rule}, err
	}
	if t.count("topic", "partitions") > 0 {
		return nil, sentence("--topic-partitions cannot be used with --topic or --partitions")
	}
	var filter partitionFilter
	for _, one := range strings.Split(t.value("topic-partitions"), ",") {
		rule, err := parsePartitionRule(one)
		if err != nil {
			return nil, err
		}
		filter = append(filter, rule)
	}
	return filter, nil
}

func partitionNumbers(given string) ([]int32, error) {
	if given == "" {
		return nil, nil
	}
	var numbers []int32
	for _, text := range strings.Split(given, ",") {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, sentencef("--partitions expects a comma separated list of numeric partition ids, but received: %s", given)
		}
		numbers = append(numbers, int32(n))
	}
	return numbers, nil
}

// parsePartitionRule reads topic:1, topic:1-3, topic:1-, topic:-3, topic, or any of them without a topic.
func parsePartitionRule(given string) (partitionRule, error) {
	topic, numbers, _ := strings.Cut(given, ":")
	rule := partitionRule{topic: func(string) bool { return true }, to: math.MaxInt64}
	if topic != "" {
		compiled, err := regexp.Compile("^(?:" + topic + ")$")
		if err != nil {
			return rule, sentencef("%s is an invalid regex.", topic)
		}
		rule.topic = compiled.MatchString
	}
	lower, upper, isRange := strings.Cut(numbers, "-")
	from, err := partitionBound(lower, 0)
	to, err2 := partitionBound(upper, math.MaxInt32)
	if err := errors.Join(err, err2); err != nil {
		return rule, sentencef("Invalid rule specification: %s", given)
	}
	switch {
	case numbers == "":
	case isRange:
		rule.from, rule.to = from, to
	default:
		rule.from, rule.to = from, from+1
	}
	return rule, nil
}

// partitionBound reads one end of a range, which may be left open.
func partitionBound(text string, otherwise int64) (int64, error) {
	if text == "" {
		return otherwise, nil
	}
	return strconv.ParseInt(text, 10, 32)
}

// choose lists the partitions that pass. Topics that cannot be described are passed over, as by the tool.
func (f partitionFilter) choose(topics []admin.Topic, excludeInternal bool) []admin.TopicPartition {
	var chosen []admin.TopicPartition
	for _, topic := range topics {
		if topic.Err != nil || excludeInternal && topic.Internal {
			continue
		}
		for _, p := range topic.Partitions {
			if slices.ContainsFunc(f, func(r partitionRule) bool { return r.allows(topic.Name, p.Number) }) {
				chosen = append(chosen, admin.TopicPartition{Topic: topic.Name, Partition: p.Number})
			}
		}
	}
	return chosen
}
