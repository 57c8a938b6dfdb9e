package broker_test

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// refused starts a broker that must not start, for a reason that names all of want.
func (s *site) refused(want ...string) {
	s.t.Helper()
	_, err := s.try()
	if err == nil {
		s.t.Fatalf("the broker started, want an error about %q", want)
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			s.t.Errorf("the error does not tell of %q: %v", part, err)
		}
	}
}

// withRecords is a disk that a broker has left cleanly, with one topic of two records.
func withRecords(t *testing.T, s *site) {
	t.Helper()
	b := s.start()
	c := b.dial()
	c.create("orders", 1)
	if answer := c.produce("orders", 0, batch(record.BuilderOptions{}, "a", "b")); answer.ErrorCode != 0 {
		t.Fatal(protocol.Code(answer.ErrorCode))
	}
	b.stop()
}

// What goes wrong at one step of a start gives back what the steps before it took: the next start, once the
// cause is gone, finds everything free. Goroutines that are left fail the package.
func TestStartThatFails(t *testing.T) {
	occupied, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer occupied.Close()
	for _, failure := range []struct {
		name string
		with map[string]string
		want []string
	}{
		{"directories", map[string]string{"broker.id": "77"}, []string{"opening the log directories", "77"}},
		{"port in use", map[string]string{"listeners": "PLAINTEXT://" + occupied.Addr().String()}, []string{"opening the listeners", "in use"}},
		{"protocol", map[string]string{"listeners": "SSL://127.0.0.1:0"}, []string{"SSL"}},
	} {
		t.Run(failure.name, func(t *testing.T) {
			s := &site{t: t, fs: vfs.NewMemory(), properties: map[string]string{"broker.id": "1"}}
			withRecords(t, s)
			good := s.properties
			s.properties = failure.with
			s.refused(failure.want...)
			s.properties = good
			b := s.start()
			if !b.log.has("logs are loaded") || b.log.has("unclean") {
				t.Error("the next start had something to repair")
			}
			if got := b.dial().readAll("orders", 0); len(got) != 2 {
				t.Errorf("%d records, want 2", len(got))
			}
		})
	}
}

// The start fails at every operation of its disk in turn: it ends, and the one after it serves.
func TestStartWithAFailingDisk(t *testing.T) {
	disk := vfs.NewFaulty(vfs.NewMemory())
	s := &site{t: t, fs: disk, forgives: true}
	withRecords(t, s)
	failures := 0
	for n := 0; ; n += 1 + n/8 {
		hit := false
		remove := disk.Inject(vfs.Fault{Skip: n, Times: 1, Err: syscall.EIO, Hook: func(vfs.Op, string) { hit = true }})
		b, err := s.try()
		remove()
		if err != nil {
			failures++
		} else {
			b.stop()
		}
		b = s.start()
		if got := b.dial().readAll("orders", 0); len(got) != 2 {
			t.Fatalf("%d records after an error at operation %d, want 2", len(got), n)
		}
		b.stop()
		if !hit {
			break // a start takes fewer operations
		}
	}
	if failures == 0 {
		t.Error("no start failed")
	}
}

func TestStartThatIsCalledOff(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory()}
	withRecords(t, s)
	s.over = true
	if _, err := s.try(); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want canceled", err)
	}
	s.over = false
	s.start()
}

func TestTwoBrokersOnOneDirectory(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory()}
	first := s.start()
	s.refused("/data", "lock")
	first.dial().create("orders", 1) // it did no harm to the first
}

// Folders of topics that the store does not know are somebody else's: they are neither served nor touched.
func TestUnknownFolders(t *testing.T) {
	disk := vfs.NewMemory()
	s := &site{t: t, fs: disk}
	withRecords(t, s)
	if err := disk.MkdirAll("/data/payments-3", 0o755); err != nil {
		t.Fatal(err)
	}
	s.refused("payments-3", "barnabas adopt")
	if _, err := disk.Stat("/data/payments-3"); err != nil {
		t.Errorf("the folder is gone: %v", err)
	}
	if err := disk.RemoveAll("/data/payments-3"); err != nil {
		t.Fatal(err)
	}
	if got := s.start().dial().readAll("orders", 0); len(got) != 2 {
		t.Errorf("%d records, want 2", len(got))
	}
}

// A folder of an earlier topic of the same name is set aside, not served and not deleted.
func TestFolderOfAnEarlierTopic(t *testing.T) {
	disk := vfs.NewMemory()
	s := &site{t: t, fs: disk}
	withRecords(t, s)
	f, err := disk.OpenFile("/data/orders-0/partition.metadata", os.O_RDWR|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("version: 0\ntopic_id: "+protocol.NewTopicID().String()+"\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := s.start().dial().readAll("orders", 0); len(got) != 0 {
		t.Errorf("%d records of an earlier topic are served", len(got))
	}
	folders, err := disk.ReadDir("/data")
	if err != nil {
		t.Fatal(err)
	}
	strays := 0
	for _, folder := range folders {
		if strings.HasPrefix(folder.Name(), "orders-0.") && strings.HasSuffix(folder.Name(), "-stray") {
			strays++
		}
	}
	if strays != 1 {
		t.Errorf("%d stray folders, want 1", strays)
	}
}
