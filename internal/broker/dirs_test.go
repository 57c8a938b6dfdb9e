package broker_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// twoDirs is a site with two log directories, the first of which has the metadata.
func twoDirs(t *testing.T, fs vfs.FS) *site {
	return &site{t: t, fs: fs, network: new(pipes), forgives: true, properties: map[string]string{
		"log.dirs": "/a,/b", "offsets.topic.num.partitions": "1", "log.retention.check.interval.ms": "60000",
	}}
}

// spread makes a topic of four partitions, writes a record to each, and returns those in each directory.
func spread(c *conn) map[string][]int32 {
	c.t.Helper()
	c.create("orders", 4)
	for p := range int32(4) {
		if answer := c.produce("orders", p, batch(record.BuilderOptions{}, fmt.Sprint("first ", p))); answer.ErrorCode != 0 {
			c.t.Fatal(protocol.Code(answer.ErrorCode))
		}
	}
	in := map[string][]int32{}
	for _, dir := range c.dirs() {
		for _, topic := range dir.Topics {
			for _, p := range topic.Partitions {
				if topic.Topic == "orders" {
					in[dir.Dir] = append(in[dir.Dir], p.Partition)
				}
			}
		}
	}
	if len(in["/a"]) == 0 || len(in["/b"]) == 0 {
		c.t.Fatalf("partitions are in %v", in)
	}
	return in
}

// dirs describes the log directories, by path.
func (c *conn) dirs() map[string]kmsg.DescribeLogDirsResponseDir {
	c.t.Helper()
	all := map[string]kmsg.DescribeLogDirsResponseDir{}
	for _, dir := range ask[*kmsg.DescribeLogDirsResponse](c, &kmsg.DescribeLogDirsRequest{Version: 4}).Dirs {
		all[dir.Dir] = dir
	}
	return all
}

// serves checks that the given partitions of orders work, and no others.
func (c *conn) serves(working []int32) {
	c.t.Helper()
	for p := range int32(4) {
		want := protocol.KafkaStorageError
		if slices.Contains(working, p) {
			want = protocol.None
		}
		written := protocol.Code(c.produce("orders", p, batch(record.BuilderOptions{}, "more")).ErrorCode)
		read := c.fetch("orders", p, 0)
		if written != want || protocol.Code(read.ErrorCode) != want {
			c.t.Errorf("partition %d: written with %v, read with %v, want %v", p, written.Name(), protocol.Code(read.ErrorCode).Name(), want.Name())
		}
		if want == protocol.None && !strings.Contains(string(read.RecordBatches), fmt.Sprint("first ", p)) {
			c.t.Errorf("partition %d has lost its first record", p)
		}
	}
}

// TestLostDirectory starts a broker one of whose directories is gone: the others serve, also new topics, and
// nothing takes the place of what was lost.
func TestLostDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMemory()
		s := twoDirs(t, fs)
		b := s.start()
		in := spread(b.dial())
		b.stop()
		if err := fs.Rename("/b", "/away"); err != nil {
			t.Fatal(err)
		}
		b = s.start()
		c := b.dial()
		c.serves(in["/a"])
		if got := protocol.Code(c.dirs()["/b"].ErrorCode); got != protocol.KafkaStorageError {
			t.Errorf("the lost directory is described with %v", got)
		}
		if code := c.tryCreate("later"); code != protocol.None {
			t.Errorf("creating a topic: %v", code)
		}
		if answer := c.produce("later", 0, batch(record.BuilderOptions{}, "x")); answer.ErrorCode != 0 {
			t.Errorf("producing to a new topic: %v", protocol.Code(answer.ErrorCode))
		}
		if !b.log.has("/b was in use before") {
			t.Error("the broker does not say which directory is lost")
		}
		b.stop()
		if err := fs.RemoveAll("/b"); err != nil {
			t.Fatal(err)
		}
		if err := fs.Rename("/away", "/b"); err != nil {
			t.Fatal(err)
		}
		s.start().dial().serves([]int32{0, 1, 2, 3})
	})
}

// TestFailingDirectory lets a directory's disk fail under a broker: its partitions are offline, the others
// serve, and all are back after the next start with a disk that works.
func TestFailingDirectory(t *testing.T) {
	for name, fault := range map[string]vfs.Fault{
		"writes fail":          {Op: vfs.OpWrite, Path: "/b", Err: syscall.EIO},
		"everything fails":     {Path: "/b", Err: syscall.EIO},
		"it becomes read-only": {Op: vfs.OpWrite, Path: "/b", Err: syscall.EROFS},
		"syncs fail":           {Op: vfs.OpSync, Path: "/b", Err: syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := vfs.NewFaulty(vfs.NewMemory())
				s := twoDirs(t, disk)
				b := s.start()
				c := b.dial()
				in := spread(c)
				disk.Inject(fault)
				for _, p := range in["/b"] {
					c.produce("orders", p, batch(record.BuilderOptions{}, "on its way"))
				}
				time.Sleep(5 * time.Minute) // the sync of the background meets the fault, if nobody else does
				c.serves(in["/a"])
				if got := protocol.Code(c.dirs()["/b"].ErrorCode); got != protocol.KafkaStorageError {
					t.Errorf("the directory is described with %v", got)
				}
				if len(b.Degraded()) == 0 {
					t.Error("the broker says that it serves everything")
				}
				b.stop()
				disk.Heal()
				s.start().dial().serves([]int32{0, 1, 2, 3})
			})
		})
	}
}

// TestFailingMetadataDirectory lets the disk with the metadata fail: the broker stops by itself and says why.
func TestFailingMetadataDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewFaulty(vfs.NewMemory())
		s := twoDirs(t, disk)
		b := s.start()
		c := b.dial()
		in := spread(c)
		disk.Inject(vfs.Fault{Op: vfs.OpSync, Path: "/a", Err: syscall.EIO})
		c.send(alterRequest("orders", "retention.ms", "5000"))
		select {
		case <-b.Done():
		case <-time.After(patience):
			t.Fatal("the broker goes on without its metadata")
		}
		if err := b.Err(); err == nil || !strings.Contains(err.Error(), "/a") {
			t.Errorf("it stopped with %v", err)
		}
		disk.Heal()
		again := s.start().dial()
		again.serves([]int32{0, 1, 2, 3})
		_ = in
	})
}

// TestBadDirectories starts brokers on directories that are not as they were left. Each start is refused with
// a sentence that says what is wrong where, and changes nothing.
func TestBadDirectories(t *testing.T) {
	for _, one := range []struct {
		name string
		harm func(t *testing.T, s *site)
		want string
	}{
		{"meta.properties is gone", func(t *testing.T, s *site) { remove(t, s.fs, "/a/meta.properties") }, "/a is metadata.log.dir and empty"},
		{"meta.properties of the only directory is gone", func(t *testing.T, s *site) {
			s.properties["log.dirs"] = "/a"
			remove(t, s.fs, "/a/meta.properties")
		}, "no meta.properties: put it back"},
		{"meta.properties is empty", func(t *testing.T, s *site) { write(t, s.fs, "/a/meta.properties", "") }, "/a/meta.properties"},
		{"meta.properties is garbage", func(t *testing.T, s *site) { write(t, s.fs, "/a/meta.properties", "\x00\xff\x00") }, "/a/meta.properties"},
		{"meta.properties of the future", func(t *testing.T, s *site) { write(t, s.fs, "/a/meta.properties", "version=9\n") }, "version"},
		{"meta.properties of another cluster", func(t *testing.T, s *site) {
			write(t, s.fs, "/b/meta.properties", "version=1\nnode.id=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\ndirectory.id=BBBBBBBBBBBBBBBBBBBBBA\n")
		}, "cluster"},
		{"another broker's id", func(_ *testing.T, s *site) { s.properties["node.id"] = "7" }, "7"},
		{"the metadata directory is empty", func(t *testing.T, s *site) {
			if err := s.fs.Rename("/a", "/away"); err != nil {
				t.Fatal(err)
			}
		}, "/a"},
		{"the metadata store is gone", func(t *testing.T, s *site) {
			entries, err := s.fs.ReadDir("/a")
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if strings.HasPrefix(e.Name(), ".barnabas-meta") {
					remove(t, s.fs, "/a/"+e.Name())
				}
			}
		}, "adopt"},
		{"read-only", func(_ *testing.T, s *site) {
			disk := vfs.NewFaulty(s.fs)
			for _, op := range []vfs.Op{vfs.OpCreate, vfs.OpWrite, vfs.OpRename, vfs.OpMkdir, vfs.OpLock, vfs.OpRemove} {
				disk.Inject(vfs.Fault{Op: op, Err: syscall.EROFS})
			}
			s.fs = disk
		}, "read-only"},
	} {
		t.Run(one.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := vfs.NewMemory()
				s := twoDirs(t, fs)
				b := s.start()
				spread(b.dial())
				b.stop()
				one.harm(t, s)
				before := logsIn(t, fs)
				_, err := s.try()
				if err == nil || !strings.Contains(err.Error(), one.want) {
					t.Errorf("the start: %v, want it to name %q", err, one.want)
				}
				for path, digest := range logsIn(t, fs) {
					if before[path] != digest {
						t.Errorf("%s has changed", path)
					}
				}
			})
		})
	}
}

// logsIn are the digests of all logs in both directories, where they are.
func logsIn(t *testing.T, fs vfs.FS) map[string]string {
	all := map[string]string{}
	for _, dir := range []string{"/a", "/b"} {
		if _, err := fs.Stat(dir); err != nil {
			continue
		}
		for path, digest := range logs(t, fs, dir) {
			all[path] = digest
		}
	}
	return all
}

func remove(t *testing.T, fs vfs.FS, path string) {
	t.Helper()
	if err := fs.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, fs vfs.FS, path, text string) {
	t.Helper()
	f, err := fs.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		t.Fatal(err)
	}
}

// TestSecondBroker starts a broker on the directory of a running one: it is refused, and the first is not
// disturbed.
func TestSecondBroker(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory()}
	c := s.start().dial()
	c.create("orders", 1)
	second := *s
	if _, err := second.try(); err == nil || !strings.Contains(err.Error(), "in use by another broker") {
		t.Errorf("the second broker: %v", err)
	}
	if answer := c.produce("orders", 0, batch(record.BuilderOptions{}, "x")); answer.ErrorCode != 0 {
		t.Error(protocol.Code(answer.ErrorCode))
	}
}

// TestDamagedLog flips a byte in the middle of a log between two lives. After a power cut the damage is found by
// the scan; after a kill, where logs are trusted at first, by the check in the background. Either way the
// partition goes offline and says where, the others serve, and not a byte is cut.
func TestDamagedLog(t *testing.T) {
	for _, boot := range []string{"first", "second"} {
		t.Run(boot+" boot", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := vfs.NewMemory()
				s := &site{t: t, fs: fs, network: new(pipes), forgives: true, boot: "first"}
				r := s.start()
				c := r.dial()
				for _, topic := range []string{"damaged", "sound"} {
					c.create(topic, 1)
					for range 50 {
						c.produce(topic, 0, batch(record.BuilderOptions{}, strings.Repeat("v", 1000)))
					}
				}
				r.crash()
				const path = "/data/damaged-0/00000000000000000000.log"
				bytes := readFile(t, fs, path)
				bytes[len(bytes)/2] ^= 1
				write(t, fs, path, string(bytes))
				s.boot = boot
				r = s.start()
				time.Sleep(time.Minute)
				c = r.dial()
				for what, code := range map[string]int16{
					"produce": c.produce("damaged", 0, batch(record.BuilderOptions{}, "x")).ErrorCode,
					"fetch":   c.fetch("damaged", 0, 0).ErrorCode,
					"list":    c.listOffset("damaged", 0, -1).ErrorCode,
				} {
					if protocol.Code(code) != protocol.KafkaStorageError {
						t.Errorf("%s: %v", what, protocol.Code(code).Name())
					}
				}
				if got := len(c.readAll("sound", 0)); got != 50 {
					t.Errorf("%d records in the sound log", got)
				}
				if !r.log.has(path) {
					t.Error("the broker does not say where the damage is")
				}
				if after := readFile(t, fs, path); string(after) != string(bytes) {
					t.Error("the damaged log has changed")
				}
				r.stop()
				if code := s.start().dial().fetch("damaged", 0, 0).ErrorCode; protocol.Code(code) != protocol.KafkaStorageError {
					t.Errorf("after the next start: %v", protocol.Code(code).Name())
				}
			})
		})
	}
}
