package kafka

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/logdir"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// storageTool is kafka-storage. Clusters of KRaft must be formatted before their first start; a broker here
// formats empty directories by itself, so that the tool is for scripts that do it anyway, and for ids that are
// known beforehand.
func storageTool() *tool { return &tool{name: "kafka-storage", bare: runStorage} }

const storageUsage = "usage: kafka-storage [-h] {info,format,version-mapping,feature-dependencies,random-uuid} ...\n"

// metadataVersion is the level of features that the tool of Kafka 4.4 formats with.
const metadataVersion = "4.4-IV2"

func storageFlags() []flag {
	return []flag{
		{names: []string{"config", "c"}, argument: "file", doc: "the broker's properties"},
		{names: []string{"cluster-id", "t"}, argument: "id", doc: "the cluster's id; $CLUSTER_ID where it is not given"},
		{names: []string{"ignore-formatted", "g"}, doc: "leave directories that are formatted"},
		{names: []string{"add-scram", "S"}, argument: "credential", many: true, doc: "not there yet"},
		{names: []string{"release-version", "r"}, argument: "version", doc: "taken, without effect here"},
		{names: []string{"feature", "f"}, argument: "feature=level", many: true, doc: "taken, without effect here"},
		{names: []string{"standalone", "s"}, doc: "taken, without effect here"},
		{names: []string{"no-initial-controllers", "N"}, doc: "taken, without effect here"},
		{names: []string{"initial-controllers", "I"}, argument: "controllers", doc: "taken, without effect here"},
	}
}

// runStorage takes a command and its flags, as kafka-cluster does.
func runStorage(_ context.Context, t *call, given []string) int {
	if len(given) > 0 && (given[0] == "-h" || given[0] == "--help") {
		t.printf("%s", storageUsage)
		return 0
	}
	status, err := storageCommand(t, given)
	var usage usageError
	switch {
	case err == nil:
		return status
	case errors.As(err, &usage):
		fmt.Fprintf(t.Err, "%skafka-storage: error: %s\n", storageUsage, usage.message)
	default:
		fmt.Fprintln(t.Err, err)
	}
	return 1
}

// storageCommand runs one of the tool's commands:
//
//	random-uuid      a new id in Kafka's base64, as for --cluster-id
//	info             which directories there are, whose they are, and what is wrong with them; status 1 where anything is
//	format           writes meta.properties into directories that have none; a broker here does the same by itself
//	version-mapping  the feature levels of the version of Kafka that we are like
func storageCommand(t *call, given []string) (status int, err error) {
	if len(given) == 0 {
		return 0, usageError{"too few arguments"}
	}
	if t.arguments, err = parse(storageFlags(), given[1:]); err != nil {
		return 0, err
	}
	switch given[0] {
	case "random-uuid":
		t.printf("%s\n", protocol.NewTopicID())
		return 0, nil
	case "version-mapping":
		t.printf("metadata.version=33 "+
			"(%s)\nkraft.version=1\ntransaction.version=2\ngroup.version=1\neligible.leader.replicas.version=1\nshare.version=2\nstreams.version=1\n", metadataVersion)
		return 0, nil
	case "info", "format":
	default:
		return 0, usagef("argument command: invalid choice: '%s' (choose from 'info', 'format', 'version-mapping', "+
			"'feature-dependencies', 'random-uuid')", given[0])
	}
	if !t.has("config") {
		return 0, usageError{"argument --config/-c is required"}
	}
	broker, _, err := config.Load(config.LoadOptions{File: t.value("config")})
	if err != nil {
		return 0, err
	}
	dirs := append(slices.Clone(broker.LogDirs()), broker.MetadataLogDir())
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	if given[0] == "info" {
		return t.storageInfo(dirs), nil
	}
	return 0, t.format(broker, dirs)
}

// storageInfo tells what the directories are, and 1 where something is wrong with them.
func (t *call) storageInfo(dirs []string) int {
	var found, problems []string
	var first *logdir.Identity
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			problems = append(problems, dir+" does not exist")
			continue
		case err != nil:
			problems = append(problems, err.Error())
			continue
		case !info.IsDir():
			problems = append(problems, dir+" is not a directory")
			continue
		}
		found = append(found, dir)
		id, err := logdir.ReadIdentity(vfs.OS(), dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			problems = append(problems, dir+" is not formatted.")
		case err != nil:
			problems = append(problems, fmt.Sprintf("Error loading %s: %v", filepath.Join(dir, "meta.properties"), err))
		case first == nil:
			first = &id
		case id.Cluster != first.Cluster:
			problems = append(problems, "Mismatched cluster IDs between storage directories.")
		case id.Node != first.Node:
			problems = append(problems, "Mismatched node IDs between storage directories.")
		}
	}
	t.printSection("Found log director", "y:", "ies:", found)
	if first != nil {
		t.printf("Found metadata: %s\n\n", identityText(*first))
	}
	t.printSection("Found problem", ":", "s:", problems)
	if len(problems) > 0 {
		return 1
	}
	return 0
}

// printSection lists lines under a heading, and nothing where there are none.
func (t *call) printSection(heading, one, several string, lines []string) {
	if len(lines) == 0 {
		return
	}
	if len(lines) == 1 {
		several = one
	}
	t.printf("%s%s\n", heading, several)
	for _, line := range lines {
		t.printf("  %s\n", line)
	}
	t.printf("\n")
}

// identityText is an identity as Java prints its sorted properties.
func identityText(id logdir.Identity) string {
	parts := []string{"cluster.id=" + id.Cluster}
	node := "node.id"
	if id.Version == 0 {
		node = "broker.id"
		parts = slices.Insert(parts, 0, fmt.Sprintf("broker.id=%d", id.Node))
	}
	if !id.Directory.IsZero() {
		parts = append(parts, "directory.id="+id.Directory.String())
	}
	if node == "node.id" {
		parts = append(parts, fmt.Sprintf("node.id=%d", id.Node))
	}
	return "{" + strings.Join(append(parts, fmt.Sprintf("version=%d", id.Version)), ", ") + "}"
}

// format writes meta.properties into the directories that have none.
func (t *call) format(broker *config.Broker, dirs []string) error {
	cluster := t.value("cluster-id")
	if cluster == "" {
		cluster = os.Getenv("CLUSTER_ID")
	}
	if cluster == "" {
		return usageError{"argument --cluster-id/-t is required"}
	}
	if t.has("add-scram") {
		return sentence("SCRAM credentials are not there yet")
	}
	var empty []string
	for _, dir := range dirs {
		id, err := logdir.ReadIdentity(vfs.OS(), dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			empty = append(empty, dir)
		case err != nil:
			return err
		case id.Cluster != "" && id.Cluster != cluster:
			return sentencef("Invalid cluster.id in: %s. Expected %s, "+
				"but read %s", filepath.Join(dir, "meta.properties"), cluster, id.Cluster)
		case !t.has("ignore-formatted"):
			return sentencef("Log directory %s is already formatted. Use --ignore-formatted to ignore this directory "+
				"and format the others.", dir)
		}
	}
	if len(empty) == 0 {
		t.printf("All of the log directories are already formatted.\n")
		return nil
	}
	// Kafka's tool also tells what it writes into the metadata log. There is none here: the built-in store
	// makes its files when the broker first starts.
	for _, dir := range empty {
		kind := "data"
		if dir == broker.MetadataLogDir() {
			kind = "metadata"
		}
		t.printf("Formatting %s directory %s with metadata.version %s.\n", kind, dir, metadataVersion)
		if err := formatDirectory(dir, broker.BrokerID(), cluster); err != nil {
			return err
		}
	}
	return nil
}

func formatDirectory(dir string, broker protocol.BrokerID, cluster string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	id := logdir.Identity{Version: 1, Node: broker, Cluster: cluster, Directory: protocol.NewTopicID()}
	return logdir.WriteIdentity(vfs.OS(), dir, id, time.Now())
}
