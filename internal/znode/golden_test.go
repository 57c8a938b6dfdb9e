package znode

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/google/go-cmp/cmp"
)

// goldenNode is one line of a dumped tree.
type goldenNode struct {
	Path      string  `json:"path"`
	Data      *string `json:"data"`
	Version   int32   `json:"version"`
	Ephemeral bool    `json:"ephemeral"`
}

func goldenTrees(t *testing.T) map[string][]goldenNode {
	t.Helper()
	files, err := filepath.Glob("testdata/tree-*.jsonl")
	if err != nil || len(files) < 5 {
		t.Fatalf("golden trees: %v, %v", files, err)
	}
	trees := map[string][]goldenNode{}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var n goldenNode
			if err := json.Unmarshal(lines.Bytes(), &n); err != nil {
				t.Fatal(err)
			}
			trees[file] = append(trees[file], n)
		}
	}
	return trees
}

var (
	brokerPath = regexp.MustCompile(`^/brokers/ids/(\d+)$`)
	topicPath  = regexp.MustCompile(`^/brokers/topics/([^/]+)$`)
	statePath  = regexp.MustCompile(`^/brokers/topics/([^/]+)/partitions/(\d+)/state$`)
	changePath = regexp.MustCompile(`^/config/changes/config_change_\d{10}$`)
	configPath = regexp.MustCompile(`^/config/(.+/.+)$`)
)

// again decodes a golden znode and encodes what came out; nil where this package does not know the path.
func again(t *testing.T, n goldenNode) []byte {
	t.Helper()
	data := []byte(*n.Data)
	must := func(err error) {
		if err != nil {
			t.Errorf("%s: %v", n.Path, err)
		}
	}
	if m := brokerPath.FindStringSubmatch(n.Path); m != nil {
		id, err := ParseBrokerName(m[1])
		must(err)
		r, err := DecodeRegistration(id, 7, data)
		must(err)
		if r.Epoch != 7 || BrokerPath(id) != n.Path || n.Version != 1 || !n.Ephemeral {
			t.Errorf("%s: %+v", n.Path, r)
		}
		return EncodeRegistration(r)
	}
	if m := topicPath.FindStringSubmatch(n.Path); m != nil {
		topic, err := DecodeTopic(m[1], data)
		must(err)
		return EncodeTopic(topic)
	}
	if m := statePath.FindStringSubmatch(n.Path); m != nil {
		p, err := strconv.Atoi(m[2])
		must(err)
		tp := P.TopicPartition{Topic: m[1], Partition: int32(p)}
		state, err := DecodeState(tp, data)
		must(err)
		if StatePath(tp) != n.Path {
			t.Errorf("%s != %s", StatePath(tp), n.Path)
		}
		return EncodeState(state)
	}
	if changePath.MatchString(n.Path) {
		entity, err := DecodeConfigChange(data)
		must(err)
		return EncodeConfigChange(entity)
	}
	if m := configPath.FindStringSubmatch(n.Path); m != nil {
		entity := metadata.Entity(m[1])
		values, err := DecodeConfig(entity, data)
		must(err)
		if EntityPath(entity) != n.Path {
			t.Errorf("%s != %s", EntityPath(entity), n.Path)
		}
		return EncodeConfig(values)
	}
	return againSingle(t, n.Path, data)
}

// againSingle is again for the znodes of which there is one.
func againSingle(t *testing.T, path string, data []byte) []byte {
	t.Helper()
	var encoded []byte
	var err error
	switch path {
	case ClusterIDPath:
		var id string
		id, err = DecodeClusterID(data)
		encoded = EncodeClusterID(id)
	case ControllerPath:
		var c Controller
		c, err = DecodeController(data)
		encoded = EncodeController(c)
	case ControllerEpochPath:
		var epoch P.ControllerEpoch
		epoch, err = DecodeControllerEpoch(data)
		encoded = EncodeControllerEpoch(epoch)
	case ProducerIDBlockPath:
		var b ProducerIDBlock
		b, err = DecodeProducerIDBlock(data)
		encoded = EncodeProducerIDBlock(b)
	case FeaturePath:
		encoded = EncodeFeature()
	}
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	return encoded
}

func TestGoldenTrees(t *testing.T) {
	for file, tree := range goldenTrees(t) {
		old := strings.Contains(file, "ibp")
		known := 0
		for _, n := range tree {
			if n.Data == nil || *n.Data == "" {
				continue
			}
			got := again(t, n)
			if got == nil {
				if !strings.HasPrefix(n.Path, "/delegation_token/") {
					t.Errorf("%s: %s is not known", file, n.Path)
				}
				continue
			}
			known++
			if old && (n.Path == FeaturePath || brokerPath.MatchString(n.Path)) {
				continue // older versions of the znode, which are read but never written
			}
			if diff := cmp.Diff(generic(t, []byte(*n.Data)), generic(t, got)); diff != "" {
				t.Errorf("%s: %s\n%s", file, n.Path, diff)
			}
			if !configPath.MatchString(n.Path) && !bytes.Equal(got, []byte(*n.Data)) {
				t.Errorf("%s: %s\n got %s\nwant %s", file, n.Path, got, *n.Data)
			}
		}
		if known < 20 {
			t.Errorf("%s: only %d znodes were recognised", file, known)
		}
	}
}

func generic(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Errorf("%s: %v", data, err)
	}
	return v
}

// Every broker makes the same permanent znodes.
func TestPermanentZnodesAreThoseOfKafka(t *testing.T) {
	there := map[string]bool{}
	for _, n := range goldenTrees(t)["testdata/tree-loaded.jsonl"] {
		there[n.Path] = true
	}
	seen := map[string]bool{"": true}
	for _, path := range Permanent() {
		if !there[path] {
			t.Errorf("Kafka does not make %s", path)
		}
		if parent := path[:strings.LastIndexByte(path, '/')]; !seen[parent] {
			t.Errorf("%s comes before its parent", path)
		}
		seen[path] = true
	}
}

func TestGoldenRegistrationOfAnOldBroker(t *testing.T) {
	for _, n := range goldenTrees(t)["testdata/tree-ibp-2.3.jsonl"] {
		if n.Path != "/brokers/ids/1" {
			continue
		}
		r, err := DecodeRegistration(1, 28, []byte(*n.Data))
		want := metadata.Broker{ID: 1, Epoch: 28, Endpoints: []metadata.Endpoint{
			{Listener: "PLAINTEXT", Host: "127.0.0.1", Port: 21411}, {Listener: "INTERNAL", Host: "127.0.0.1", Port: 21431},
		}}
		if diff := cmp.Diff(want, r.Broker); err != nil || diff != "" || r.Stopped != StopUnknown {
			t.Error(err, diff)
		}
		return
	}
	t.Error("no registration found")
}
