package kafka

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

func listTopics(ctx context.Context, t *call, client *admin.Client) error {
	names, err := matchingTopics(ctx, t, client)
	if err != nil {
		return err
	}
	t.printf("%s\n", strings.Join(names, "\n"))
	return nil
}

// matchingTopics are the names of the topics that --topic matches, or of all.
func matchingTopics(ctx context.Context, t *call, client *admin.Client) ([]string, error) {
	topics, err := fewestTopics(ctx, client, t.value("topic"))
	if err != nil {
		return nil, err
	}
	matches, err := topicPattern(t.value("topic"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, topic := range topics {
		if topic.Err == nil && matches(topic.Name) && !(topic.Internal && t.has("exclude-internal")) {
			names = append(names, topic.Name)
		}
	}
	return names, nil
}

// fewestTopics asks for one topic where the pattern can only match that, else for all.
func fewestTopics(ctx context.Context, client *admin.Client, pattern string) ([]admin.Topic, error) {
	// Kafka's tool always asks for all topics, which takes long where there are many.
	if pattern != "" && isPlain(pattern) {
		return client.Topics(ctx, pattern)
	}
	return client.Topics(ctx)
}

// mustExist refuses a --topic that matched nothing, unless --if-exists is given.
func mustExist(t *call, names []string) error {
	if t.value("topic") != "" && len(names) == 0 && !t.has("if-exists") {
		return sentencef("Topic '%s' does not exist as expected", t.value("topic"))
	}
	return nil
}

func deleteTopics(ctx context.Context, t *call, client *admin.Client) error {
	names, err := matchingTopics(ctx, t, client)
	if err == nil {
		err = mustExist(t, names)
	}
	if err != nil || len(names) == 0 {
		return err
	}
	results, err := client.DeleteTopics(ctx, names)
	if err != nil {
		return err
	}
	return firstError(results)
}

func firstError(results []admin.Result) error {
	for _, r := range results {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// --replica-assignment names all partitions, those that are there too; the request wants the new ones only.
func alterTopics(ctx context.Context, t *call, client *admin.Client) error {
	names, err := matchingTopics(ctx, t, client)
	if err == nil {
		err = mustExist(t, names)
	}
	if err != nil {
		return err
	}
	assignment, err := parseAssignment(t.value("replica-assignment"))
	if err != nil {
		return err
	}
	for _, name := range names {
		added := assignment
		if assignment != nil {
			topics, err := client.Topics(ctx, name)
			if err != nil {
				return err
			}
			added = assignment[min(len(topics[0].Partitions), len(assignment)):]
		}
		results, err := client.CreatePartitions(ctx, int32(t.number("partitions")), added, []string{name})
		if err == nil {
			err = firstError(results)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// describeTopics prints topics one behind the other, each with its partitions; flags such as
// --under-replicated-partitions leave the topics' own lines out. Three requests make a description: Metadata (or
// DescribeTopicPartitions, which knows the eligible leader replicas of KIP-966), DescribeConfigs for the properties, and
// ListPartitionReassignments for what is being moved.
func describeTopics(ctx context.Context, t *call, client *admin.Client) error {
	names, err := topicsToDescribe(ctx, t, client)
	if err != nil || len(names) == 0 {
		return err
	}
	topics, err := client.DescribeTopics(ctx, names...)
	if err != nil {
		return err
	}
	configs, err := client.TopicConfigs(ctx, names...)
	if err != nil {
		return err
	}
	moving, err := reassignments(ctx, client, topics)
	if err != nil {
		return err
	}
	own := map[string]admin.Resource{}
	for _, resource := range configs {
		own[resource.Name] = resource
	}
	for _, topic := range topics {
		if topic.Err != nil {
			return topic.Err
		}
		if err := own[topic.Name].Err; err != nil {
			return err
		}
		printTopic(t, topic, own[topic.Name], moving)
	}
	return nil
}

// topicsToDescribe are the names of the topics that --topic or --topic-id means.
func topicsToDescribe(ctx context.Context, t *call, client *admin.Client) ([]string, error) {
	const zero = "AAAAAAAAAAAAAAAAAAAAAA"
	if !t.has("topic-id") || t.value("topic-id") == zero {
		names, err := matchingTopics(ctx, t, client)
		if err == nil {
			err = mustExist(t, names)
		}
		return names, err
	}
	topics, err := client.Topics(ctx)
	if err != nil {
		return nil, err
	}
	for _, topic := range topics {
		if admin.TopicID(topic.ID) == t.value("topic-id") {
			return []string{topic.Name}, nil
		}
	}
	if t.has("if-exists") {
		return nil, nil
	}
	return nil, sentence("TopicId '" + t.value("topic-id") + "' does not exist as expected")
}

// reassignment is a partition that is being moved.
type reassignment struct{ adding, removing []int32 }

func reassignments(ctx context.Context, client *admin.Client, topics []admin.Topic) (map[admin.TopicPartition]reassignment, error) {
	moving := map[admin.TopicPartition]reassignment{}
	request := kmsg.NewPtrListPartitionReassignmentsRequest()
	for _, topic := range topics {
		one := kmsg.NewListPartitionReassignmentsRequestTopic()
		one.Topic = topic.Name
		for _, p := range topic.Partitions {
			one.Partitions = append(one.Partitions, p.Number)
		}
		request.Topics = append(request.Topics, one)
	}
	response, err := request.RequestWith(ctx, client.Kafka())
	if err != nil {
		// Not every broker can move partitions; then none is moving.
		return moving, nil
	}
	for _, topic := range response.Topics {
		for _, p := range topic.Partitions {
			moving[admin.TopicPartition{Topic: topic.Topic, Partition: p.Partition}] = reassignment{p.AddingReplicas, p.RemovingReplicas}
		}
	}
	return moving, nil
}

// reports are the flags that restrict a description to partitions in some state.
func reports(t *call) bool {
	return t.count("under-replicated-partitions", "unavailable-partitions", "under-min-isr-partitions", "at-min-isr-partitions") > 0
}

// printTopic prints a topic's line and those of its partitions, as far as the flags ask for them. Properties are those
// that somebody has set, for the topic or for all brokers: a default is not listed.
func printTopic(t *call, topic admin.Topic, resource admin.Resource, moving map[admin.TopicPartition]reassignment) {
	var configs []string
	minimum := 1
	for _, e := range resource.Entries {
		if e.Source != kmsg.ConfigSourceDefaultConfig {
			configs = append(configs, e.Name+"="+e.Text())
		}
		if e.Name == "min.insync.replicas" {
			minimum, _ = strconv.Atoi(e.Text())
		}
	}
	if !reports(t) && (!t.has("topics-with-overrides") || len(configs) > 0) {
		first := topic.Partitions[0]
		factor := replicationFactor(first, moving[admin.TopicPartition{Topic: topic.Name, Partition: first.Number}])
		t.printf("Topic: %s\tTopicId: %s\tPartitionCount: %d\tReplicationFactor: %d\tConfigs: %s\n",
			topic.Name, admin.TopicID(topic.ID), len(topic.Partitions), factor, strings.Join(configs, ","))
	}
	if t.has("topics-with-overrides") {
		return
	}
	for _, p := range topic.Partitions {
		move, ok := moving[admin.TopicPartition{Topic: topic.Name, Partition: p.Number}]
		if !reports(t) || reported(t, p, minimum, replicationFactor(p, move)) {
			printPartition(t, topic.Name, p, move, ok)
		}
	}
}

// replicationFactor does not count replicas that are still being added.
func replicationFactor(p admin.Partition, move reassignment) int {
	factor := len(p.Replicas)
	for _, id := range move.adding {
		if slices.Contains(p.Replicas, id) {
			factor--
		}
	}
	return factor
}

// reported tells whether a partition is in one of the states that were asked for.
func reported(t *call, p admin.Partition, minimum, factor int) bool {
	leaderless := p.Leader < 0
	return t.has("under-replicated-partitions") && factor > len(p.ISR) ||
		t.has("unavailable-partitions") && leaderless ||
		t.has("under-min-isr-partitions") && (leaderless || len(p.ISR) < minimum) ||
		t.has("at-min-isr-partitions") && len(p.ISR) == minimum
}

// printPartition prints the line of a partition. "Elr: N/A" is said where the broker does not know of eligible leader
// replicas, an empty list where there are none.
func printPartition(t *call, topic string, p admin.Partition, move reassignment, moving bool) {
	leader := "none"
	if p.Leader >= 0 {
		leader = strconv.Itoa(int(p.Leader))
	}
	t.printf("\tTopic: %s\tPartition: %d\tLeader: %s\tReplicas: "+
		"%s\tIsr: %s", topic, p.Number, leader, joined(p.Replicas, ","), joined(p.ISR, ","))
	if moving {
		t.printf("\tAdding Replicas: %s\tRemoving Replicas: %s", joined(move.adding, ","), joined(move.removing, ","))
	}
	t.printf("\tElr: %s\tLastKnownElr: %s\n", knownReplicas(p.Eligible), knownReplicas(p.LastEligible))
}

// knownReplicas tells replicas that the broker may not tell.
func knownReplicas(ids []int32) string {
	if ids == nil {
		return "N/A"
	}
	return joined(ids, ",")
}
