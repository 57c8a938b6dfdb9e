package broker_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/broker"
	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/leaktest"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// patience bounds whatever a test waits for, and some tests as a whole; it is far above what anything takes.
const patience = 3 * time.Minute

// site is where brokers of one test run, one after the other.
type site struct {
	t          testing.TB
	fs         vfs.FS
	properties map[string]string
	memory     bool // of the metadata
	now        func() time.Time
	network    *pipes             // instead of the system's
	store      coordination.Store // of the cluster that the broker belongs to
	dial       func(ctx context.Context, network, address string) (net.Conn, error)
	boot       string // of the kernel
	// tolerates are parts of errors that the broker may log; others fail the test, panics among them.
	tolerates []string
	over      bool // the time for the start is
	// forgives lets the broker log errors, and its stop fail.
	forgives bool
}

// links are the connections that a broker opens to others; a test cuts them.
type links struct {
	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

// dial is a broker's way through the links.
func (l *links) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		_ = conn.Close() // never used
		return nil, errors.New("the link is cut")
	}
	l.conns = append(l.conns, conn)
	return conn, nil
}

// cut closes all connections and lets no new one be opened, or lets them be opened again.
func (l *links) cut(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
	for _, conn := range l.conns {
		if down {
			_ = conn.Close() // its other end sees that
		}
	}
}

// running is a broker under test.
type running struct {
	*broker.Broker
	site *site
	t    testing.TB
	log  *journal
}

// start runs a broker; the end of the test stops it.
func (s *site) start() *running {
	s.t.Helper()
	r, err := s.try()
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// try is start for brokers that may not start.
func (s *site) try() (*running, error) {
	overrides := []string{"listeners=PLAINTEXT://127.0.0.1:0", "http.listener=", "log.dirs=/data", "group.initial.rebalance.delay.ms=0"}
	for _, key := range slices.Sorted(maps.Keys(s.properties)) {
		overrides = append(overrides, key+"="+s.properties[key])
	}
	loaded, _, err := config.Load(config.LoadOptions{Overrides: overrides})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s.over {
		cancel()
	}
	log := &journal{}
	var listen func(network, address string) (net.Listener, error)
	if s.network != nil {
		listen = s.network.listen
	}
	b, err := broker.Start(ctx, broker.Options{
		Config: loaded, FS: s.fs, Memory: s.memory, Store: s.store, Now: s.now, Listen: listen, Dial: s.dial, BootID: s.boot,
		Logger: slog.New(log),
	})
	if err != nil {
		return nil, err
	}
	r := &running{Broker: b, site: s, t: s.t, log: log}
	s.t.Cleanup(func() {
		r.stop()
		if !s.forgives {
			log.check(s.t, s.tolerates)
		}
	})
	return r, nil
}

// stop ends the broker in order; a broker that has stopped stays so.
func (r *running) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := r.Stop(ctx); err != nil && !r.site.forgives {
		r.t.Errorf("stop: %v", err)
	}
}

// crash ends the broker without a sync or a word: its files stay as they are. What it was about to write is
// of no interest, since the next life runs on a clone.
func (r *running) crash() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = r.Stop(ctx) // it complains about what it could not do
}

// journal is the log of a broker.
type journal struct {
	mu    sync.Mutex
	lines []string
	bad   []string // of level error
}

func (j *journal) Enabled(context.Context, slog.Level) bool { return true }
func (j *journal) WithAttrs([]slog.Attr) slog.Handler       { return j }
func (j *journal) WithGroup(string) slog.Handler            { return j }
func (j *journal) Handle(_ context.Context, r slog.Record) error {
	line := strings.Builder{}
	line.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool { fmt.Fprintf(&line, " %s=%v", a.Key, a.Value); return true })
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line.String())
	if r.Level >= slog.LevelError {
		j.bad = append(j.bad, line.String())
	}
	return nil
}

// check fails the test where the broker had an error.
func (j *journal) check(t testing.TB, tolerated []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, line := range j.bad {
		if slices.ContainsFunc(tolerated, func(part string) bool { return strings.Contains(line, part) }) {
			continue
		}
		t.Errorf("the broker logged: %s", line)
	}
}

// has reports whether a line was logged that contains text.
func (j *journal) has(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.lines, func(line string) bool { return strings.Contains(line, text) })
}

// logs are the digests of all log files, by path.
func logs(t testing.TB, fs vfs.FS, dir string) map[string]string {
	t.Helper()
	digests := map[string]string{}
	folders, err := fs.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		files, err := fs.ReadDir(filepath.Join(dir, folder.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if path := filepath.Join(dir, folder.Name(), f.Name()); strings.HasSuffix(path, ".log") {
				digests[path] = fmt.Sprintf("%x", sha256.Sum256(readFile(t, fs, path)))
			}
		}
	}
	return digests
}

func readFile(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.OpenFile(path, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return b
}
