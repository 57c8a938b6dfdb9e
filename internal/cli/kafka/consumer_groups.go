package kafka

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// consumerGroupsTool is kafka-consumer-groups. Actions, one a call:
//
//	--list            a group a line; with --state or --type a table
//	--describe        for each group a table of offsets (the default), --members, or --state
//	--reset-offsets   what would be set, or with --execute is; --export prints it as CSV for --from-file
//	--delete-offsets  forgets what a group has committed for topics that nobody in it reads
//	--delete          deletes groups without members
//	--validate-regex  checks an expression by the rules of RE2, which brokers subscribe with (KIP-848)
//
// A table begins with an empty line, and its columns are 15 wide or as wide as their longest cell. Errors are told on
// standard output and the status is 0: the tool has always done so, and scripts compare the text.
func consumerGroupsTool() *tool {
	return &tool{
		name:    "kafka-consumer-groups",
		summary: "This tool helps to list, describe, delete and manage the offsets of consumer groups.",
		flags:   consumerGroupsFlags(),
		run:     runConsumerGroups,
		fail:    failConsumerGroups,
	}
}

// resetScenarios are the flags that say where offsets are set to.
var resetScenarios = [...]string{"to-offset", "shift-by", "to-datetime", "by-duration", "to-earliest", "to-latest", "to-current", "from-file"}

func consumerGroupsFlags() []flag {
	return []flag{
		bootstrapFlag(),
		{names: []string{"group"}, argument: "group", many: true, doc: "the group; may be repeated"},
		{names: []string{"topic"}, argument: "topic", many: true, doc: "the topic, or some of its partitions as " +
			"topic:0,1; may be repeated"},
		{names: []string{"all-topics"}, doc: "all topics of the group"},
		{names: []string{"list"}, doc: "list the groups"},
		{names: []string{"describe"}, doc: "show groups with their lag"},
		{names: []string{"all-groups"}, doc: "all groups"},
		{names: []string{"delete"}, doc: "delete groups"},
		{names: []string{"timeout"}, argument: "ms", kind: long, fallback: "30000", doc: "how long to wait for an answer"},
		commandConfigFlag(),
		{names: []string{"reset-offsets"}, doc: "set offsets of groups"},
		{names: []string{"delete-offsets"}, doc: "forget offsets of a group"},
		{names: []string{"dry-run"}, doc: "only show what --reset-offsets would do"},
		{names: []string{"execute"}, doc: "do what --reset-offsets shows"},
		{names: []string{"export"}, doc: "print what --reset-offsets shows as CSV"},
		{names: []string{"to-offset"}, argument: "offset", kind: long, doc: "to this offset"},
		{names: []string{"from-file"}, argument: "file", doc: "to the offsets of a CSV file"},
		{names: []string{"to-datetime"}, argument: "time", doc: "to a time, as YYYY-MM-DDThh:mm:ss.sss"},
		{names: []string{"by-duration"}, argument: "duration", doc: "to so long ago, as PnDTnHnMnS"},
		{names: []string{"to-earliest"}, doc: "to the first record"},
		{names: []string{"to-latest"}, doc: "behind the last record"},
		{names: []string{"to-current"}, doc: "to where the group is"},
		{names: []string{"shift-by"}, argument: "number", kind: long, doc: "by so many offsets, negative for back"},
		{names: []string{"members"}, with: []string{"describe"}, doc: "describe the members"},
		{names: []string{"verbose"}, with: []string{"describe"}, doc: "describe more"},
		{names: []string{"offsets"}, with: []string{"describe"}, doc: "describe the offsets, as without it"},
		{names: []string{"state"}, argument: "states", optional: true, with: []string{"describe", "list"}, doc: "describe or list the state, or list groups in some states"},
		{names: []string{"type"}, argument: "types", optional: true, with: []string{"list"}, doc: "list the type, or " +
			"groups of some types"},
		{names: []string{"validate-regex"}, argument: "regex", doc: "check a regular expression"},
	}
}

// failConsumerGroups tells an error on standard output and, as the tool does, ends with status 0.
func failConsumerGroups(t *call, err error) int {
	if told(err) {
		return t.failPlainly(err)
	}
	var unreachable *admin.UnreachableError
	if errors.As(err, &unreachable) {
		fmt.Fprintln(t.Err, err)
		return 1
	}
	t.printf("\nError: Executing consumer group command failed due to %s\n", javaError(err))
	return 0
}

func runConsumerGroups(ctx context.Context, t *call) error {
	actions := []string{"list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex"}
	if err := checkConsumerGroups(t); err != nil {
		return err
	}
	if t.count(actions...) != 1 {
		return usagef("Command must include exactly one action: --%s", strings.Join(actions, ", --"))
	}
	if t.has("validate-regex") {
		return t.validateRegex()
	}
	client, err := t.dialWithin(time.Duration(t.number("timeout")) * time.Millisecond)
	if err != nil {
		return err
	}
	defer client.Close()
	switch {
	case t.has("list"):
		return listConsumerGroups(ctx, t, client)
	case t.has("describe"):
		return describeConsumerGroups(ctx, t, client)
	case t.has("delete"):
		return deleteConsumerGroups(ctx, t, client)
	case t.has("reset-offsets"):
		return resetConsumerGroups(ctx, t, client)
	}
	return deleteGroupOffsets(ctx, t, client)
}

// checkConsumerGroups refuses flags that do not go together.
func checkConsumerGroups(t *call) error {
	if !t.has("validate-regex") {
		if err := t.require("bootstrap-server"); err != nil {
			return err
		}
	}
	scoped := t.count("group", "all-groups") > 0
	switch {
	case t.has("describe") && !scoped:
		return usagef("Option [describe] takes one of these options: [group], [all-groups]")
	case t.has("describe") && t.count("members", "offsets", "state") > 1:
		return usagef("Option [describe] takes at most one of these options: [members], [offsets], [state]")
	case t.has("describe") && len(t.all("state")) > 0:
		return usagef("Option [describe] does not take a value for [state]")
	case t.has("delete") && !scoped:
		return usagef("Option [delete] takes one of these options: [group], [all-groups]")
	case t.has("delete") && t.has("topic"):
		return usagef("The consumer does not support topic-specific offset deletion from a consumer group.")
	case t.has("delete-offsets") && t.count("group", "topic") != 2:
		return usagef("Option [delete-offsets] takes the following options: [group], [topic]")
	}
	if t.has("reset-offsets") {
		if err := checkReset(t, scoped); err != nil {
			return err
		}
	}
	if err := t.exclude("group", "all-groups", "list"); err != nil {
		return err
	}
	return t.exclude("topic", "list", "describe")
}

// checkReset refuses a reset without a group, and one to two places at once. Without --execute it is a dry run.
func checkReset(t *call, scoped bool) error {
	switch {
	case t.has("dry-run") && t.has("execute"):
		return usagef("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
	case t.count("dry-run", "execute") == 0:
		fmt.Fprintln(t.Err, "WARN: nothing will be done without --execute")
	}
	if !scoped {
		return usagef("Option [reset-offsets] takes one of these options: [group], [all-groups]")
	}
	for i, scenario := range resetScenarios {
		if err := t.exclude(scenario, resetScenarios[i+1:]...); err != nil {
			return err
		}
	}
	return nil
}

// validateRegex tells whether a regular expression is one that a consumer may subscribe with. It needs no broker.
func (t *call) validateRegex() error {
	pattern := t.value("validate-regex")
	_, err := regexp.Compile(pattern)
	var bad *syntax.Error
	if errors.As(err, &bad) {
		t.printf("The regular expression `%s` is invalid: %s.\n", pattern, bad.Code)
		return nil
	}
	t.printf("The regular expression `%s` is valid.\n", pattern)
	return nil
}

// The states and types that groups of consumers can have, in lower case, with Java's spelling.
var (
	groupStates = [...]string{"PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling"}
	groupTypes  = [...]string{"Classic", "Consumer"}
)

// chosenWords are the words of a list that a flag has, in the right spelling.
func chosenWords(what, given string, valid []string) ([]string, error) {
	if given == "" {
		return nil, nil
	}
	var chosen []string
	for _, word := range strings.Split(given, ",") {
		i := slices.IndexFunc(valid, func(v string) bool {
			return strings.EqualFold(strings.ReplaceAll(v, "_", ""), strings.ReplaceAll(strings.TrimSpace(word), "_", ""))
		})
		if i < 0 {
			return nil, usagef("Invalid %s list '%s'. Valid "+
				"%ss are: %s", what, given, strings.TrimSuffix(what, "s"), strings.Join(valid, ", "))
		}
		chosen = append(chosen, valid[i])
	}
	return chosen, nil
}

// consumerGroupNames lists the groups of consumers: those of the consumer protocol, and the classic ones
// of consumers or of plain offsets.
func consumerGroupNames(ctx context.Context, client *admin.Client, filter admin.GroupFilter) ([]admin.GroupListing, error) {
	groups, err := client.Groups(ctx, filter)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(groups, func(g admin.GroupListing) bool {
		kind := strings.ToLower(g.Type)
		return kind != "consumer" && (kind != "classic" && kind != "" || g.ProtocolType != "consumer" && g.ProtocolType != "")
	}), nil
}

// listConsumerGroups lists groups by name, or in a table where states or types are asked for. Filters go to the broker
// (KIP-518 states, KIP-848 types), so that it need not send what nobody wants to see.
func listConsumerGroups(ctx context.Context, t *call, client *admin.Client) error {
	states, err := chosenWords("state", t.value("state"), groupStates[:])
	if err != nil {
		return err
	}
	types, err := chosenWords("types", t.value("type"), groupTypes[:])
	if err != nil {
		return err
	}
	groups, err := consumerGroupNames(ctx, client, admin.GroupFilter{States: states, Types: types})
	if err != nil {
		return err
	}
	if t.count("state", "type") == 0 {
		for _, g := range groups {
			t.printf("%s\n", g.Name)
		}
		return nil
	}
	width := 15
	for _, g := range groups {
		width = max(width, len(g.Name))
	}
	t.printGroupInfo(width+10, "GROUP", "TYPE", "STATE")
	for _, g := range groups {
		t.printGroupInfo(width+10, g.Name, capitalized(g.Type), g.State)
	}
	return nil
}

// printGroupInfo prints a row with the columns that were asked for.
func (t *call) printGroupInfo(width int, group, kind, state string) {
	t.printf("%-*s", width, group)
	if t.has("type") {
		t.printf(" %-20s", kind)
	}
	if t.has("state") {
		t.printf(" %-20s", state)
	}
	t.printf("\n")
}

// chosenGroups are the groups of --group, or all of --all-groups.
func chosenGroups(ctx context.Context, t *call, client *admin.Client) ([]string, error) {
	if !t.has("all-groups") {
		return t.all("group"), nil
	}
	groups, err := consumerGroupNames(ctx, client, admin.GroupFilter{})
	var names []string
	for _, g := range groups {
		names = append(names, g.Name)
	}
	return names, err
}

// deleteConsumerGroups deletes groups and tells of all of them in one sentence, or which failed and why.
func deleteConsumerGroups(ctx context.Context, t *call, client *admin.Client) error {
	names, err := chosenGroups(ctx, t, client)
	if err != nil {
		return err
	}
	results, err := client.DeleteGroups(ctx, names)
	if err != nil {
		return err
	}
	var deleted, failed []string
	for _, r := range results {
		if r.Err != nil {
			failed = append(failed, fmt.Sprintf("* Group '%s' could not be deleted due to: %s", r.Name, javaError(r.Err)))
			continue
		}
		deleted = append(deleted, "'"+r.Name+"'")
	}
	if len(failed) == 0 {
		t.printf("Deletion of requested consumer groups (%s) was successful.\n", strings.Join(deleted, ", "))
		return nil
	}
	t.printf("\nError: Deletion of some consumer groups failed:\n%s\n", strings.Join(failed, "\n"))
	if len(deleted) > 0 {
		t.printf("\nThese consumer groups were deleted successfully: %s\n", strings.Join(deleted, ", "))
	}
	return nil
}
