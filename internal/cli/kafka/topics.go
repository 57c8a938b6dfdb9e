package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/admin"
	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// topicsTool is kafka-topics. One action a call, and what each prints (\t is a tab):
//
//	--create    [a warning, where the name has a period or an underscore: in Kafka's metric names both become "_"]
//	            Created topic NAME.
//	--list      a name a line, sorted as text
//	--describe  Topic: NAME\tTopicId: ID\tPartitionCount: N\tReplicationFactor: N\tConfigs: k=v,k=v
//	            \tTopic: NAME\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: \tLastKnownElr:
//	--alter     nothing
//	--delete    nothing
//
// Errors go to standard output, which scripts have learned to search, and the status is 1. A name is a regular
// expression, but for --create; without a match and without --if-exists that is an error, too.
func topicsTool() *tool {
	return &tool{
		name:    "kafka-topics",
		summary: "This tool helps to create, delete, describe, or change a topic.",
		flags:   topicsFlags(),
		run:     runTopics,
		fail:    failTopics,
	}
}

func topicsFlags() []flag {
	return []flag{
		bootstrapFlag(),
		commandConfigFlag(),
		{names: []string{"list"}, doc: "list the topics"},
		{names: []string{"create"}, doc: "create a topic"},
		{names: []string{"delete"}, doc: "delete topics"},
		{names: []string{"alter"}, doc: "change the number of partitions"},
		{names: []string{"describe"}, doc: "show topics with their partitions"},
		{names: []string{"topic"}, argument: "topic", doc: "the topic; a regular expression except with --create"},
		{names: []string{"topic-id"}, argument: "id", doc: "the id of the topic to describe"},
		{names: []string{"config"}, argument: "name=value", many: true, doc: "a property of a new topic"},
		{names: []string{"delete-config"}, argument: "name", many: true, doc: "has no effect any more"},
		{names: []string{"partitions"}, argument: "number", kind: integer, doc: "how many partitions in all"},
		{names: []string{"replication-factor"}, argument: "number", kind: integer, doc: "how many replicas"},
		{names: []string{"replica-assignment"}, argument: "1:2,2:3", doc: "the brokers of each partition's replicas"},
		{names: []string{"under-replicated-partitions"}, doc: "describe only partitions with too few in-sync replicas"},
		{names: []string{"unavailable-partitions"}, doc: "describe only partitions without a leader"},
		{names: []string{"under-min-isr-partitions"}, doc: "describe only partitions below min.insync.replicas"},
		{names: []string{"at-min-isr-partitions"}, doc: "describe only partitions at min.insync.replicas"},
		{names: []string{"topics-with-overrides"}, doc: "describe only topics with properties of their own"},
		{names: []string{"if-exists"}, doc: "do nothing where there is no such topic"},
		{names: []string{"if-not-exists"}, doc: "succeed where the topic exists"},
		{names: []string{"exclude-internal"}, doc: "leave out internal topics"},
		{names: []string{"partition-size-limit-per-response"}, argument: "number", kind: integer, doc: "partitions in one answer"},
	}
}

// failTopics tells an error on standard output, as the tool does once the command line is right.
func failTopics(t *call, err error) int {
	if told(err) {
		return t.failPlainly(err)
	}
	var bad badArgument
	if errors.As(err, &bad) {
		fmt.Fprintln(t.Err, bad.message)
		return 1
	}
	t.printf("Error while executing topic command : %s\n", admin.Message(err))
	return 1
}

// badArgument is an error that is told without the flags that there are.
type badArgument struct{ message string }

// Error is the line that is told.
func (e badArgument) Error() string { return e.message }

// topicActions are the flags of which one must be given.
var topicActions = [...]string{"create", "list", "alter", "describe", "delete"}

func runTopics(ctx context.Context, t *call) error {
	if err := checkTopics(t); err != nil {
		return err
	}
	client, err := t.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	switch {
	case t.has("create"):
		return createTopic(ctx, t, client)
	case t.has("alter"):
		return alterTopics(ctx, t, client)
	case t.has("list"):
		return listTopics(ctx, t, client)
	case t.has("describe"):
		return describeTopics(ctx, t, client)
	}
	return deleteTopics(ctx, t, client)
}

// checkTopics refuses flags that do not go together.
func checkTopics(t *call) error {
	if t.count(topicActions[:]...) != 1 {
		return usagef("Command must include exactly one action: --list, --describe, --create, --alter or --delete")
	}
	if t.has("delete-config") {
		fmt.Fprintln(t.Err, "--delete-config has no effect any more: kafka-configs changes the properties of topics")
	}
	if !t.has("bootstrap-server") {
		return badArgument{"--bootstrap-server must be specified"}
	}
	if !t.has("list") && !t.has("describe") {
		if err := t.require("topic"); err != nil {
			return err
		}
	}
	if t.has("describe") && t.has("if-exists") && t.count("topic", "topic-id") == 0 {
		return usagef("--topic or --topic-id is required to describe a topic")
	}
	if t.has("alter") {
		if t.has("config") {
			return usagef("Option combination \"[[bootstrap-server], [config]]\" can't be used with option \"[alter]\" " +
				"(To alter topic configurations, the kafka-configs tool can be used.)")
		}
		if err := t.require("partitions"); err != nil {
			return err
		}
	}
	return checkTopicPairs(t)
}

// checkTopicPairs refuses flags that belong to other actions.
//
// Each row is a flag with those that it must not stand beside. Kafka's tool refuses them in this order too, and
// the first that is found is the one that is told.
func checkTopicPairs(t *call) error {
	reports := []string{"under-replicated-partitions", "under-min-isr-partitions", "at-min-isr-partitions", "unavailable-partitions"}
	for _, rule := range []struct {
		flag   string
		others []string
	}{
		{"config", allBut("alter", "create")},
		{"partitions", allBut("alter", "create")},
		{"replication-factor", allBut("create")},
		{"replica-assignment", allBut("alter", "create")},
		{reports[0], append(allBut("describe"), "topics-with-overrides")},
		{reports[1], append(allBut("describe"), "topics-with-overrides")},
		{reports[2], append(allBut("describe"), "topics-with-overrides")},
		{reports[3], append(allBut("describe"), "topics-with-overrides")},
		{"topics-with-overrides", append(allBut("describe"), reports...)},
		{"if-exists", allBut("alter", "delete", "describe")},
		{"if-not-exists", allBut("create")},
		{"exclude-internal", allBut("list", "describe")},
	} {
		if err := t.exclude(rule.flag, rule.others...); err != nil {
			return err
		}
	}
	if t.has("create") {
		return t.exclude("replica-assignment", "partitions", "replication-factor")
	}
	return nil
}

// allBut are the actions but for some.
func allBut(some ...string) []string {
	var others []string
	for _, action := range topicActions {
		if !contains(some, action) {
			others = append(others, action)
		}
	}
	return others
}

func contains(list []string, one string) bool {
	for _, s := range list {
		if s == one {
			return true
		}
	}
	return false
}

func createTopic(ctx context.Context, t *call, client *admin.Client) error {
	topic, err := newTopic(t)
	if err != nil {
		return err
	}
	if strings.ContainsAny(topic.Name, "._") {
		t.printf("WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could " +
			"collide. To avoid issues it is best to use either, but not both.\n")
	}
	if t.has("replication-factor") && (t.number("replication-factor") < 1 || t.number("replication-factor") > 32767) {
		return sentence("The replication factor must be between 1 and 32767 inclusive")
	}
	if t.has("partitions") && topic.Partitions < 1 {
		return sentence("The partitions must be greater than 0")
	}
	created, err := client.CreateTopics(ctx, []admin.NewTopic{topic}, false)
	if err != nil {
		return err
	}
	switch err := created[0].Err; {
	case err == nil:
		t.printf("Created topic %s.\n", topic.Name)
	case !t.has("if-not-exists") || admin.CodeName(err) != "TOPIC_ALREADY_EXISTS":
		return err
	}
	return nil
}

// newTopic is the topic that the flags describe.
func newTopic(t *call) (admin.NewTopic, error) {
	topic := admin.NewTopic{Name: t.value("topic"), Partitions: -1, ReplicationFactor: -1, Configs: map[string]string{}}
	if t.has("partitions") {
		topic.Partitions = int32(t.number("partitions"))
	}
	if t.has("replication-factor") {
		topic.ReplicationFactor = int16(t.number("replication-factor"))
	}
	for _, pair := range t.all("config") {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || strings.TrimSpace(value) == "" || strings.Contains(value, "=") {
			return topic, sentence("requirement failed: Invalid topic config: all configs to be added must be in the " +
				"format \"key=val\".")
		}
		topic.Configs[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	var refused *protocol.Error
	if err := config.Default().ValidateTopic(topic.Configs); errors.As(err, &refused) {
		return topic, sentence(refused.Message)
	} else if err != nil {
		return topic, err
	}
	var err error
	topic.Assignment, err = parseAssignment(t.value("replica-assignment"))
	return topic, err
}

// parseAssignment reads 1:2,2:3.
//
//	--replica-assignment 1:2,2:3     partition 0 on brokers 1 and 2, partition 1 on 2 and 3; the first is preferred
func parseAssignment(given string) ([][]int32, error) {
	if given == "" {
		return nil, nil
	}
	var all [][]int32
	for i, one := range strings.Split(given, ",") {
		var replicas []int32
		seen := map[string]bool{}
		for _, id := range strings.Split(one, ":") {
			id = strings.TrimSpace(id)
			n, err := strconv.ParseInt(id, 10, 32)
			if err != nil {
				return nil, sentencef("For input string: \"%s\"", id)
			}
			if seen[id] {
				return nil, sentencef("Partition replica lists may not contain duplicate entries: %s", id)
			}
			seen[id] = true
			replicas = append(replicas, int32(n))
		}
		if i > 0 && len(replicas) != len(all[0]) {
			return nil, sentencef("Partition %d has different replication factor: [%s]", i, joined(replicas, ", "))
		}
		all = append(all, replicas)
	}
	return all, nil
}

// joined are numbers in one text.
func joined(numbers []int32, separator string) string {
	var b strings.Builder
	for i, n := range numbers {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(strconv.Itoa(int(n)))
	}
	return b.String()
}
