package adopt_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// goldenModes are the directories that real brokers wrote; package logdir keeps them.
var goldenModes = map[string]string{"3.9.2": "3.9.2-zk", "4.4.0": "4.4.0-kraft"}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// golden is one directory that Apache Kafka wrote, on disk, with what its own broker read from it.
type golden struct {
	version string
	root    string // data is below it
	texts   map[string][]byte
}

func (g golden) data() string { return filepath.Join(g.root, "data") }

// unpackGolden unpacks one state of one version.
func unpackGolden(t testing.TB, version, state string) golden {
	t.Helper()
	packed, err := os.ReadFile("../logdir/testdata/golden/" + version + ".tar.gz")
	must(t, err)
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	must(t, err)
	g := golden{version: version, root: t.TempDir(), texts: map[string][]byte{}}
	prefix := goldenModes[version] + "/" + state + "/"
	for r := tar.NewReader(unzipped); ; {
		header, err := r.Next()
		if err == io.EOF {
			return g
		}
		must(t, err)
		name, ok := strings.CutPrefix(header.Name, prefix)
		if !ok {
			continue
		}
		content, err := io.ReadAll(r)
		must(t, err)
		path := filepath.Join(g.root, name)
		switch {
		case header.Typeflag == tar.TypeDir:
			must(t, os.MkdirAll(path, 0o755))
		case strings.HasPrefix(name, "data/"):
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must(t, os.WriteFile(path, content, 0o644))
		default:
			g.texts[filepath.Base(name)] = content
		}
	}
}

// tree writes the dump of the 3.9 cluster's tree to a file.
func (g golden) tree(t testing.TB) string {
	t.Helper()
	path := filepath.Join(g.root, "tree.jsonl")
	must(t, os.WriteFile(path, treeDump(t), 0o644))
	return path
}

func treeDump(t testing.TB) []byte {
	t.Helper()
	packed, err := os.ReadFile("testdata/3.9.2-tree.jsonl.gz")
	must(t, err)
	r, err := gzip.NewReader(bytes.NewReader(packed))
	must(t, err)
	text, err := io.ReadAll(r)
	must(t, err)
	return text
}

// partition names a partition in the golden files.
type partition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

// consumed is a record as the golden files describe what a Java consumer got.
type consumed struct {
	partition
	Offset        int64       `json:"offset"`
	Timestamp     int64       `json:"timestamp"`
	TimestampType string      `json:"timestampType"`
	LeaderEpoch   *int32      `json:"leaderEpoch"`
	Key           *string     `json:"key"`
	Value         *string     `json:"value"`
	ValueLength   int         `json:"valueLength"`
	ValueSHA256   string      `json:"valueSha256"`
	Headers       [][]*string `json:"headers"`
}

// expected reads one of the golden files, by partition.
func (g golden) expected(t testing.TB, name string) map[partition][]consumed {
	t.Helper()
	all := map[partition][]consumed{}
	for line := range bytes.Lines(g.texts[name]) {
		var c consumed
		must(t, json.Unmarshal(line, &c))
		all[c.partition] = append(all[c.partition], c)
	}
	if len(all) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return all
}

// bounds are the offsets of a partition.
type bounds struct{ Start, HighWatermark, LastStable int64 }

func (g golden) bounds(t testing.TB) map[partition]bounds {
	t.Helper()
	all := map[partition]bounds{}
	for line := range bytes.Lines(g.texts["offsets.jsonl"]) {
		var c struct {
			partition
			bounds
		}
		must(t, json.Unmarshal(line, &c))
		all[c.partition] = c.bounds
	}
	return all
}

// committed are the committed offsets of the groups.
func (g golden) committed(t testing.TB) map[string]map[partition]committed {
	t.Helper()
	text, err := os.ReadFile("testdata/" + g.version + "-groups.jsonl")
	must(t, err)
	all := map[string]map[partition]committed{}
	for line := range bytes.Lines(text) {
		var group struct {
			Group   string `json:"group"`
			Offsets []struct {
				partition
				committed
			} `json:"offsets"`
		}
		must(t, json.Unmarshal(line, &group))
		all[group.Group] = map[partition]committed{}
		for _, o := range group.Offsets {
			if o.LeaderEpoch == nil {
				none := int32(-1)
				o.LeaderEpoch = &none
			}
			all[group.Group][o.partition] = o.committed
		}
	}
	return all
}

// committed is one committed offset.
type committed struct {
	Offset      int64  `json:"offset"`
	LeaderEpoch *int32 `json:"leaderEpoch"`
	Metadata    string `json:"metadata"`
}

// describe is a record in the form of the golden files.
func describe(r *kgo.Record) consumed {
	c := consumed{
		partition: partition{r.Topic, r.Partition}, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), TimestampType: "CreateTime",
		LeaderEpoch: &r.LeaderEpoch, Key: encoded(r.Key), Headers: [][]*string{},
	}
	if r.Attrs.TimestampType() == 1 {
		c.TimestampType = "LogAppendTime"
	}
	if len(r.Value) > 512 {
		sum := sha256.Sum256(r.Value)
		c.ValueLength, c.ValueSHA256 = len(r.Value), hex.EncodeToString(sum[:])
	} else {
		c.Value = encoded(r.Value)
	}
	for _, h := range r.Headers {
		c.Headers = append(c.Headers, []*string{&h.Key, encoded(h.Value)})
	}
	return c
}

func encoded(b []byte) *string {
	if b == nil {
		return nil
	}
	text := base64.StdEncoding.EncodeToString(b)
	return &text
}

// contents are the checksums of all files in a directory, by path, of folders the empty string.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			sums[path] = ""
			return err
		}
		content, err := os.ReadFile(path)
		sum := sha256.Sum256(content)
		sums[path] = hex.EncodeToString(sum[:])
		return err
	}))
	return sums
}
