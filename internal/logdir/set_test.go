package logdir

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/leaktest"
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// journal keeps log lines for tests to look at.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, string(p))
	return len(p), nil
}

func (j *journal) has(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.lines, func(line string) bool { return strings.Contains(line, text) })
}

// world is a broker's disks and what it opens them with.
type world struct {
	options Options
	journal *journal
	topic   config.Topic
}

// brokerConfig is the default configuration with some properties set.
func brokerConfig(t testing.TB, settings ...string) *config.Broker {
	t.Helper()
	c, _, err := config.Load(config.LoadOptions{Overrides: settings})
	must(t, err)
	return c
}

func newWorld(t testing.TB, files vfs.FS, dirs ...string) *world {
	if len(dirs) == 0 {
		dirs = []string{"/data"}
	}
	c := brokerConfig(t)
	topic, err := c.Topic(nil)
	must(t, err)
	j := &journal{}
	return &world{
		options: Options{
			FS: files, Dirs: dirs, BrokerID: 1, ClusterID: "cluster", Config: c, BootID: "boot-1",
			Logger: slog.New(slog.NewTextHandler(j, nil)),
		},
		journal: j, topic: topic,
	}
}

// all is the Settings of a broker that knows every partition.
func (w *world) all(protocol.TopicPartition, protocol.TopicID) (config.Topic, bool) {
	return w.topic, true
}

// start opens and loads; the test's end closes without waiting for the disk, as a kill does, unless the
// test has closed it before.
func (w *world) start(t testing.TB) *Set {
	t.Helper()
	s, err := Open(w.options)
	must(t, err)
	must(t, s.Load(t.Context(), w.all))
	t.Cleanup(func() { kill(s) })
	return s
}

// kill ends a Set as the death of its process does: nothing is written any more.
func kill(s *Set) {
	if s.closed.Swap(true) {
		return
	}
	s.background.end()
	for _, l := range s.All() {
		l.CloseUnclean()
	}
	for _, f := range s.moving() {
		f.log.CloseUnclean()
	}
	s.failing.Wait()
	s.unlock()
}

func stop(t testing.TB, s *Set) {
	t.Helper()
	must(t, s.Close(context.Background()))
}

// make creates a partition as the controller asks for a new one.
func (w *world) make(t testing.TB, s *Set, tp protocol.TopicPartition) *log.Log {
	t.Helper()
	logs, errs := s.CreateAll([]Spec{{Partition: tp, TopicID: protocol.NewTopicID(), Config: w.topic, New: true}})
	must(t, errs[0])
	return logs[0]
}

// appendValues appends a batch of plain records.
func appendValues(l *log.Log, values ...string) error {
	b := record.NewBuilder(record.BuilderOptions{})
	for _, value := range values {
		b.Append(time.Now().UnixMilli(), nil, []byte(value))
	}
	_, err := l.AppendLeader(record.Validated{Batch: b.Build(), Count: len(values)}, 0)
	if err == nil {
		l.SetHighWatermark(l.EndOffset())
	}
	return err
}

// values reads all records of a log.
func values(t testing.TB, l *log.Log) (all []string) {
	t.Helper()
	for from := l.StartOffset(); from < l.EndOffset(); {
		slice, err := l.Read(from, 1<<20, l.EndOffset(), true)
		must(t, err)
		if slice.Length == 0 {
			t.Fatalf("nothing to read at %d below %d", from, l.EndOffset())
		}
		data := make([]byte, slice.Length)
		must(t, slice.ReadInto(data))
		slice.Release()
		for b, err := range record.Batches(data) {
			must(t, err)
			for r, err := range b.Records(nil) {
				must(t, err)
				if r.Offset >= l.StartOffset() {
					all = append(all, string(r.Value))
				}
			}
			from = b.NextOffset()
		}
	}
	return all
}

func wantValues(t testing.TB, l *log.Log, want ...string) {
	t.Helper()
	if l == nil {
		t.Fatal("no log")
	}
	if got := values(t, l); !slices.Equal(got, want) {
		t.Errorf("%s holds %v, want %v", l.Partition(), got, want)
	}
}

func TestFreshDirectory(t *testing.T) {
	w := newWorld(t, vfs.OS(), filepath.Join(t.TempDir(), "deep", "data"))
	w.options.ClusterID, w.options.BrokerID = "", protocol.NoBroker
	s := w.start(t)
	if s.ClusterID() == "" || s.BrokerID() != 1 {
		t.Errorf("cluster %q, broker %d", s.ClusterID(), s.BrokerID())
	}
	dir := w.options.Dirs[0]
	id, err := ReadIdentity(vfs.OS(), dir)
	if err != nil || id.Version != 1 || id.Cluster != s.ClusterID() || id.Directory.IsZero() {
		t.Errorf("%+v, %v", id, err)
	}
	tp := partition("t", 0)
	l := w.make(t, s, tp)
	must(t, appendValues(l, "a", "b"))
	if s.Get(tp) != l || len(s.All()) != 1 || s.Err(tp) != nil {
		t.Error("the new log is not there")
	}
	stop(t, s)

	for name, want := range map[string]string{
		".kafka_cleanshutdown":             `{"version":0,"brokerEpoch":-1}`,
		"recovery-point-offset-checkpoint": "0\n1\nt 0 2\n",
		"replication-offset-checkpoint":    "0\n1\nt 0 2\n",
		"log-start-offset-checkpoint":      "0\n0\n",
	} {
		if got := get(t, vfs.OS(), filepath.Join(dir, name)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	s = w.start(t)
	wantValues(t, s.Get(tp), "a", "b")
	if got := s.Get(tp).HighWatermark(); got != 2 {
		t.Errorf("high watermark %d", got)
	}
	if _, err := vfs.OS().Stat(filepath.Join(dir, ".kafka_cleanshutdown")); !missing(err) {
		t.Errorf("the marker must go when logs are open: %v", err)
	}
	if again, _ := ReadIdentity(vfs.OS(), dir); again != id {
		t.Errorf("the identity changed to %+v", again)
	}
}

func TestSecondBrokerIsRefused(t *testing.T) {
	w := newWorld(t, vfs.OS(), t.TempDir())
	s := w.start(t)
	_, err := Open(w.options)
	if !errors.Is(err, vfs.ErrLocked) || !strings.Contains(err.Error(), w.options.Dirs[0]) {
		t.Errorf("got %v", err)
	}
	stop(t, s)
	stop(t, w.start(t))
}

func TestWrongDirectories(t *testing.T) {
	m := vfs.NewMemory()
	stop(t, newWorld(t, m).start(t))
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"another broker":  {func(o *Options) { o.BrokerID = 2 }, "belongs to broker 1"},
		"another cluster": {func(o *Options) { o.ClusterID = "other" }, "belongs to the cluster cluster"},
		"twice":           {func(o *Options) { o.Dirs = []string{"/data", "/data/."} }, "twice"},
		"none":            {func(o *Options) { o.Dirs = nil }, "no directory"},
		"empty metadata":  {func(o *Options) { o.MetadataDir = "/meta" }, "metadata.log.dir and empty"},
	} {
		o := newWorld(t, m).options
		c.change(&o)
		if _, err := Open(o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	put(t, m, "/lost/t-0/x", "")
	o := newWorld(t, m, "/lost").options
	if _, err := Open(o); err == nil || !strings.Contains(err.Error(), "no meta.properties") {
		t.Errorf("partitions without meta.properties: %v", err)
	}
	stop(t, newWorld(t, m).start(t)) // and no attempt has left a lock
}

func TestSeparateMetadataDirectory(t *testing.T) {
	m := vfs.NewMemory()
	w := newWorld(t, m, "/a", "/b")
	w.options.MetadataDir = "/meta"
	s := w.start(t)
	w.make(t, s, partition("t", 0))
	if s.MetadataDir() != "/meta" || len(s.Dirs()) != 2 {
		t.Errorf("metadata in %s, %d directories", s.MetadataDir(), len(s.Dirs()))
	}
	stop(t, s)
	if _, err := ReadIdentity(m, "/meta"); err != nil {
		t.Error(err)
	}
	if got := len(w.start(t).All()); got != 1 {
		t.Errorf("%d logs", got)
	}
}

func TestVersion0IsKept(t *testing.T) {
	m := vfs.NewMemory()
	text := string(golden(t, "meta", "3.9.2"))
	put(t, m, "/data/meta.properties", text)
	w := newWorld(t, m, "/data", "/new")
	w.options.ClusterID, w.options.BrokerID = "", protocol.NoBroker
	s := w.start(t)
	if s.ClusterID() != "_dBGENN0TGK-l-9V8vLD6Q" || s.BrokerID() != 1 {
		t.Errorf("cluster %q, broker %d", s.ClusterID(), s.BrokerID())
	}
	stop(t, s)
	if got := get(t, m, "/data/meta.properties"); got != text {
		t.Errorf("changed to %q", got)
	}
	if id, err := ReadIdentity(m, "/new"); err != nil || id.Version != 1 || id.Cluster != "_dBGENN0TGK-l-9V8vLD6Q" {
		t.Errorf("%+v, %v", id, err)
	}
}

func TestUnmountedDirectory(t *testing.T) {
	m := vfs.NewMemory()
	w := newWorld(t, m, "/a", "/b")
	s := w.start(t)
	w.make(t, s, partition("t", 0))
	w.make(t, s, partition("t", 1))
	stop(t, s)
	must(t, m.Rename("/b", "/elsewhere"))
	for _, empty := range []bool{false, true} {
		if empty {
			must(t, m.MkdirAll("/b", 0o755))
		}
		s = w.start(t)
		dirs := s.Dirs()
		if dirs[0].Err != nil || dirs[1].Err == nil || !strings.Contains(dirs[1].Err.Error(), "mounted") {
			t.Fatalf("empty %v: %v, %v", empty, dirs[0].Err, dirs[1].Err)
		}
		if _, err := s.Create(partition("t", 1), protocol.NewTopicID(), w.topic); protocol.CodeOf(err) != protocol.KafkaStorageError {
			t.Errorf("a partition that may be on the lost disk: %v", err)
		}
		l := w.make(t, s, partition("new", 0))
		if l == nil || s.Delete(partition("new", 0)) != nil {
			t.Error("new partitions must go to the rest")
		}
		stop(t, s)
	}
	must(t, m.RemoveAll("/b"))
	must(t, m.Rename("/elsewhere", "/b"))
	if got := len(w.start(t).All()); got != 2 {
		t.Errorf("%d logs once the disk is back", got)
	}
}

func TestFoldersOfOthers(t *testing.T) {
	m := vfs.NewMemory()
	w := newWorld(t, m)
	stop(t, w.start(t))
	for _, folder := range []string{"lost+found", "__cluster_metadata-0", "notes", "x-0.aa-stray"} {
		put(t, m, "/data/"+folder+"/file", "keep")
	}
	s := w.start(t)
	if found := s.Found(); len(found) != 1 || found[0].State != Stray {
		t.Errorf("found %v", found)
	}
	if !w.journal.has("notes") || w.journal.has("lost+found") || w.journal.has("__cluster_metadata") {
		t.Error("only the unknown folder is worth a line")
	}
	stray := s.Found()[0]
	stop(t, s)
	for _, folder := range []string{"lost+found", "__cluster_metadata-0", "notes", "x-0.aa-stray"} {
		if get(t, m, "/data/"+folder+"/file") != "keep" {
			t.Errorf("%s was touched", folder)
		}
	}
	s = w.start(t)
	must(t, s.RemoveStray(stray))
	if _, err := m.Stat("/data/x-0.aa-stray"); !missing(err) {
		t.Errorf("stray folder: %v", err)
	}
}

func TestUnknownPartitionsAreLeftAlone(t *testing.T) {
	m := vfs.NewMemory()
	w := newWorld(t, m)
	s := w.start(t)
	tp := partition("t", 0)
	must(t, appendValues(w.make(t, s, tp), "a"))
	stop(t, s)

	s, err := Open(w.options)
	must(t, err)
	must(t, s.Load(t.Context(), func(protocol.TopicPartition, protocol.TopicID) (config.Topic, bool) { return w.topic, false }))
	if s.Get(tp) != nil || s.Err(tp) != nil || len(s.Found()) != 1 {
		t.Error("a partition that is not known must not be opened")
	}
	stop(t, s)
	if got := get(t, m, "/data/replication-offset-checkpoint"); got != "0\n1\nt 0 1\n" {
		t.Errorf("its lines must stay: %q", got)
	}
	s, err = Open(w.options)
	must(t, err)
	must(t, s.Load(t.Context(), func(protocol.TopicPartition, protocol.TopicID) (config.Topic, bool) { return w.topic, false }))
	l, err := s.Create(tp, protocol.TopicID{}, w.topic)
	must(t, err)
	wantValues(t, l, "a")
	if l.HighWatermark() != 1 {
		t.Errorf("high watermark %d", l.HighWatermark())
	}
	must(t, s.MarkStray(tp))
	if len(s.Found()) != 0 || s.Get(tp) != nil {
		t.Error("it is set aside")
	}
	stop(t, s)
	if found := w.start(t).Found(); len(found) != 1 || found[0].State != Stray || found[0].Partition != tp {
		t.Errorf("found %v", found)
	}
}

func TestPlacementByCount(t *testing.T) {
	w := newWorld(t, vfs.NewMemory(), "/a", "/b", "/c")
	s := w.start(t)
	for i := range int32(9) {
		w.make(t, s, partition("t", i))
	}
	must(t, s.Delete(partition("t", 1), partition("t", 4)))
	w.make(t, s, partition("u", 0))
	for i, want := range []int{3, 2, 3} {
		if got := len(s.Dirs()[i].Logs); got != want {
			t.Errorf("%s has %d logs, want %d", s.Dirs()[i].Path, got, want)
		}
	}
	s.SetConfig(brokerConfig(t, "log.dirs=/a,/b,/c", "cordoned.log.dirs=/b"))
	w.make(t, s, partition("u", 1))
	if dir, _ := s.DirOf(partition("u", 1)); dir == "/b" || !s.Dirs()[1].Cordoned {
		t.Errorf("a cordoned directory got a partition: %s", dir)
	}
	if err := s.Move(partition("u", 2), "/b"); protocol.CodeOf(err) != protocol.ReplicaNotAvailable {
		t.Errorf("got %v", err)
	}
	w.make(t, s, partition("u", 2))
	if dir, _ := s.DirOf(partition("u", 2)); dir != "/b" {
		t.Errorf("made in %s, although /b was asked for", dir)
	}
}

// TestCreateWithAnotherTopicID asks for a log that is there, as an earlier topic's.
func TestCreateWithAnotherTopicID(t *testing.T) {
	w := newWorld(t, vfs.NewMemory(), "/a")
	s := w.start(t)
	l := w.make(t, s, partition("t", 0))
	again, err := s.Create(partition("t", 0), l.TopicID(), l.Config())
	if err != nil || again != l {
		t.Errorf("got %v, %v, want the same log", again, err)
	}
	if _, err := s.Create(partition("t", 0), protocol.NewTopicID(), l.Config()); protocol.CodeOf(err) != protocol.InconsistentTopicID {
		t.Errorf("got %v, want INCONSISTENT_TOPIC_ID", err)
	}
}

func TestPartitionInTwoDirectories(t *testing.T) {
	m := vfs.NewMemory()
	w := newWorld(t, m, "/a", "/b")
	s := w.start(t)
	w.make(t, s, partition("t", 0))
	w.make(t, s, partition("t", 1))
	stop(t, s)
	put(t, m, "/b/t-0/partition.metadata", get(t, m, "/a/t-0/partition.metadata"))
	s = w.start(t)
	err := s.Err(partition("t", 0))
	if protocol.CodeOf(err) != protocol.KafkaStorageError || !strings.Contains(err.Error(), "/a and in /b") {
		t.Errorf("got %v", err)
	}
	if s.Get(partition("t", 1)) == nil || len(s.Offline()) != 1 {
		t.Error("the other partition must serve")
	}
}

func TestFailingDirectory(t *testing.T) {
	m := vfs.NewMemory()
	f := vfs.NewFaulty(m)
	w := newWorld(t, f, "/a", "/b")
	s := w.start(t)
	a, b := partition("t", 0), partition("t", 1)
	must(t, appendValues(w.make(t, s, a), "a"))
	must(t, appendValues(w.make(t, s, b), "b"))
	onB := s.Get(b)
	must(t, s.Checkpoint())

	f.Inject(vfs.Fault{Path: "/b", Err: syscall.EIO})
	if appendValues(onB, "lost") == nil {
		t.Fatal("the append must fail")
	}
	s.watch(t.Context())
	if failed := <-s.Failed(); failed != "/b" || failed == s.MetadataDir() {
		t.Errorf("failed: %s", failed)
	}
	if s.Get(b) != nil || protocol.CodeOf(s.Err(b)) != protocol.KafkaStorageError {
		t.Errorf("partition on the failed disk: %v", s.Err(b))
	}
	if dir, ok := s.DirOf(b); !ok || dir != "/b" {
		t.Errorf("%s, %v", dir, ok)
	}
	if dirs := s.Dirs(); dirs[0].Err != nil || protocol.CodeOf(dirs[1].Err) != protocol.KafkaStorageError {
		t.Errorf("%v, %v", dirs[0].Err, dirs[1].Err)
	}
	must(t, appendValues(s.Get(a), "still"))
	wantValues(t, s.Get(a), "a", "still")
	w.make(t, s, partition("new", 0))
	if _, err := s.Create(b, protocol.TopicID{}, w.topic); protocol.CodeOf(err) != protocol.KafkaStorageError {
		t.Errorf("an offline partition was made again: %v", err)
	}
	must(t, s.Checkpoint())
	before := f.Mutations()
	stop(t, s)
	if before == f.Mutations() {
		t.Error("the good directory was not closed")
	}

	f.Heal()
	if clean, _, _ := readMarker(m, "/b"); clean {
		t.Error("the failed directory has a marker")
	}
	s = w.start(t)
	wantValues(t, s.Get(a), "a", "still")
	wantValues(t, s.Get(b), "b")
	if len(s.All()) != 3 {
		t.Errorf("%d logs", len(s.All()))
	}
}

func TestFailingDirectoryAtTheStart(t *testing.T) {
	m := vfs.NewMemory()
	f := vfs.NewFaulty(m)
	w := newWorld(t, f, "/a", "/b")
	s := w.start(t)
	w.make(t, s, partition("t", 0))
	w.make(t, s, partition("t", 1))
	stop(t, s)
	for _, path := range []string{"", "/t-N", "/meta.properties", "/.kafka_cleanshutdown", "/replication-offset-checkpoint"} {
		f.Inject(vfs.Fault{Path: "/b" + strings.Replace(path, "N", "1", 1), Err: syscall.EIO})
		s := w.start(t)
		if dirs := s.Dirs(); dirs[0].Err != nil || dirs[1].Err == nil {
			t.Errorf("%s: %v, %v", path, dirs[0].Err, dirs[1].Err)
		}
		if s.Get(partition("t", 0)) == nil || s.Get(partition("t", 1)) != nil {
			t.Errorf("%s: the partition in the good directory serves, the other not", path)
		}
		stop(t, s)
		f.Heal()
		f.Inject(vfs.Fault{Path: "/a" + strings.Replace(path, "N", "0", 1), Err: syscall.EIO})
		s, err := Open(w.options)
		if err == nil { // the fault lies in a file that Load reads
			must(t, s.Load(t.Context(), w.all))
			if failed := <-s.Failed(); failed != s.MetadataDir() {
				t.Errorf("%s: failed is %s", path, failed)
			}
			_ = s.Close(context.Background()) // the failed directory is not closed cleanly
		}
		f.Heal()
		must(t, m.RemoveAll("/a/.barnabas-boot"))
	}
	if got := len(w.start(t).All()); got != 2 {
		t.Errorf("%d logs once the disks are well", got)
	}
}

func TestFullDisk(t *testing.T) {
	m := vfs.NewMemory()
	w := newWorld(t, m)
	s := w.start(t)
	tp := partition("t", 0)
	l := w.make(t, s, tp)
	must(t, appendValues(l, "a"))
	m.SetLimit(m.Used())
	if err := appendValues(l, strings.Repeat("x", 10_000)); protocol.CodeOf(err) != protocol.KafkaStorageError {
		t.Errorf("got %v", err)
	}
	if err := s.Checkpoint(); !vfs.IsFull(err) {
		t.Errorf("got %v", err)
	}
	s.watch(t.Context())
	if s.Dirs()[0].Err != nil || s.Err(tp) != nil {
		t.Error("a full disk takes nothing offline")
	}
	if _, err := s.Create(partition("u", 0), protocol.NewTopicID(), w.topic); protocol.CodeOf(err) != protocol.KafkaStorageError {
		t.Errorf("got %v", err)
	}
	if s.Get(partition("u", 0)) != nil {
		t.Error("half a partition is there")
	}
	wantValues(t, l, "a")
	m.SetLimit(0)
	must(t, appendValues(l, "b"))
	must(t, s.Checkpoint())
	w.make(t, s, partition("u", 0))
	stop(t, s)
	wantValues(t, w.start(t).Get(tp), "a", "b")
}

func TestDeleteThatFailsCanBeRepeated(t *testing.T) {
	m := vfs.NewMemory()
	f := vfs.NewFaulty(m)
	w := newWorld(t, f)
	s := w.start(t)
	tp := partition("t", 0)
	w.make(t, s, tp)
	f.Inject(vfs.Fault{Op: vfs.OpRename, Path: "/data/t-0", Err: syscall.ENOSPC, Times: 1})
	if err := s.Delete(tp); protocol.CodeOf(err) != protocol.KafkaStorageError || s.Err(tp) == nil {
		t.Errorf("got %v, then %v", err, s.Err(tp))
	}
	must(t, s.Delete(tp))
	if _, err := m.Stat("/data/t-0"); !missing(err) || s.Err(tp) != nil {
		t.Errorf("the folder is still there: %v, %v", err, s.Err(tp))
	}
}

func TestManyPartitions(t *testing.T) {
	const count = 1000
	w := newWorld(t, vfs.NewMemory(), "/a", "/b")
	s := w.start(t)
	specs := make([]Spec, count)
	for i := range specs {
		specs[i] = Spec{Partition: partition("many", int32(i)), TopicID: protocol.NewTopicID(), Config: w.topic, New: true}
	}
	logs, errs := s.CreateAll(specs)
	must(t, errors.Join(errs...))
	for i, l := range logs {
		must(t, appendValues(l, fmt.Sprint(i)))
	}
	stop(t, s)
	s = w.start(t)
	if got := s.All(); len(got) != count {
		t.Fatalf("%d logs", len(got))
	}
	for i := range count {
		wantValues(t, s.Get(partition("many", int32(i))), fmt.Sprint(i))
	}
	stop(t, s)
}
