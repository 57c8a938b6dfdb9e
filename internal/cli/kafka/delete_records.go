package kafka

import (
	"context"
	"encoding/json"
	"os"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// deleteRecordsTool is kafka-delete-records. It reads
//
//	{"version": 1, "partitions": [{"topic": "foo", "partition": 1, "offset": 10}]}
//
// where the offset is the first one that stays, and -1 stands for the high watermark. A line for each partition:
//
//	partition: foo-1\tlow_watermark: 10
//	partition: foo-2\terror: org.apache.kafka.common.errors.OffsetOutOfRangeException: ...
//
// The status is 0 whatever the lines say; 1 where the file or the command line is wrong.
func deleteRecordsTool() *tool {
	return &tool{
		name:    "kafka-delete-records",
		summary: "This tool helps to delete records of the given partitions down to the specified offset.",
		flags: []flag{
			bootstrapFlag(),
			{names: []string{"offset-json-file"}, argument: "file", doc: `offsets, as {"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], "version": 1}`},
			commandConfigFlag(),
		},
		run: runDeleteRecords,
	}
}

// runDeleteRecords deletes what the file says, all partitions in one request to each leader.
func runDeleteRecords(ctx context.Context, t *call) error {
	if err := t.require("bootstrap-server", "offset-json-file"); err != nil {
		return err
	}
	raw, err := os.ReadFile(t.value("offset-json-file"))
	if err != nil {
		return err
	}
	offsets, err := parseDeletions(raw)
	if err != nil {
		return err
	}
	client, err := t.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	t.printf("Executing records delete operation\n")
	results, err := client.DeleteRecords(ctx, offsets)
	if err != nil {
		return err
	}
	t.printf("Records delete operation completed:\n")
	for _, r := range results {
		if r.Err != nil {
			t.printf("partition: %s\terror: %s\n", partitionName(r.TopicPartition), javaError(r.Err))
			continue
		}
		t.printf("partition: %s\tlow_watermark: %d\n", partitionName(r.TopicPartition), r.Offset)
	}
	return nil
}

// parseDeletions reads the tool's file.
func parseDeletions(raw []byte) ([]admin.PartitionOffset, error) {
	var file struct {
		Version    *int `json:"version"`
		Partitions []struct {
			Topic     string `json:"topic"`
			Partition int32  `json:"partition"`
			Offset    int64  `json:"offset"`
		} `json:"partitions"`
	}
	if json.Unmarshal(raw, &file) != nil {
		return nil, sentence("The input string is not a valid JSON")
	}
	if file.Version != nil && *file.Version != 1 {
		return nil, sentencef("Not supported version field value %d", *file.Version)
	}
	if file.Partitions == nil {
		return nil, sentence("Missing partitions field")
	}
	seen := map[admin.TopicPartition]bool{}
	var offsets []admin.PartitionOffset
	var twice []string
	for _, p := range file.Partitions {
		at := admin.TopicPartition{Topic: p.Topic, Partition: p.Partition}
		if seen[at] {
			twice = append(twice, partitionName(at))
		}
		seen[at] = true
		offsets = append(offsets, admin.PartitionOffset{TopicPartition: at, Offset: p.Offset})
	}
	if len(twice) > 0 {
		return nil, sentencef("Offset json file contains duplicate topic partitions: %s", strings.Join(twice, ","))
	}
	return offsets, nil
}
