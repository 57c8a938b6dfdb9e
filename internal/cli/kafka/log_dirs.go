package kafka

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// logDirsTool is kafka-log-dirs, which prints two lines for people and one of JSON, which scripts take by its place:
//
//	Querying brokers for log directories information
//	Received log directory information from brokers 1,2
//	{"brokers":[{"broker":1,"logDirs":[{"partitions":[{"partition":"t-0","size":N,"offsetLag":N,"isFuture":false}],
//	"error":null,"logDir":"/data"}]}],"version":1}
//
// A replica that moves to another directory is there twice: where it is, and as the copy that catches up, with isFuture
// and with how many offsets it is behind (KIP-113).
func logDirsTool() *tool {
	return &tool{
		name:    "kafka-log-dirs",
		summary: "This tool helps to query log directory usage on the specified brokers.",
		flags: []flag{
			bootstrapFlag(),
			commandConfigFlag(),
			{names: []string{"describe"}, doc: "show the log directories"},
			{names: []string{"topic-list"}, argument: "topics", doc: "only these topics, with commas"},
			{names: []string{"broker-list"}, argument: "ids", doc: "only these brokers, with commas"},
		},
		run: runLogDirs,
	}
}

// The tool's JSON, with the fields in the order in which it prints them.
type (
	logDirsJSON struct {
		Brokers []logDirsBroker `json:"brokers"`
		Version int             `json:"version"`
	}
	logDirsBroker struct {
		Broker  int32        `json:"broker"`
		LogDirs []logDirJSON `json:"logDirs"`
	}
	logDirJSON struct {
		Partitions []logDirReplica `json:"partitions"`
		Error      *string         `json:"error"`
		LogDir     string          `json:"logDir"`
	}
	logDirReplica struct {
		Partition string `json:"partition"`
		Size      int64  `json:"size"`
		OffsetLag int64  `json:"offsetLag"`
		IsFuture  bool   `json:"isFuture"`
	}
)

// runLogDirs asks each broker for its directories, since no broker knows those of another.
func runLogDirs(ctx context.Context, t *call) error {
	if err := t.require("bootstrap-server", "describe"); err != nil {
		return err
	}
	client, err := t.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	cluster, err := client.Cluster(ctx)
	if err != nil {
		return err
	}
	brokers, err := chosenBrokers(t.value("broker-list"), cluster)
	if err != nil {
		return err
	}
	t.printf("Querying brokers for log directories information\n")
	dirs, err := client.LogDirs(ctx, brokers, nil)
	if err != nil {
		return err
	}
	t.printf("Received log directory information from brokers %s\n", joined(brokers, ","))
	line, err := json.Marshal(logDirsOf(brokers, dirs, listed(t.value("topic-list"))))
	if err != nil {
		return err
	}
	t.printf("%s\n", line)
	return nil
}

// listed are the words of a list with commas.
func listed(given string) []string {
	return slices.DeleteFunc(strings.Split(given, ","), func(s string) bool { return s == "" })
}

// chosenBrokers are the brokers of --broker-list, or all; those that do not exist are an error.
func chosenBrokers(given string, cluster admin.Cluster) ([]int32, error) {
	var all, chosen, missing []int32
	for _, b := range cluster.Brokers {
		all = append(all, b.ID)
	}
	for _, text := range listed(given) {
		id, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, sentencef("For input string: \"%s\"", text)
		}
		if !slices.Contains(all, int32(id)) {
			missing = append(missing, int32(id))
		}
		chosen = append(chosen, int32(id))
	}
	if len(missing) > 0 {
		return nil, sentencef("ERROR: The given brokers do not exist from --broker-list: %s. Current existent "+
			"brokers: %s", joined(missing, ","), joined(all, ","))
	}
	if len(chosen) == 0 {
		return all, nil
	}
	return chosen, nil
}

func logDirsOf(brokers []int32, dirs []admin.LogDir, topics []string) logDirsJSON {
	all := logDirsJSON{Version: 1, Brokers: []logDirsBroker{}}
	for _, id := range brokers {
		broker := logDirsBroker{Broker: id, LogDirs: []logDirJSON{}}
		for _, d := range dirs {
			if d.Broker == id {
				broker.LogDirs = append(broker.LogDirs, logDirOf(d, topics))
			}
		}
		all.Brokers = append(all.Brokers, broker)
	}
	return all
}

func logDirOf(d admin.LogDir, topics []string) logDirJSON {
	dir := logDirJSON{Partitions: []logDirReplica{}, LogDir: d.Path}
	if d.Err != nil {
		class := javaClass(admin.CodeName(d.Err))
		dir.Error = &class
	}
	for _, r := range d.Replicas {
		if len(topics) == 0 || slices.Contains(topics, r.Topic) {
			dir.Partitions = append(dir.Partitions, logDirReplica{partitionName(r.TopicPartition), r.Size, r.OffsetLag, r.Future})
		}
	}
	return dir
}
