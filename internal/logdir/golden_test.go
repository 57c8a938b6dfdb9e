package logdir

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/google/go-cmp/cmp"
)

// goldenTree is one directory that Apache Kafka wrote, with what its own broker read from it.
type goldenTree struct {
	files *vfs.Memory // data is at /data
	texts map[string][]byte
}

// unpack reads testdata/golden/VERSION.tar.gz, where paths are VERSION-mode/STATE/data/… and …/expected-*.
func unpack(t testing.TB, version, state string) goldenTree {
	t.Helper()
	packed, err := gzip.NewReader(bytes.NewReader(golden(t, "golden", version+".tar.gz")))
	must(t, err)
	tree := goldenTree{files: vfs.NewMemory(), texts: map[string][]byte{}}
	for r := tar.NewReader(packed); ; {
		header, err := r.Next()
		if err == io.EOF {
			return tree
		}
		must(t, err)
		parts := strings.SplitN(header.Name, "/", 3)
		if len(parts) < 3 || parts[1] != state {
			continue
		}
		data, err := io.ReadAll(r)
		must(t, err)
		switch path, isData := strings.CutPrefix(parts[2], "data/"); {
		case header.Typeflag == tar.TypeDir:
			must(t, tree.files.MkdirAll("/"+parts[2], 0o755))
		case isData:
			put(t, tree.files, "/data/"+path, string(data))
		default:
			tree.texts[filepath.Base(path)] = data
		}
	}
}

// consumed is a record as the golden files describe what a Java consumer got.
type consumed struct {
	Topic         string      `json:"topic"`
	Partition     int32       `json:"partition"`
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

func (c consumed) tp() protocol.TopicPartition { return partition(c.Topic, c.Partition) }

// expected reads one of the golden files, by partition.
func (g goldenTree) expected(t testing.TB, name string) map[protocol.TopicPartition][]consumed {
	t.Helper()
	all := map[protocol.TopicPartition][]consumed{}
	for line := range bytes.Lines(g.texts[name]) {
		var c consumed
		must(t, json.Unmarshal(line, &c))
		all[c.tp()] = append(all[c.tp()], c)
	}
	if len(all) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return all
}

// bounds reads offsets.jsonl.
func (g goldenTree) bounds(t testing.TB) map[protocol.TopicPartition][3]int64 {
	t.Helper()
	all := map[protocol.TopicPartition][3]int64{}
	for line := range bytes.Lines(g.texts["offsets.jsonl"]) {
		var c struct {
			consumed
			Start, HighWatermark, LastStable int64
		}
		must(t, json.Unmarshal(line, &c))
		all[c.tp()] = [3]int64{c.Start, c.HighWatermark, c.LastStable}
	}
	return all
}

func encoded(b []byte) *string {
	if b == nil {
		return nil
	}
	text := base64.StdEncoding.EncodeToString(b)
	return &text
}

// describe is a record in the form of the golden files.
func describe(tp protocol.TopicPartition, e record.Entry, r record.Record) consumed {
	c := consumed{
		Topic: tp.Topic, Partition: tp.Partition, Offset: int64(r.Offset), Timestamp: r.Timestamp,
		TimestampType: [...]string{"CreateTime", "LogAppendTime"}[e.Attributes.TimestampType()], Key: encoded(r.Key), Headers: [][]*string{},
	}
	if e.Magic == 0 {
		c.TimestampType = "NoTimestampType"
	}
	if e.Magic == 2 {
		epoch := int32(record.Batch(e.Bytes).LeaderEpoch())
		c.LeaderEpoch = &epoch
	}
	if len(r.Value) > 512 {
		sum := sha256.Sum256(r.Value)
		c.ValueLength, c.ValueSHA256 = len(r.Value), hex.EncodeToString(sum[:])
	} else {
		c.Value = encoded(r.Value)
	}
	for key, value := range r.Headers.All() {
		name := string(key)
		c.Headers = append(c.Headers, []*string{&name, encoded(value)})
	}
	return c
}

// consume reads a log as a consumer does.
func consume(t testing.TB, l *log.Log, committed bool) (all []consumed) {
	t.Helper()
	limit := l.HighWatermark()
	var aborted []log.AbortedTransaction
	skipping := map[protocol.ProducerID]bool{}
	if committed {
		limit = l.LastStableOffset()
		var err error
		aborted, err = l.Aborted(l.StartOffset(), limit)
		must(t, err)
	}
	for from := l.StartOffset(); from < limit; {
		slice, err := l.Read(from, 1<<20, limit, true)
		must(t, err)
		if slice.Length == 0 {
			return all // what is left has been compacted away
		}
		data := make([]byte, slice.Length)
		must(t, slice.ReadInto(data))
		slice.Release()
		for e, err := range record.Entries(data) {
			must(t, err)
			if !e.ValidCRC() {
				t.Errorf("%s: wrong CRC at offset %d", l.Partition(), e.BaseOffset)
			}
			from = e.LastOffset + 1
			for len(aborted) > 0 && aborted[0].First <= e.LastOffset {
				skipping[aborted[0].ProducerID] = true
				aborted = aborted[1:]
			}
			if e.Magic == 2 && record.Batch(e.Bytes).Control() {
				forgetAborted(t, e, skipping)
				continue
			}
			if e.Magic == 2 && record.Batch(e.Bytes).Transactional() && skipping[e.ProducerID] {
				continue
			}
			for r, err := range e.Records(nil) {
				must(t, err)
				if r.Offset >= l.StartOffset() {
					all = append(all, describe(l.Partition(), e, r))
				}
			}
		}
	}
	return all
}

// forgetAborted ends the skipping of a producer's records at its abort marker.
func forgetAborted(t testing.TB, e record.Entry, skipping map[protocol.ProducerID]bool) {
	t.Helper()
	for r, err := range e.Records(nil) {
		must(t, err)
		if len(r.Key) >= 4 && binary.BigEndian.Uint16(r.Key[2:]) == 0 {
			delete(skipping, e.ProducerID)
		}
	}
}

// openGolden opens a golden directory with whatever broker and cluster it says.
func openGolden(t testing.TB, g goldenTree, boot string) (*Set, *world) {
	t.Helper()
	w := newWorld(t, g.files)
	w.options.ClusterID, w.options.BrokerID, w.options.BootID = "", protocol.NoBroker, boot
	w.topic.Delete, w.topic.Compact = false, false
	s := w.start(t)
	for _, l := range s.All() {
		l.SetHighWatermark(math.MaxInt64) // as the leader of a set of one
	}
	return s, w
}

// compare holds every partition to what Kafka read from it.
func (g goldenTree) compare(t *testing.T, s *Set, except ...protocol.TopicPartition) {
	t.Helper()
	uncommitted := g.expected(t, "expected-read_uncommitted.jsonl")
	bounds := g.bounds(t)
	if len(bounds) != len(s.All())+len(s.Offline()) {
		t.Errorf("%d partitions, want %d", len(s.All())+len(s.Offline()), len(bounds))
	}
	for tp, want := range bounds {
		if slices.Contains(except, tp) {
			continue
		}
		l := s.Get(tp)
		if l == nil {
			t.Errorf("%s is offline: %v", tp, s.Err(tp))
			continue
		}
		if got := [3]int64{int64(l.StartOffset()), int64(l.HighWatermark()), int64(l.LastStableOffset())}; got != want {
			t.Errorf("%s: start, high watermark and last stable offset are %v, want %v", tp, got, want)
		}
		if diff := cmp.Diff(uncommitted[tp], consume(t, l, false)); diff != "" {
			t.Errorf("%s, read uncommitted: %s", tp, diff)
		}
	}
	if g.texts["expected-read_committed.jsonl"] == nil {
		return
	}
	committed := g.expected(t, "expected-read_committed.jsonl")
	for _, l := range s.All() {
		if diff := cmp.Diff(committed[l.Partition()], consume(t, l, true)); diff != "" {
			t.Errorf("%s, read committed: %s", l.Partition(), diff)
		}
	}
}

// goldenVersions are the directories in testdata.
var goldenVersions = []string{"3.9.2", "4.4.0"}

func TestGoldenClean(t *testing.T) {
	for _, version := range append(goldenVersions, "2.8.2") {
		t.Run(version, func(t *testing.T) {
			g := unpack(t, version, "clean")
			before := snapshot(t, g.files)
			s, w := openGolden(t, g, "")
			g.compare(t, s)
			found := s.Found()
			if i := slices.IndexFunc(found, func(f Found) bool { return f.State == Deleted }); version != "2.8.2" && (i < 0 || found[i].Partition != partition("to-delete", 0)) {
				t.Error("the folder of the deleted topic was not found")
			}
			for _, f := range found {
				if version != "2.8.2" && f.TopicID.IsZero() {
					t.Errorf("%s has no topic id", f.Folder)
				}
			}
			stop(t, s)
			after := snapshot(t, g.files)
			for tp, bounds := range g.bounds(t) {
				if bounds[1] == 0 { // Kafka too drops the epochs of an empty log when it opens it
					path := "/data/" + tp.String() + "/leader-epoch-checkpoint"
					delete(before, path)
					delete(after, path)
				}
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("opening and closing changed files: %s", diff)
			}
			s = w.start(t)
			for _, l := range s.All() {
				l.SetHighWatermark(math.MaxInt64)
			}
			g.compare(t, s)
		})
	}
}

// snapshot lists all files with a sum of their content, without those that a start and a stop must change:
// checkpoints, marker, our own, and what was to be deleted.
func snapshot(t testing.TB, files vfs.FS) map[string]string {
	t.Helper()
	sums := map[string]string{}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := files.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			if e.IsDir() {
				walk(path)
			} else if (dir != "/data" || e.Name() == identityFile) && !strings.HasSuffix(path, ".deleted") {
				text, err := readFile(files, path, 1<<30)
				must(t, err)
				sums[path] = fmt.Sprintf("%d bytes, %x", len(text), sha256.Sum256(text))
			}
		}
	}
	walk("/data")
	return sums
}

func TestGoldenUnclean(t *testing.T) {
	for _, version := range goldenVersions {
		for _, trust := range []log.Trust{log.Scan, log.SameBoot} {
			t.Run(version+"/"+trust.String(), func(t *testing.T) {
				g := unpack(t, version, "unclean")
				bootID := ""
				if trust == log.SameBoot {
					bootID = "the boot in which Kafka was killed"
					must(t, boot{id: bootID, path: "/data"}.write(g.files, "/data"))
				}
				s, _ := openGolden(t, g, bootID)
				g.compare(t, s)
				stop(t, s)
				wantEpochs(t, g)
			})
		}
	}
}

// wantEpochs compares leader-epoch-checkpoint of every partition with what Kafka's recovery left, but for
// the epoch that its restarted broker then began.
func wantEpochs(t *testing.T, g goldenTree) {
	t.Helper()
	for _, section := range strings.Split(string(g.texts["leader-epochs.txt"]), "== ./")[1:] {
		path, want, _ := strings.Cut(section, "\n")
		if strings.HasPrefix(path, "__cluster_metadata") || strings.Contains(path, "-delete/") {
			continue
		}
		got := get(t, g.files, "/data/"+path)
		if !strings.HasPrefix(lines(want), lines(got)) {
			t.Errorf("%s: %q, Kafka %q", path, got, want)
		}
	}
}

// lines are the entries of a leader-epoch-checkpoint, without version and count.
func lines(text string) string {
	parts := strings.SplitN(strings.TrimSpace(text), "\n", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[2]
}

func TestGoldenTorn(t *testing.T) {
	for _, version := range goldenVersions {
		t.Run(version, func(t *testing.T) {
			g := unpack(t, version, "torn")
			s, w := openGolden(t, g, "")
			damaged, flipped := partition("codec-lz4", 0), partition("codec-none", 0)
			g.compare(t, s, damaged, flipped)

			// Kafka cuts this log and loses what is behind the damage; here it waits for somebody to decide.
			if err := s.Err(damaged); s.Get(damaged) != nil || protocol.CodeOf(err) != protocol.KafkaStorageError ||
				!strings.Contains(err.Error(), "codec-lz4-0/00000000000000000000.log at position") {
				t.Errorf("damaged log: %v", err)
			}
			// Kafka serves the flipped epoch; here the checkpoint is believed.
			want := g.expected(t, "expected-read_uncommitted.jsonl")[flipped]
			zero := int32(0)
			for i := range want {
				if *want[i].LeaderEpoch == 255 {
					want[i].LeaderEpoch = &zero
				}
			}
			if l := s.Get(flipped); l == nil {
				t.Errorf("flipped epoch: %v", s.Err(flipped))
			} else if diff := cmp.Diff(want, consume(t, l, false)); diff != "" {
				t.Errorf("flipped epoch: %s", diff)
			}
			stop(t, s)

			// The damage is remembered over a clean stop, also in the same boot.
			w.options.BootID = "boot-2"
			s = w.start(t)
			if s.Get(damaged) != nil {
				t.Error("the damaged log serves after a clean restart")
			}
			kill(s)
			s = w.start(t)
			if s.Get(damaged) != nil || len(s.All()) != len(g.bounds(t))-1 {
				t.Error("the damaged log serves after a kill in the same boot")
			}
			must(t, s.Close(context.Background()))
		})
	}
}
