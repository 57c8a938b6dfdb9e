package broker_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/zookeeper/zktest"
)

// treeNode is one node of a tree, with its JSON decoded and what differs from run to run replaced.
type treeNode struct {
	Version   int32
	Ephemeral bool
	Data      any
}

// The tree that one broker leaves is that of a broker of Kafka 3.9.2 with the same topics and settings, node by
// node: paths, data versions, JSON. (testdata/zk-3.9/tree.jsonl was dumped from ZooKeeper under the real one.)
func sameTree(t *testing.T, zk *zktest.Server, chroot string) {
	r := onZooKeeper(t, zk, chroot, "broker.id", "1", "offsets.topic.num.partitions", "4", "log.retention.ms", "-1",
		"group.max.session.timeout.ms", "1800000", "auto.create.topics.enable", "false").start()
	c := r.dial()
	c.create("Dots.and_under-scores", 3)
	c.create("append-time-gzip", 1, "compression.type", "gzip", "message.timestamp.type", "LogAppendTime")
	c.create("recompressed-zstd", 1, "compression.type", "zstd")
	c.create("empty", 2)
	c.create("to-delete", 1)
	tree := observe(t, zk, chroot)
	remove := kmsg.NewPtrDeleteTopicsRequest()
	remove.Version, remove.TopicNames, remove.TimeoutMillis = 5, []string{"to-delete"}, 30_000
	if code := ask[*kmsg.DeleteTopicsResponse](c, remove).Topics[0].ErrorCode; code != 0 {
		t.Fatalf("deletion: %d", code)
	}
	producer := kmsg.NewPtrInitProducerIDRequest()
	producer.Version, producer.ProducerID, producer.ProducerEpoch = 4, -1, -1
	if code := ask[*kmsg.InitProducerIDResponse](c, producer).ErrorCode; code != 0 {
		t.Fatalf("producer id: %d", code)
	}
	awaitThat(t, "a coordinator", func() bool {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.Version, find.CoordinatorKey = 2, "group"
		return ask[*kmsg.FindCoordinatorResponse](c, find).ErrorCode == 0
	})
	awaitThat(t, "the end of the deletion", func() bool {
		names, _, err := tree.Children(t.Context(), "/admin/delete_topics")
		return err == nil && len(names) == 0
	})
	ours := readTree(t, tree)
	ours["/brokers/ids"] = treeNode{} // counts registrations; Kafka reads the names of the children only
	if diff := cmp.Diff(goldenTree(t), ours); diff != "" {
		t.Errorf("the tree differs (-Kafka +ours):\n%s", diff)
	}
}

// goldenTree is the real one.
func goldenTree(t *testing.T) map[string]treeNode {
	f, err := os.Open("testdata/zk-3.9/tree.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	nodes := map[string]treeNode{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var n struct {
			Path      string  `json:"path"`
			Version   int32   `json:"version"`
			Ephemeral bool    `json:"ephemeral"`
			Data      *string `json:"data"`
		}
		if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
			t.Fatal(err)
		}
		node := treeNode{Version: n.Version, Ephemeral: n.Ephemeral}
		if n.Data != nil {
			node.Data = decoded(t, n.Path, []byte(*n.Data))
		}
		nodes[n.Path] = node
	}
	return nodes
}

// readTree reads all there is.
func readTree(t *testing.T, s coordination.Session) map[string]treeNode {
	nodes := map[string]treeNode{}
	for todo := []string{"/"}; len(todo) > 0; todo = todo[1:] {
		path := todo[0]
		data, stat, err := s.Get(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		node := treeNode{Version: stat.Version, Ephemeral: stat.EphemeralOwner != 0}
		if data != nil {
			node.Data = decoded(t, path, data)
		}
		nodes[path] = node
		names, _, err := s.Children(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			todo = append(todo, coordination.Join(path, name))
		}
	}
	return nodes
}

// decoded decodes JSON, and puts a word in the place of what no two runs have in common. Keys that Kafka does
// not know are named barnabas_…, and left out.
func decoded(t *testing.T, path string, data []byte) any {
	data = regexp.MustCompile(`("topic_id":|"id":|"timestamp":)"[^"]*"`).ReplaceAll(data, []byte(`${1}"…"`))
	data = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`).ReplaceAll(data, []byte("127.0.0.1:…"))
	data = regexp.MustCompile(`"port":[0-9]+`).ReplaceAll(data, []byte(`"port":1`))
	var value any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%s holds %q: %v", path, data, err)
	}
	if object, ok := value.(map[string]any); ok {
		for key := range object {
			if strings.HasPrefix(key, "barnabas_") {
				delete(object, key)
			}
		}
	}
	return value
}
