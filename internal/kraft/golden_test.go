package kraft

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/google/go-cmp/cmp"
)

const metadataDir = "/__cluster_metadata-0"

// The directories: one with users, rules, quotas and several snapshots, and those of the golden data, which
// package logdir keeps.
const (
	security = "testdata/4.4.0-security.tar.gz"
	shared   = "../logdir/testdata/golden/4.4.0.tar.gz"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// unpack puts the files below prefix in an archive into memory, at /.
func unpack(t testing.TB, archive, prefix string) *vfs.Memory {
	t.Helper()
	data, err := os.ReadFile(archive)
	must(t, err)
	packed, err := gzip.NewReader(bytes.NewReader(data))
	must(t, err)
	files := vfs.NewMemory()
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		must(t, err)
		name, below := strings.CutPrefix(h.Name, prefix)
		if !below || !strings.HasPrefix("/"+name, metadataDir) || h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(r)
		must(t, err)
		put(t, files, "/"+name, content)
	}
}

func put(t testing.TB, files vfs.FS, name string, content []byte) {
	t.Helper()
	must(t, files.MkdirAll(path.Dir(name), 0o755))
	f, err := files.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	must(t, err)
	_, err = f.WriteAt(content, 0)
	must(t, err)
	must(t, f.Close())
}

func read(t testing.TB, files vfs.FS) *Image {
	t.Helper()
	image, err := Read(files, metadataDir)
	must(t, err)
	return image
}

func TestSecurity(t *testing.T) {
	image := read(t, unpack(t, security, ""))
	id, err := P.ParseTopicID("HjhTpDhmRDWGaVIQj6W3JA")
	must(t, err)
	offline := &Partition{Replicas: []P.BrokerID{1}, Eligible: []P.BrokerID{1}, Leader: P.NoBroker, LeaderEpoch: 1}
	want := map[P.TopicID]*Topic{id: {Name: "kept", ID: id, Partitions: map[int32]*Partition{0: offline, 1: offline, 2: offline}}}
	if diff := cmp.Diff(want, image.Topics); diff != "" {
		t.Errorf("topics: %s", diff)
	}
	configs := map[Resource]map[string]string{
		{TopicResource, "kept"}: {"max.message.bytes": "2000000", "retention.ms": "86400000"},
		{BrokerResource, ""}:    {"min.insync.replicas": "1", "log.retention.ms": "999999999"},
		{BrokerResource, "1"}:   {"num.io.threads": "5"},
	}
	if diff := cmp.Diff(configs, image.Configs); diff != "" {
		t.Errorf("configs: %s", diff)
	}
	if diff := cmp.Diff(map[string][]string{"alice": {"SCRAM-SHA-256"}}, image.Scram); diff != "" {
		t.Errorf("SCRAM: %s", diff)
	}
	quotas := map[string]map[string]float64{"user=alice": {"producer_byte_rate": 1000}, "client-id=<default>": {"request_percentage": 50}}
	if diff := cmp.Diff(quotas, image.Quotas); diff != "" {
		t.Errorf("quotas: %s", diff)
	}
	if len(image.ACLs) != 1 {
		t.Fatalf("ACLs: %v", image.ACLs)
	}
	for _, acl := range image.ACLs {
		if want := (ACL{2, "pre", 4, "User:bob", "*", 4, 2}); acl != want {
			t.Errorf("ACL is %v, want %v", acl, want)
		}
	}
	if image.NextProducerID != 1000 || image.Features["metadata.version"] != 33 || image.End != 366 || image.Damage != "" || len(image.Unknown) > 0 {
		t.Errorf("producer ids from %d, features %v, end %d, damage %q, unknown %v", image.NextProducerID, image.Features, image.End, image.Damage, image.Unknown)
	}
	if b := image.Brokers[1]; b == nil || b.Epoch != 17 || len(b.Directories) != 1 {
		t.Errorf("broker 1 is %+v", b)
	}
}

// A snapshot and the log behind it say what the whole log says, whichever snapshot it is.
func TestSnapshotsAgreeWithTheLog(t *testing.T) {
	want := read(t, unpack(t, security, ""))
	files := unpack(t, security, "")
	entries, err := files.ReadDir(metadataDir)
	must(t, err)
	for i := len(entries) - 1; i >= 0; i-- {
		if filepath.Ext(entries[i].Name()) != ".checkpoint" {
			continue
		}
		must(t, files.Remove(path.Join(metadataDir, entries[i].Name())))
		got := read(t, files)
		got.Voters, want.Voters = nil, nil // only the log names them
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("without %s and newer: %s", entries[i].Name(), diff)
		}
	}
}

func TestGolden(t *testing.T) {
	for _, state := range []string{"clean", "unclean"} {
		image := read(t, unpack(t, shared, "4.4.0-kraft/"+state+"/data/"))
		if len(image.Topics) != 24 || image.Topic("to-delete") != nil || image.Damage != "" {
			t.Errorf("%s: %d topics: %v; damage %q", state, len(image.Topics), image.Names(), image.Damage)
		}
		if topic := image.Topic("Dots.and_under-scores"); topic == nil || topic.Count() != 3 {
			t.Errorf("%s: %+v", state, topic)
		}
		wantEpoch := map[string]P.LeaderEpoch{"clean": 1, "unclean": 2}[state]
		if p := image.Topic("codec-none").Partitions[0]; p.LeaderEpoch != wantEpoch {
			t.Errorf("%s: leader epoch %d, want %d", state, p.LeaderEpoch, wantEpoch)
		}
		if diff := cmp.Diff([]P.BrokerID{1}, image.Voters); diff != "" {
			t.Error(diff)
		}
	}
}

// What a crash leaves at the end is left out and named; zeros of a preallocated file are no damage.
func TestTornEnd(t *testing.T) {
	files := unpack(t, security, "")
	whole := read(t, files)
	name := metadataDir + "/00000000000000000000.log"
	content, err := readAll(files, name)
	must(t, err)
	put(t, files, name, append(bytes.Clone(content), make([]byte, 100<<10)...))
	if diff := cmp.Diff(whole, read(t, files)); diff != "" {
		t.Errorf("with zeros behind it: %s", diff)
	}
	for _, torn := range [][]byte{content[:len(content)-1], append(bytes.Clone(content), "some rest of a batch that was never finished, long enough for a header"...)} {
		put(t, files, name, torn)
		got := read(t, files)
		if !strings.Contains(got.Damage, name+" ends at position ") {
			t.Errorf("damage is %q", got.Damage)
		}
	}
	flipped := bytes.Clone(content)
	flipped[len(flipped)-1] ^= 1
	put(t, files, name, flipped)
	if got := read(t, files); got.Damage == "" || got.End != whole.End-1 {
		t.Errorf("a wrong checksum: end %d, damage %q", got.End, got.Damage)
	}
}

func readAll(files vfs.FS, name string) ([]byte, error) {
	f, err := files.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	_, err = f.ReadAt(b, 0)
	return b, err
}

func TestNoDirectory(t *testing.T) {
	if _, err := Read(vfs.NewMemory(), "/nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestDamagedSnapshotAndGap(t *testing.T) {
	files := unpack(t, security, "")
	put(t, files, metadataDir+"/00000000000000000340-0000000001.checkpoint", []byte("no batch at all, but long enough to look like the header of one .."))
	if _, err := Read(files, metadataDir); err == nil || !strings.Contains(err.Error(), "snapshot") {
		t.Errorf("damaged snapshot: %v", err)
	}
	files = vfs.NewMemory()
	put(t, files, metadataDir+"/00000000000000000007.log", nil)
	if _, err := Read(files, metadataDir); err == nil || !strings.Contains(err.Error(), "gap") {
		t.Errorf("gap: %v", err)
	}
}

// Records of a transaction count when it ends, and not where it does not.
func TestTransactions(t *testing.T) {
	feature := func(level byte) []byte { return []byte{1, featureLevel, 0, 2, 'x', 0, level, 0} }
	begin, end, abort := []byte{1, beginTransaction, 0, 0}, []byte{1, endTransaction, 0, 0}, []byte{1, abortTransaction, 0, 0}
	for _, c := range []struct {
		records [][]byte
		want    int16
	}{
		{[][]byte{feature(1)}, 1},
		{[][]byte{feature(1), begin, feature(2)}, 1},
		{[][]byte{feature(1), begin, feature(2), end}, 2},
		{[][]byte{feature(1), begin, feature(2), abort, feature(3)}, 3},
		{[][]byte{feature(1), begin, feature(2), abort}, 1},
	} {
		files := vfs.NewMemory()
		b := record.NewBuilder(record.BuilderOptions{})
		for _, value := range c.records {
			b.Append(0, nil, value)
		}
		put(t, files, metadataDir+"/00000000000000000000.log", b.Build())
		if got := read(t, files).Features["x"]; got != c.want {
			t.Errorf("%v: level %d, want %d", c.records, got, c.want)
		}
	}
}

func TestTokensAndUnknownTypes(t *testing.T) {
	image := newImage()
	token := append([]byte{1, delegationToken, 0, 6}, "owner"...)
	token = append(token, 4, 'r', 'e', 'q', 2, 2, 'x')
	token = append(token, make([]byte, 24)...)
	token = append(token, 3, 'i', 'd', 0)
	must(t, image.apply(token))
	if image.Tokens["id"] != "owner" {
		t.Errorf("tokens are %v", image.Tokens)
	}
	must(t, image.apply([]byte{1, removeDelegationToken, 0, 3, 'i', 'd', 0}))
	must(t, image.apply([]byte{1, 99, 0, 0}))
	if len(image.Tokens) != 0 || image.Unknown[99] != 1 {
		t.Errorf("tokens %v, unknown %v", image.Tokens, image.Unknown)
	}
	if err := image.apply([]byte{2, topicRecord, 0}); err == nil {
		t.Error("frame version 2 was taken")
	}
}

func FuzzApply(f *testing.F) {
	for _, archive := range []string{security} {
		files := unpack(f, archive, "")
		content, err := readAll(files, metadataDir+"/00000000000000000000.log")
		must(f, err)
		for batch, err := range record.Batches(content) {
			must(f, err)
			for r, err := range batch.Records(nil) {
				must(f, err)
				if !batch.Control() {
					f.Add(bytes.Clone(r.Value))
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		image := newImage()
		image.Topics[P.TopicID{}] = &Topic{Partitions: map[int32]*Partition{0: {}}}
		_ = image.apply(value)
	})
}
