package kafka

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// describeConsumerGroups shows groups one after another, in the order of their names.
func describeConsumerGroups(ctx context.Context, t *call, client *admin.Client) error {
	names, err := chosenGroups(ctx, t, client)
	if err != nil || len(names) == 0 {
		return err
	}
	groups, err := client.DescribeGroups(ctx, slices.Compact(slices.Sorted(slices.Values(names)))...)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if g.Err != nil {
			return g.Err
		}
	}
	for _, g := range groups {
		switch {
		case t.has("members"):
			t.printMembers(g)
		case t.has("state"):
			t.printState(g)
		default:
			lags, err := client.Lag(ctx, g)
			if err != nil {
				return err
			}
			t.printLags(g, lags)
		}
	}
	return nil
}

// shows tells what is special about a group's state, and whether there is more to print of it.
func (t *call) shows(g admin.Group, rows int) bool {
	switch g.State {
	case "Dead":
		t.printf("\nError: Consumer group '%s' does not exist.\n", g.Name)
	case "Empty":
		fmt.Fprintf(t.Err, "\nConsumer group '%s' has no active members.\n", g.Name)
	case "Stable":
	default:
		fmt.Fprintf(t.Err, "\nWarning: Consumer group '%s' is rebalancing.\n", g.Name)
	}
	return g.State != "Dead" && rows > 0
}

// lagRow is one partition of a group in the words of the table.
type lagRow struct {
	lag                  admin.Lag
	member, host, client string
}

// lagRows are the partitions of the members, of those that have most first, then those of nobody.
func lagRows(g admin.Group, lags []admin.Lag) []lagRow {
	members := slices.Clone(g.Members)
	slices.SortStableFunc(members, func(a, b admin.Member) int { return cmp.Compare(len(b.Assigned), len(a.Assigned)) })
	var rows []lagRow
	for _, m := range members {
		for _, l := range lags {
			if l.Member != nil && l.Member.ID == m.ID {
				rows = append(rows, lagRow{l, m.ID, m.Host, m.ClientID})
			}
		}
	}
	for _, l := range lags {
		if l.Member == nil {
			rows = append(rows, lagRow{l, "-", "-", "-"})
		}
	}
	return rows
}

// known is a number, or a dash for the -1 that stands for none.
func known(n int64) string {
	if n < 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

// printLags prints the partitions of a group, where it is in each and how far behind. A dash stands for what there is
// not: nothing committed, no member that reads the partition, or an end that its leader does not tell.
//
//	GROUP TOPIC PARTITION [LEADER-EPOCH] CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID
func (t *call) printLags(g admin.Group, lags []admin.Lag) {
	rows := lagRows(g, lags)
	if !t.shows(g, len(rows)) {
		return
	}
	group, topic, member, host := max(15, len(g.Name)), 15, 15, 15
	for _, r := range rows {
		topic, member, host = max(topic, len(r.lag.Topic)), max(member, len(r.member)), max(host, len(r.host))
	}
	line := func(name, topicName, partition, epoch, current, end, lag, id, address, client string) {
		t.printf("\n%-*s %-*s %-10s ", group, name, topic, topicName, partition)
		if t.has("verbose") {
			t.printf("%-15s ", epoch)
		}
		t.printf("%-15s %-15s %-15s %-*s %-*s %s", current, end, lag, member, id, host, address, client)
	}
	line("GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID")
	for _, r := range rows {
		behind := "-"
		if r.lag.Committed >= 0 && r.lag.End >= 0 {
			behind = strconv.FormatInt(r.lag.End-r.lag.Committed, 10)
		}
		line(g.Name, r.lag.Topic, strconv.Itoa(int(r.lag.Partition)), known(int64(r.lag.LeaderEpoch)), known(r.lag.Committed),
			known(r.lag.End), behind, r.member, r.host, r.client)
	}
	t.printf("\n")
}

// assignmentText is what a member has: topic:0,1;other:2.
func assignmentText(partitions []admin.TopicPartition) string {
	if len(partitions) == 0 {
		return "-"
	}
	var topics []string
	for i, at := range partitions {
		if i > 0 && partitions[i-1].Topic == at.Topic {
			topics[len(topics)-1] += "," + strconv.Itoa(int(at.Partition))
			continue
		}
		topics = append(topics, at.Topic+":"+strconv.Itoa(int(at.Partition)))
	}
	return strings.Join(topics, ";")
}

// memberWidths are the widths of the columns of members.
type memberWidths struct{ group, member, instance, host, client, current, target int }

// printMembers prints the members of a group, with --verbose also what each has and, in groups of KIP-848, will have.
// A static member (KIP-345) adds a column to the table.
//
//	GROUP CONSUMER-ID [GROUP-INSTANCE-ID] HOST CLIENT-ID #PARTITIONS
//	      [CURRENT-EPOCH CURRENT-ASSIGNMENT TARGET-EPOCH TARGET-ASSIGNMENT]
func (t *call) printMembers(g admin.Group) {
	w := memberWidths{15, 15, 17, 15, 15, 20, 20}
	static := false
	if t.shows(g, len(g.Members)) {
		for _, m := range g.Members {
			w.group, w.member, w.host, w.client = max(w.group, len(g.Name)), max(w.member, len(m.ID)), max(w.host, len(m.Host)), max(w.client, len(m.ClientID))
			w.current, w.target = max(w.current, len(assignmentText(m.Assigned))), max(w.target, len(assignmentText(m.Target)))
			if m.InstanceID != nil {
				static = true
				w.instance = max(w.instance, len(*m.InstanceID))
			}
		}
	}
	line := func(group, member, instance, host, client, partitions, epoch, current, targetEpoch, target string) {
		t.printf("%-*s %-*s ", w.group, group, w.member, member)
		if static {
			t.printf("%-*s ", w.instance, instance)
		}
		t.printf("%-*s %-*s %-15s ", w.host, host, w.client, client, partitions)
		if t.has("verbose") {
			t.printf("%-15s %-*s %-15s %-*s", epoch, w.current, current, targetEpoch, w.target, target)
		}
		t.printf("\n")
	}
	t.printf("\n")
	line("GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS",
		"CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT")
	for _, m := range g.Members {
		instance := ""
		if m.InstanceID != nil {
			instance = *m.InstanceID
		}
		line(g.Name, m.ID, instance, m.Host, m.ClientID, strconv.Itoa(len(m.Assigned)), known(int64(m.Epoch)),
			assignmentText(m.Assigned), known(int64(g.AssignmentEpoch)), assignmentText(m.Target))
	}
}

func (t *call) printState(g admin.Group) {
	if !t.shows(g, 1) {
		return
	}
	coordinator := fmt.Sprintf("%s:%d  (%d)", g.Coordinator.Host, g.Coordinator.Port, g.Coordinator.ID)
	group, width := max(15, len(g.Name)), max(25, len(coordinator))
	line := func(name, coordinator, strategy, state, epoch, target, members string) {
		t.printf("\n%-*s %-*s %-20s %-20s ", group, name, width, coordinator, strategy, state)
		if t.has("verbose") {
			t.printf("%-15s %-25s ", epoch, target)
		}
		t.printf("%s", members)
	}
	line("GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS")
	strategy := g.Assignor
	if strategy == "" {
		strategy = "-"
	}
	line(g.Name, coordinator, strategy, g.State, known(int64(g.Epoch)), known(int64(g.AssignmentEpoch)), strconv.Itoa(len(g.Members)))
	t.printf("\n")
}
