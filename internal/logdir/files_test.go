package logdir

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/google/go-cmp/cmp"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func partition(topic string, number int32) protocol.TopicPartition {
	return protocol.TopicPartition{Topic: topic, Partition: number}
}

// golden is the content of a file that Apache Kafka wrote.
func golden(t testing.TB, name ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, name...)...))
	must(t, err)
	return data
}

// put writes a file without making it durable.
func put(t testing.TB, files vfs.FS, path, text string) {
	t.Helper()
	must(t, files.MkdirAll(filepath.Dir(path), 0o755))
	f, err := files.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	must(t, err)
	_, err = f.WriteAt([]byte(text), 0)
	must(t, err)
	must(t, f.Close())
}

func get(t testing.TB, files vfs.FS, path string) string {
	t.Helper()
	text, err := readFile(files, path, 1<<20)
	must(t, err)
	return string(text)
}

func TestCheckpointsOfKafka(t *testing.T) {
	entries, err := os.ReadDir("testdata/checkpoint")
	must(t, err)
	for _, e := range entries {
		text := golden(t, "checkpoint", e.Name())
		offsets, err := ParseCheckpoint(string(text))
		if err != nil {
			t.Errorf("%s: %v", e.Name(), err)
		}
		// Kafka's lines have the order of a hash map.
		ours, theirs := strings.Split(string(offsets.Format()), "\n"), strings.Split(string(text), "\n")
		slices.Sort(ours)
		slices.Sort(theirs)
		if diff := cmp.Diff(theirs, ours); diff != "" {
			t.Errorf("%s: %s", e.Name(), diff)
		}
	}
	offsets, err := ParseCheckpoint(string(golden(t, "checkpoint", "4.4.0-recovery-point-offset")))
	must(t, err)
	if len(offsets) != 38 || offsets[partition("rolled", 0)] != 60 || offsets[partition("Dots.and_under-scores", 2)] != 3 {
		t.Errorf("%d lines: %v", len(offsets), offsets)
	}
}

func TestDamagedCheckpoints(t *testing.T) {
	good := "0\n2\na 0 5\nb 1 6\n"
	if _, err := ParseCheckpoint(good); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(good); i++ {
		if _, err := ParseCheckpoint(good[:i]); err == nil {
			t.Errorf("%q was taken", good[:i])
		}
	}
	for _, bad := range []string{
		"1\n0\n", "0\n1\n", "0\n-1\n", "0\nx\n", "0\n1\na 0\n", "0\n1\na b 1\n", "0\n1\na -1 1\n", "0\n1\na 0 -1\n",
		"0\n1\na/../b 0 1\n", "0\n2\na 0 1\na 0 2\n", "0\n1\na 0 1\n\n", "0\n1\na 0 99999999999999999999\n", "0\n1\na 4294967296 1\n",
		strings.Repeat("\x00", 100),
	} {
		if offsets, err := ParseCheckpoint(bad); err == nil {
			t.Errorf("%q was taken as %v", bad, offsets)
		}
	}
	m := vfs.NewMemory()
	put(t, m, "/d/c", "0\n1\n")
	offsets, damage, err := readCheckpoint(m, "/d/c")
	if err != nil || damage == nil || len(offsets) != 0 || !strings.Contains(damage.Error(), "/d/c") {
		t.Errorf("%v, %v, %v", offsets, damage, err)
	}
	offsets, damage, err = readCheckpoint(m, "/d/none")
	if err != nil || damage != nil || offsets == nil {
		t.Errorf("%v, %v, %v", offsets, damage, err)
	}
	_, _, err = readCheckpoint(vfs.NewFaulty(m, vfs.Fault{Op: vfs.OpRead, Err: fs.ErrPermission}), "/d/c")
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a disk error is not damage: %v", err)
	}
}

func FuzzParseCheckpoint(f *testing.F) {
	entries, err := os.ReadDir("testdata/checkpoint")
	must(f, err)
	for _, e := range entries {
		f.Add(string(golden(f, "checkpoint", e.Name())))
	}
	f.Add("0\n1\na 0 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		offsets, err := ParseCheckpoint(text)
		if err != nil {
			return
		}
		again, err := ParseCheckpoint(string(offsets.Format()))
		if err != nil || !cmp.Equal(offsets, again) {
			t.Errorf("%v, %v, %v", offsets, again, err)
		}
	})
}

func TestIdentitiesOfKafka(t *testing.T) {
	kraft, err := protocol.ParseTopicID("NV4_ueZYv-GIoATEVmlvTQ")
	must(t, err)
	for version, want := range map[string]Identity{
		"2.8.2": {Version: 0, Node: 1, Cluster: "_Im9oX05RhycyYDrlyiQTQ"},
		"3.9.2": {Version: 0, Node: 1, Cluster: "_dBGENN0TGK-l-9V8vLD6Q"},
		"4.4.0": {Version: 1, Node: 1, Cluster: "AAAAAAAAAAAAAAAAAAAAAQ", Directory: kraft},
	} {
		text := golden(t, "meta", version)
		id, err := parseIdentity(text)
		if err != nil || id != want {
			t.Errorf("%s: %+v, %v", version, id, err)
		}
		line := strings.Split(string(text), "\n")[1]
		at, err := time.Parse("#Mon Jan 02 15:04:05 MST 2006", line)
		must(t, err)
		if got := id.Format(at); !bytes.Equal(got, text) {
			t.Errorf("%s: wrote\n%s, Kafka\n%s", version, got, text)
		}
	}
}

func TestIdentityFaults(t *testing.T) {
	m := vfs.NewMemory()
	if _, err := ReadIdentity(m, "/d"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	for _, bad := range []string{"", "version=2\n", "version=1\nnode.id=1\n", "version=1\ncluster.id=x\n", "version=0\nbroker.id=x\n",
		"version=1\nnode.id=1\ncluster.id=x\ndirectory.id=short\n", "version=1\nnode.id=99999999999\ncluster.id=x\n", "\x00\x00"} {
		put(t, m, "/d/meta.properties", bad)
		if id, err := ReadIdentity(m, "/d"); err == nil || !strings.Contains(err.Error(), "/d/meta.properties") {
			t.Errorf("%q: %+v, %v", bad, id, err)
		}
	}
	odd := Identity{Version: 1, Node: 3, Cluster: `a=b:c\d #!`, Directory: protocol.NewTopicID()}
	must(t, m.MkdirAll("/d", 0o755))
	must(t, WriteIdentity(m, "/d", odd, time.Now()))
	if id, err := ReadIdentity(m, "/d"); err != nil || id != odd {
		t.Errorf("%+v, %v", id, err)
	}
	if odd.check("/d", 3, odd.Cluster) != nil || odd.check("/d", 4, odd.Cluster) == nil || odd.check("/d", 3, "other") == nil {
		t.Error("check is wrong")
	}
}

func FuzzParseIdentity(f *testing.F) {
	for _, version := range []string{"2.8.2", "3.9.2", "4.4.0"} {
		f.Add(golden(f, "meta", version))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		id, err := parseIdentity(text)
		if err != nil {
			return
		}
		if id.Version == 1 && (id.Node == protocol.NoBroker || id.Cluster == "") {
			t.Errorf("%q gave %+v", text, id)
		}
	})
}

func TestMarkersOfKafka(t *testing.T) {
	for version, want := range map[string]protocol.BrokerEpoch{"2.8.2": -1, "3.9.2": -1, "4.4.0": 12} {
		m := vfs.NewMemory()
		text := golden(t, "marker", version)
		put(t, m, "/d/.kafka_cleanshutdown", string(text))
		clean, epoch, err := readMarker(m, "/d")
		if !clean || epoch != want || err != nil {
			t.Errorf("%s: %v, %d, %v", version, clean, epoch, err)
		}
		if len(text) == 0 {
			continue
		}
		must(t, writeMarker(m, "/d", epoch))
		if got := get(t, m, "/d/.kafka_cleanshutdown"); got != string(text) {
			t.Errorf("%s: wrote %q", version, got)
		}
	}
	m := vfs.NewMemory()
	must(t, m.MkdirAll("/d", 0o755))
	if clean, _, err := readMarker(m, "/d"); clean || err != nil {
		t.Errorf("no marker: %v, %v", clean, err)
	}
	put(t, m, "/d/.kafka_cleanshutdown", "garbage")
	if clean, epoch, err := readMarker(m, "/d"); !clean || epoch != protocol.NoBrokerEpoch || err != nil {
		t.Errorf("garbage: %v, %d, %v", clean, epoch, err)
	}
}

func TestFolderNames(t *testing.T) {
	for name, want := range map[string]struct {
		tp     protocol.TopicPartition
		state  State
		unique string
	}{
		"topic-0": {partition("topic", 0), Current, ""},
		"to-delete-0.89f228d2fc1a4bd4859e623dd104e395-delete": {partition("to-delete", 0), Deleted, "89f228d2fc1a4bd4859e623dd104e395"},
		"Dots.and_under-scores-2":                             {partition("Dots.and_under-scores", 2), Current, ""},
		"a.b-7.1f-future":                                     {partition("a.b", 7), Future, "1f"},
		"a-future-7.x-stray":                                  {partition("a-future", 7), Stray, "x"},
		"x-delete-3":                                          {partition("x-delete", 3), Current, ""},
	} {
		tp, state, unique, ok := parseFolder(name)
		if !ok || tp != want.tp || state != want.state || unique != want.unique {
			t.Errorf("%s: %v %v %q %v", name, tp, state, unique, ok)
		}
		if back, err := folderName(tp, state, unique); err != nil || back != name {
			t.Errorf("%s became %s, %v", name, back, err)
		}
	}
	for _, bad := range []string{"lost+found", "topic", "topic-x", "a-delete", "a-0.-delete", "a.x-delete", "-0", "a b-0", ""} {
		if tp, state, _, ok := parseFolder(bad); ok {
			t.Errorf("%q is %v of %v", bad, state, tp)
		}
	}
}

func TestFolderNamesOfLongTopics(t *testing.T) {
	long := partition(strings.Repeat("t", protocol.TopicNameMax), 12345)
	for _, state := range []State{Deleted, Stray} {
		name, err := folderName(long, state, newUnique())
		if err != nil || len(name) != folderNameMax {
			t.Errorf("%s: %d bytes, %v", state, len(name), err)
		}
		if tp, got, _, ok := parseFolder(name); !ok || got != state || tp.Partition != 12345 {
			t.Errorf("%s: %v %v %v", name, tp, got, ok)
		}
	}
	if _, err := folderName(long, Future, newUnique()); protocol.CodeOf(err) != protocol.InvalidTopic {
		t.Errorf("a future folder cannot be shortened: %v", err)
	}
}

func TestBootFile(t *testing.T) {
	m := vfs.NewMemory()
	must(t, m.MkdirAll("/d", 0o755))
	b, err := readBoot(m, "/d")
	if err != nil || b.survived("", "/d") || b.survived("x", "/d") {
		t.Errorf("no file: %+v, %v", b, err)
	}
	must(t, boot{id: "one", path: "/d", suspects: []string{"b-1", "a-0"}}.write(m, "/d"))
	b, err = readBoot(m, "/d")
	if err != nil || !b.survived("one", "/d") || b.survived("two", "/d") || b.survived("one", "/copy") || b.survived("", "/d") {
		t.Errorf("%+v, %v", b, err)
	}
	if !slices.Equal(b.suspects, []string{"a-0", "b-1"}) {
		t.Errorf("suspects %v", b.suspects)
	}
	text := get(t, m, "/d/.barnabas-boot")
	for i := range len(text) - 1 {
		put(t, m, "/d/.barnabas-boot", text[:i])
		if b, err := readBoot(m, "/d"); err != nil || strings.Contains(text[i:], "path") && b.survived("one", "/d") {
			t.Errorf("%q: %+v, %v", text[:i], b, err)
		}
	}
}

// TestCrashWhileReplacing cuts the power before every operation of replacing each of the small files: what
// is read afterwards is the old or the new content.
func TestCrashWhileReplacing(t *testing.T) {
	old, next := Offsets{partition("a", 0): 1, partition("b", 0): 2}, Offsets{partition("a", 0): 7}
	m := vfs.NewMemory()
	f := vfs.NewFaulty(m)
	must(t, m.MkdirAll("/d", 0o755))
	must(t, m.SyncDir("/"))
	must(t, writeFile(f, "/d/c", old.Format()))
	seen := map[int]int{}
	f.BeforeMutation(func(n int64, _ vfs.Op, _ string) {
		for seed := range uint64(20) {
			clone := m.CrashClone(rand.New(rand.NewPCG(seed, uint64(n))), 0.5)
			offsets, damage, err := readCheckpoint(clone, "/d/c")
			if damage != nil || err != nil || !cmp.Equal(offsets, old) && !cmp.Equal(offsets, next) {
				t.Errorf("before operation %d: %v, %v, %v", n, offsets, damage, err)
			}
			seen[len(offsets)]++
		}
	})
	must(t, writeFile(f, "/d/c", next.Format()))
	if seen[1] == 0 || seen[2] == 0 {
		t.Errorf("only one outcome came up: %v", seen)
	}
	offsets, _, err := readCheckpoint(m.CrashClone(rand.New(rand.NewPCG(1, 1)), 0), "/d/c")
	if err != nil || !cmp.Equal(offsets, next) {
		t.Errorf("not durable: %v, %v", offsets, err)
	}
}

// pass lets time pass in a bubble.
func pass(d time.Duration) { <-time.After(d) }

func TestSteadyIgnoresSteps(t *testing.T) {
	for _, step := range []time.Duration{24 * time.Hour, -24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var offset time.Duration
			start := time.Now()
			s := NewSteady(func() time.Time { return time.Now().Add(offset) })
			check := func(when string, want time.Duration) {
				t.Helper()
				if got := s.Now().Sub(start); (got - want).Abs() > time.Second {
					t.Errorf("step %s, %s: %s, want %s", step, when, got, want)
				}
			}
			pass(5 * time.Minute)
			check("before", 5*time.Minute)
			offset = step
			for minute := range 14 {
				pass(time.Minute)
				check("within the hold", time.Duration(6+minute)*time.Minute)
			}
			pass(2 * time.Minute)
			check("after the hold", 21*time.Minute+step)
			pass(time.Hour)
			check("later", 81*time.Minute+step)
		})
	}
}

func TestSteadyForgivesACorrectedStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var offset time.Duration
		start := time.Now()
		s := NewSteady(func() time.Time { return time.Now().Add(offset) })
		offset = time.Hour
		s.Now()
		pass(10 * time.Minute)
		offset = 2 * time.Hour // another step begins the wait anew
		s.Now()
		pass(10 * time.Minute)
		if got := s.Now().Sub(start); got != 20*time.Minute {
			t.Errorf("%s", got)
		}
		offset = 0
		if got := s.Now().Sub(start); got != 20*time.Minute {
			t.Errorf("corrected: %s", got)
		}
		for range 100 { // slow drift is followed
			pass(time.Minute)
			offset += time.Second
			s.Now()
		}
		if got := s.Now().Sub(start); got != 120*time.Minute+100*time.Second {
			t.Errorf("drift: %s", got)
		}
	})
}
