package kafka

import (
	"context"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// groupsTool is kafka-groups (KIP-1043), which lists groups of all types in one table: GROUP, TYPE, PROTOCOL. All three
// columns are as wide as the longest cell of any of them. --consumer means what a consumer reads with: groups of
// KIP-848, and classic ones whose protocol is a consumer's or that only hold offsets.
func groupsTool() *tool {
	return &tool{
		name:    "kafka-groups",
		summary: "This tool helps to list groups of all types.",
		flags: []flag{
			{names: []string{"bootstrap-server"}, argument: "host:port", required: true, doc: "the broker to begin " +
				"with, or several with commas"},
			commandConfigFlag(),
			{names: []string{"list"}, doc: "list the groups"},
			{names: []string{"group-type"}, argument: "type", doc: "only groups of this type: classic, consumer, share or streams"},
			{names: []string{"protocol"}, argument: "protocol", doc: "only groups of this protocol"},
			{names: []string{"consumer"}, doc: "only consumer groups of every kind"},
			{names: []string{"share"}, doc: "only share groups"},
			{names: []string{"streams"}, doc: "only streams groups"},
		},
		run: runGroups,
		fail: func(t *call, err error) int {
			if told(err) {
				return t.failPlainly(err)
			}
			t.printf("Error while executing groups command : %s\n", admin.Message(err))
			return 1
		},
	}
}

// runGroups lists the groups that pass the flags.
func runGroups(ctx context.Context, t *call) error {
	if !t.has("list") {
		return usagef("Command must include exactly one action: --list.")
	}
	if t.has("group-type") && !slices.Contains([]string{"classic", "consumer", "share", "streams"}, strings.ToLower(t.value("group-type"))) {
		return usageError{"--group-type must be a valid group type."}
	}
	for _, rule := range [][]string{
		{"consumer", "group-type", "protocol", "share", "streams"}, {"share", "group-type", "protocol", "streams"},
		{"streams", "group-type", "protocol"},
	} {
		if err := t.exclude(rule[0], rule[1:]...); err != nil {
			return err
		}
	}
	client, err := t.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	groups, err := client.Groups(ctx, admin.GroupFilter{})
	if err != nil {
		return err
	}
	t.printGroups(slices.DeleteFunc(groups, func(g admin.GroupListing) bool { return !t.listsGroup(g) }))
	return nil
}

// listsGroup reports whether a group passes the flags.
//
// A group of an old protocol type is a consumer's where the type says "consumer" or nothing at all: groups that
// only keep offsets never named one.
func (t *call) listsGroup(g admin.GroupListing) bool {
	kind := strings.ToLower(g.Type)
	switch {
	case t.has("group-type"):
		return kind == strings.ToLower(t.value("group-type")) && (!t.has("protocol") || g.ProtocolType == t.value("protocol"))
	case t.has("protocol"):
		return g.ProtocolType == t.value("protocol")
	case t.has("consumer"):
		return g.ProtocolType == "consumer" || g.ProtocolType == "" || kind == "consumer"
	case t.has("share"):
		return kind == "share"
	case t.has("streams"):
		return kind == "streams"
	}
	return true
}

// printGroups prints a table whose columns are all as wide as the longest cell.
func (t *call) printGroups(groups []admin.GroupListing) {
	width := 20
	for _, g := range groups {
		width = max(width, len(g.Name), len(g.Type), len(g.ProtocolType))
	}
	t.printf("%-*s %-*s %-*s\n", width, "GROUP", width, "TYPE", width, "PROTOCOL")
	for _, g := range groups {
		t.printf("%-*s %-*s %-*s \n", width, g.Name, width, capitalized(g.Type), width, g.ProtocolType)
	}
}

// capitalized is a group's type as Java prints it: Classic.
func capitalized(word string) string {
	if word == "" {
		return ""
	}
	return strings.ToUpper(word[:1]) + strings.ToLower(word[1:])
}
