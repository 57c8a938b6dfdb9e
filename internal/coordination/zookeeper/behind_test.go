package zookeeper

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/zookeeper/zktest"
)

// reasons hands on why servers could not be used.
type reasons chan string

func (r reasons) Enabled(context.Context, slog.Level) bool { return true }

func (r reasons) Handle(_ context.Context, record slog.Record) error {
	record.Attrs(func(a slog.Attr) bool {
		if a.Key == "reason" {
			r <- a.Value.String()
		}
		return true
	})
	return nil
}

func (r reasons) WithAttrs([]slog.Attr) slog.Handler { return r }

func (r reasons) WithGroup(string) slog.Handler { return r }

// A server that was set back does not let a session in that has seen more, and does not say why. The session says it,
// stays suspended, and goes on when newer data is there.
func TestServerThatWasSetBack(t *testing.T) {
	server(t)
	dir := t.TempDir()
	zk, err := zktest.Start(zktest.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(zk.Kill)
	said := make(reasons, 1000)
	s := openSession(t, New(Options{Servers: []string{zk.Address}, Logger: slog.New(said)}), 0)
	mine := create(t, s, "/mine", coordination.CreateOptions{Ephemeral: true})
	data, newest := filepath.Join(dir, "data"), filepath.Join(dir, "newest")
	zk.Kill()
	if err := errors.Join(os.Rename(data, newest), os.Mkdir(data, 0o755), zk.Restart()); err != nil {
		t.Fatal(err)
	}
	ctx := bounded(t)
	for explained := false; !explained; {
		select {
		case reason := <-said:
			explained = strings.Contains(reason, "which this session has seen: its data was lost, or set back to an old backup")
		case <-ctx.Done():
			t.Fatal("nothing is said of the data")
		}
	}
	if err := s.Err(); err != nil {
		t.Fatalf("the session has ended: %v", err)
	}
	zk.Kill()
	if err := errors.Join(os.RemoveAll(data), os.Rename(newest, data), zk.Restart()); err != nil {
		t.Fatal(err)
	}
	if stat, ok, err := s.Exists(bounded(t), "/mine"); err != nil || !ok || stat != mine {
		t.Errorf("%+v, %v, %v; want %+v", stat, ok, err, mine)
	}
}

func TestNewestTransaction(t *testing.T) {
	for answer, want := range map[string]int64{
		"Zookeeper version: 3.8.0\nLatency min/avg/max: 0/0.0/0\nZxid: 0x100000024\nMode: standalone\n": 0x100000024,
		"srvr is not executed because it is not in the whitelist.\n":                                    0,
		"Zxid: 0xzz\n": 0,
		"":             0,
	} {
		if got, known := newestTransaction([]byte(answer)); got != want || known != (want != 0) {
			t.Errorf("%q: %#x, %v; want %#x", answer, got, known, want)
		}
	}
}
