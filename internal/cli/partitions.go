package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// parseTopicPartitions reads topic, or topic:0,1 for some of its partitions. Topic names hold no colon.
func parseTopicPartitions(given string) (topic string, numbers []int32, err error) {
	topic, list, ok := strings.Cut(given, ":")
	if topic == "" {
		return "", nil, usageError{fmt.Errorf("%q names no topic", given)}
	}
	if !ok {
		return topic, nil, nil
	}
	for _, text := range strings.Split(list, ",") {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return "", nil, usageError{fmt.Errorf("%q in %q is no partition", text, given)}
		}
		numbers = append(numbers, int32(n))
	}
	return topic, numbers, nil
}

// choosePartitions are the partitions that the arguments name, where a topic alone means all of its own.
//
// A topic may be named several times, each time with some of its partitions. They come in the order of the cluster's
// answer, not of the arguments.
func choosePartitions(ctx context.Context, client *admin.Client, given []string) ([]admin.TopicPartition, error) {
	wanted := map[string][]int32{}
	var names []string
	for _, one := range given {
		topic, numbers, err := parseTopicPartitions(one)
		if err != nil {
			return nil, err
		}
		names = append(names, topic)
		wanted[topic] = append(wanted[topic], numbers...)
	}
	topics, err := client.Topics(ctx, names...)
	if err != nil {
		return nil, err
	}
	if err := missingTopic(topics); err != nil {
		return nil, err
	}
	var partitions []admin.TopicPartition
	for _, t := range topics {
		for _, number := range wanted[t.Name] {
			if int(number) >= len(t.Partitions) {
				return nil, unknownPartition(t.Name, number)
			}
		}
		for _, p := range t.Partitions {
			if len(wanted[t.Name]) == 0 || slices.Contains(wanted[t.Name], p.Number) {
				partitions = append(partitions, admin.TopicPartition{Topic: t.Name, Partition: p.Number})
			}
		}
	}
	return partitions, nil
}

// printPartitionResults reports what became of each of several partitions.
func (c *common) printPartitionResults(verb string, results []admin.PartitionResult) error {
	r := &report{}
	list := r.list("partitions", "topic", "partition", "result", "error", "message")
	failed := 0
	for _, result := range results {
		outcome, code, message := outcomeOf(verb, result.Err)
		if result.Err != nil {
			failed++
		}
		list.add(result.Topic, result.Partition, outcome, code, message)
	}
	if err := c.print(r); err != nil {
		return err
	}
	if failed > 0 {
		return failure{failed, len(results)}
	}
	return nil
}
