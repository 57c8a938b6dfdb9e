package kafka

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// resetter finds the offsets that --reset-offsets sets for one group.
//
//	--to-offset, --shift-by                 held between the partition's start and end
//	--to-earliest, --to-latest              ListOffsets
//	--to-datetime, --by-duration            ListOffsets by time; behind the last record the end
//	--to-current                            where the group is, else the end
//	--from-file                             what the file says, held as above
//
// Nothing is committed for a group before all of its targets are known.
type resetter struct {
	*call
	client     *admin.Client
	group      string
	partitions []admin.TopicPartition
	committed  admin.Positions
}

func newResetter(ctx context.Context, t *call, client *admin.Client, group string) (*resetter, error) {
	r := &resetter{call: t, client: client, group: group, committed: admin.Positions{}}
	if t.count(resetScenarios[:]...) == 0 {
		return nil, usagef("Option '[reset-offsets]' requires one of the following "+
			"scenarios: [%s]", strings.Join(resetScenarios[:], "], ["))
	}
	committed, err := client.Committed(ctx, group)
	if err != nil {
		return nil, err
	}
	for _, o := range committed {
		r.committed[o.TopicPartition] = o.Offset
	}
	switch {
	case t.has("all-topics"):
		for _, o := range committed {
			r.partitions = append(r.partitions, o.TopicPartition)
		}
	case t.has("topic"):
		for _, given := range t.all("topic") {
			some, err := partitionsOf(ctx, client, given)
			if admin.CodeName(err) != "" {
				return nil, sentence(admin.Message(err))
			} else if err != nil {
				return nil, err
			}
			r.partitions = append(r.partitions, some...)
		}
	case !t.has("from-file"):
		return nil, usagef("One of the reset scopes should be defined: --all-topics, --topic.")
	}
	return r, r.mustExist(ctx)
}

// partitionsOf are the partitions of topic, or those of topic:0,1.
func partitionsOf(ctx context.Context, client *admin.Client, given string) ([]admin.TopicPartition, error) {
	topic, list, some := strings.Cut(given, ":")
	var partitions []admin.TopicPartition
	if some {
		if strings.Contains(list, ":") || list == "" || topic == "" {
			return nil, usagef("Invalid topic arg '%s', expected topic name and partitions", given)
		}
		for _, text := range strings.Split(list, ",") {
			n, err := strconv.ParseInt(text, 10, 32)
			if err != nil {
				return nil, usagef("Invalid partition '%s' specified in topic arg '%s''", text, given)
			}
			partitions = append(partitions, admin.TopicPartition{Topic: topic, Partition: int32(n)})
		}
		return partitions, nil
	}
	topics, err := client.Topics(ctx, topic)
	if err != nil {
		return nil, err
	}
	return admin.PartitionsOf(topics), topics[0].Err
}

// mustExist refuses partitions that do not exist or have no leader.
func (r *resetter) mustExist(ctx context.Context) error {
	var names []string
	for _, at := range r.partitions {
		if !slices.Contains(names, at.Topic) {
			names = append(names, at.Topic)
		}
	}
	if len(names) == 0 {
		return nil
	}
	topics, err := r.client.Topics(ctx, names...)
	if err != nil {
		return err
	}
	leaders := map[admin.TopicPartition]int32{}
	for _, t := range topics {
		for _, p := range t.Partitions {
			leaders[admin.TopicPartition{Topic: t.Name, Partition: p.Number}] = p.Leader
		}
	}
	var missing, leaderless []string
	for _, at := range r.partitions {
		leader, ok := leaders[at]
		switch {
		case !ok:
			missing = append(missing, partitionName(at))
		case leader < 0:
			leaderless = append(leaderless, partitionName(at))
		}
	}
	switch {
	case len(missing) > 0:
		return sentencef("The partitions \"%s\" do not exist", strings.Join(missing, ","))
	case len(leaderless) > 0:
		return sentencef("The partitions \"%s\" have no leader", strings.Join(leaderless, ","))
	}
	return nil
}

// offsets are the new offsets.
func (r *resetter) offsets(ctx context.Context) (admin.Positions, error) {
	switch {
	case r.has("from-file"):
		return r.fromFile(ctx)
	case len(r.partitions) == 0:
		return nil, nil
	case r.has("to-offset"):
		return r.inRange(ctx, r.everywhere(r.number("to-offset")))
	case r.has("to-earliest"):
		return r.at(ctx, admin.AtStart)
	case r.has("to-latest"):
		return r.at(ctx, admin.AtEnd)
	case r.has("shift-by"):
		return r.shifted(ctx)
	case r.has("to-current"):
		return r.current(ctx)
	case r.has("to-datetime"):
		t, err := parseDateTime(r.value("to-datetime"))
		if err != nil {
			return nil, err
		}
		return r.atTime(ctx, t)
	}
	ago, err := parseISODuration(r.value("by-duration"))
	if err != nil {
		return nil, err
	}
	return r.atTime(ctx, time.Now().Add(-ago))
}

func (r *resetter) everywhere(offset int64) admin.Positions {
	offsets := admin.Positions{}
	for _, at := range r.partitions {
		offsets[at] = offset
	}
	return offsets
}

// at are the offsets of a point.
func (r *resetter) at(ctx context.Context, point int64) (admin.Positions, error) {
	return offsetsAt(ctx, r.client, point, r.partitions)
}

func offsetsAt(ctx context.Context, client *admin.Client, point int64, partitions []admin.TopicPartition) (admin.Positions, error) {
	found, err := client.Offsets(ctx, point, partitions)
	if err != nil {
		return nil, err
	}
	offsets := admin.Positions{}
	for _, o := range found {
		if o.Err != nil {
			return nil, o.Err
		}
		offsets[o.TopicPartition] = o.Offset
	}
	return offsets, nil
}

// inRange moves offsets beyond a partition to its nearer bound, and says so.
func (r *resetter) inRange(ctx context.Context, wanted admin.Positions) (admin.Positions, error) {
	var partitions []admin.TopicPartition
	for at := range wanted {
		partitions = append(partitions, at)
	}
	start, err := offsetsAt(ctx, r.client, admin.AtStart, partitions)
	if err != nil {
		return nil, err
	}
	end, err := offsetsAt(ctx, r.client, admin.AtEnd, partitions)
	if err != nil {
		return nil, err
	}
	for at, offset := range wanted {
		held := min(max(offset, start[at]), end[at])
		if held != offset {
			fmt.Fprintf(r.Err, "New offset (%d) is outside of partition %s: it will be "+
				"set to %d.\n", offset, partitionName(at), held)
		}
		wanted[at] = held
	}
	return wanted, nil
}

func (r *resetter) shifted(ctx context.Context) (admin.Positions, error) {
	wanted := admin.Positions{}
	for _, at := range r.partitions {
		offset, ok := r.committed[at]
		if !ok {
			return nil, usagef("Cannot shift offset for partition %s since there is no current committed offset", partitionName(at))
		}
		wanted[at] = offset + r.number("shift-by")
	}
	return r.inRange(ctx, wanted)
}

// current are the committed offsets, and the end where there is none.
func (r *resetter) current(ctx context.Context) (admin.Positions, error) {
	end, err := r.at(ctx, admin.AtEnd)
	if err != nil {
		return nil, err
	}
	for at := range end {
		if offset, ok := r.committed[at]; ok {
			end[at] = offset
		}
	}
	return end, nil
}

// atTime are the first records of a time or later, and the end where there is none.
func (r *resetter) atTime(ctx context.Context, t time.Time) (admin.Positions, error) {
	offsets, err := r.at(ctx, t.UnixMilli())
	if err != nil {
		return nil, err
	}
	end, err := r.at(ctx, admin.AtEnd)
	if err != nil {
		return nil, err
	}
	for _, at := range r.partitions {
		if offsets[at] < 0 {
			r.printf("\nWarn: Partition %d from topic %s is empty. Falling back to latest known offset.\n", at.Partition, at.Topic)
			offsets[at] = end[at]
		}
	}
	return offsets, nil
}

// fromFile are the offsets of the group in a file that --export wrote.
func (r *resetter) fromFile(ctx context.Context) (admin.Positions, error) {
	file, err := os.Open(r.value("from-file"))
	if err != nil {
		return nil, sentencef("java.io.IOException: Unable to read file %s", r.value("from-file"))
	}
	defer file.Close()
	reader := csv.NewReader(file)
	reader.FieldsPerRecord = -1
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, err
	}
	wanted := admin.Positions{}
	for _, row := range rows {
		group, at, offset, err := parsePlanRow(row, r.group)
		if err != nil {
			return nil, err
		}
		if group == r.group {
			wanted[at] = offset
		}
	}
	if len(wanted) == 0 {
		r.printf("\nError: No reset plan for group %s found.\n", r.group)
		return nil, nil
	}
	return r.inRange(ctx, wanted)
}

// parsePlanRow reads topic,partition,offset, or the same behind a group.
func parsePlanRow(row []string, group string) (string, admin.TopicPartition, int64, error) {
	var at admin.TopicPartition
	if len(row) == 4 {
		group, row = row[0], row[1:]
	}
	if len(row) != 3 {
		return "", at, 0, sentencef("A line of the file has %d fields: topic,partition,offset or "+
			"group,topic,partition,offset is wanted", len(row))
	}
	partition, err := strconv.ParseInt(strings.TrimSpace(row[1]), 10, 32)
	if err != nil {
		return "", at, 0, sentencef("'%s' is no partition", row[1])
	}
	offset, err := strconv.ParseInt(strings.TrimSpace(row[2]), 10, 64)
	if err != nil {
		return "", at, 0, sentencef("'%s' is no offset", row[2])
	}
	return group, admin.TopicPartition{Topic: row[0], Partition: int32(partition)}, offset, nil
}
