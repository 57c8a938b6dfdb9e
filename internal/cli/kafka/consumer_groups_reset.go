package kafka

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// newOffset is where a group is to be in a partition.
type newOffset struct {
	admin.TopicPartition
	group  string
	offset int64
}

func resetConsumerGroups(ctx context.Context, t *call, client *admin.Client) error {
	names, err := chosenGroups(ctx, t, client)
	if err != nil {
		return err
	}
	groups, err := client.DescribeGroups(ctx, names...)
	if err != nil {
		return err
	}
	var plan []newOffset
	for _, g := range groups {
		offsets, err := resetGroup(ctx, t, client, g)
		if err != nil {
			return err
		}
		plan = append(plan, offsets...)
	}
	slices.SortFunc(plan, func(a, b newOffset) int { return cmp.Or(cmp.Compare(a.group, b.group), a.Compare(b.TopicPartition)) })
	if t.has("export") {
		t.exportOffsets(plan, len(t.all("group")) == 1)
		return nil
	}
	t.printPlan(plan, len(groups) > 0)
	return nil
}

// resetGroup finds the offsets of one group and, with --execute, sets them.
//
// A group with members is told and passed over, and the others are reset: with --all-groups one that lives must
// not keep the rest from it.
func resetGroup(ctx context.Context, t *call, client *admin.Client, g admin.Group) ([]newOffset, error) {
	missing := admin.CodeName(g.Err) == "GROUP_ID_NOT_FOUND"
	if g.Err != nil && !missing {
		return nil, g.Err
	}
	if !missing && g.State != "Empty" && g.State != "Dead" {
		t.printf("\nError: Assignments can only be reset if the group '%s' is inactive, but the current "+
			"state is %s.\n", g.Name, g.State)
		return nil, nil
	}
	r, err := newResetter(ctx, t, client, g.Name)
	if err != nil {
		return nil, err
	}
	offsets, err := r.offsets(ctx)
	if err != nil {
		return nil, err
	}
	plan := make([]newOffset, 0, len(offsets))
	for at, offset := range offsets {
		plan = append(plan, newOffset{at, g.Name, offset})
	}
	if !t.has("execute") || len(offsets) == 0 {
		return plan, nil
	}
	results, err := client.Commit(ctx, g.Name, offsets)
	if err != nil {
		return nil, err
	}
	for _, result := range results {
		if result.Err != nil {
			return nil, result.Err
		}
	}
	return plan, nil
}

func (t *call) printPlan(plan []newOffset, heading bool) {
	group, topic := 15, 15
	for _, o := range plan {
		group, topic = max(group, len(o.group)), max(topic, len(o.Topic))
	}
	if heading {
		t.printf("\n%-*s %-*s %-10s %s", group, "GROUP", topic, "TOPIC", "PARTITION", "NEW-OFFSET")
	}
	for _, o := range plan {
		t.printf("\n%-*s %-*s %-10d %d", group, o.group, topic, o.Topic, o.Partition, o.offset)
	}
	t.printf("\n")
}

// exportOffsets prints a plan as CSV, without the group where there is only one.
//
//	topic,partition,offset             of one group
//	group,topic,partition,offset       of several
//
// It is what --from-file reads.
func (t *call) exportOffsets(plan []newOffset, single bool) {
	var b strings.Builder
	for _, o := range plan {
		if !single {
			b.WriteString(csvField(o.group) + ",")
		}
		fmt.Fprintf(&b, "%s,%d,%d\n", csvField(o.Topic), o.Partition, o.offset)
	}
	t.printf("%s\n", b.String())
}

// csvField quotes a text where the tool's writer does: for what is not plainly safe, and for long texts.
func csvField(text string) string {
	const longest, firstSafe = 24, '-'
	if len(text) <= longest && !strings.ContainsFunc(text, func(r rune) bool { return r < firstSafe }) {
		return text
	}
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}

func deleteGroupOffsets(ctx context.Context, t *call, client *admin.Client) error {
	group := t.value("group")
	statuses := map[admin.TopicPartition]error{}
	var partitions []admin.TopicPartition
	for _, given := range t.all("topic") {
		some, err := partitionsOf(ctx, client, given)
		if err != nil {
			statuses[admin.TopicPartition{Topic: given, Partition: -1}] = err
			continue
		}
		partitions = append(partitions, some...)
	}
	results, err := client.DeleteOffsets(ctx, group, partitions)
	partial := false
	for _, r := range results {
		statuses[r.TopicPartition] = r.Err
		partial = partial || r.Err != nil
	}
	for _, at := range partitions {
		if err != nil {
			statuses[at] = err
		}
	}
	switch {
	case err != nil:
		t.printf("\nError: %s\n", admin.Message(err))
	case partial:
		t.printf("\nError: Encountered some partition-level error, see the follow-up details.\n")
	default:
		t.printf("Request succeeded for deleting offsets from group %s.\n", group)
	}
	t.printStatuses(statuses)
	return nil
}

func (t *call) printStatuses(statuses map[admin.TopicPartition]error) {
	width := 15
	var partitions []admin.TopicPartition
	for at := range statuses {
		width = max(width, len(at.Topic))
		partitions = append(partitions, at)
	}
	slices.SortFunc(partitions, admin.TopicPartition.Compare)
	t.printf("\n%-*s %-10s %-15s", width, "TOPIC", "PARTITION", "STATUS")
	for _, at := range partitions {
		status := "Successful"
		if err := statuses[at]; err != nil {
			status = "Error: " + javaError(err)
		}
		t.printf("\n%-*s %-10s %-15s", width, at.Topic, known(int64(at.Partition)), status)
	}
	t.printf("\n")
}
