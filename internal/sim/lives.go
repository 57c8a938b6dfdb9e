package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/barnabas-mq/barnabas/internal/broker"
	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// startLimit is how long a broker may need to start: longer than the session of its earlier life.
const startLimit = 2 * time.Minute

// machine is where the lives of one broker run, one after the other, on what the one before left on the disk.
type machine struct {
	world *world
	id    int
	host  string
	disk  *vfs.Memory
	files *vfs.Faulty // the disk with its faults, as the present life sees it
	boots int
	skew  atomic.Int64 // of its clock, in nanoseconds

	mu struct {
		sync.Mutex
		broken  bool // its disk has had errors
		full    bool // its disk has a limit
		lives   int
		life    *life // nil while it is down
		retired bool  // it is not started any more
	}
}

// life is one process of a broker.
type life struct {
	machine *machine
	number  int  // of the machine's lives, from 1
	cramped bool // it has started on a full disk
	broker  *broker.Broker
	// end ends a start that is under way.
	end context.CancelFunc
	// dead is true from the moment of the crash: what the goroutines of the process still do has no effect.
	dead atomic.Bool
	// sessions are those that it has opened with the store.
	sessions struct {
		sync.Mutex
		ids []int64
	}
}

func newMachine(w *world, id int) *machine {
	m := &machine{world: w, id: id, host: hostOf(id), disk: vfs.NewMemory()}
	m.files = vfs.NewFaulty(m.disk)
	return m
}

// current is the life that runs; nil while the machine is down.
func (m *machine) current() *life {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.life
}

// start begins a life, unless there is one. It returns when the broker serves; an error is one that the broker stopped with.
func (m *machine) start(ctx context.Context) error {
	w := m.world
	overrides := []string{
		"listeners=PLAINTEXT://" + m.host + ":9092", "http.listener=", "log.dirs=/data", fmt.Sprintf("broker.id=%d", m.id),
	}
	loaded, _, err := config.Load(config.LoadOptions{Overrides: append(overrides, w.plan.properties...)})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	l := &life{machine: m, end: cancel}
	m.mu.Lock()
	if m.mu.retired {
		m.mu.Unlock()
		return errRetired
	}
	if m.mu.life != nil { // somebody else was faster
		m.mu.Unlock()
		return nil
	}
	w.history.count("lives", 1)
	m.mu.lives++
	l.number, l.cramped, m.mu.life = m.mu.lives, m.mu.full, l
	files, boot := m.files, m.boots
	m.mu.Unlock()
	b, err := broker.Start(ctx, broker.Options{
		Config: loaded, FS: files, Store: sessions{w.store, l}, BootID: fmt.Sprintf("boot-%d", boot),
		Listen: func(_, address string) (net.Listener, error) {
			if l.dead.Load() {
				return nil, syscall.ECONNABORTED
			}
			return w.network.listen(m.host, address)
		},
		Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
			if l.dead.Load() {
				return nil, syscall.ECONNABORTED
			}
			return w.network.dial(ctx, m.host, address)
		},
		Now:    func() time.Time { return time.Now().Add(time.Duration(m.skew.Load())) },
		Logger: slog.New(w.journal.of(l)),
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		if m.mu.life == l {
			m.mu.life = nil
		}
		l.dead.Store(true)
		return err
	}
	l.broker = b
	w.ending.Go(func() { m.watch(l) })
	if m.mu.life != l { // it crashed or was stopped in its last step
		w.ending.Go(l.discard)
	}
	return nil
}

// name tells this life from all others.
func (l *life) name() string { return fmt.Sprintf("%s.%d", l.machine.host, l.number) }

// errRetired is what a machine says that is not started any more.
var errRetired = errors.New("the run is over")

// watch starts a broker again that has stopped by itself, as a supervisor would.
func (m *machine) watch(l *life) {
	<-l.broker.Done()
	m.mu.Lock()
	own := m.mu.life == l
	if own {
		m.mu.life = nil
	}
	m.mu.Unlock()
	w := m.world
	if !own || w.abandoned() {
		return
	}
	l.dead.Store(true)
	w.history.count("stopped by themselves", 1)
	w.journal.note("%s stopped by itself: %v", m.host, l.broker.Err())
	w.sleep(m.host, uint64(l.number), 500*time.Millisecond)
	m.revive(context.Background())
}

// revive starts the broker if it is down, and again until it serves.
func (m *machine) revive(ctx context.Context) {
	w := m.world
	w.network.light(m.host)
	for tries := 1; m.current() == nil && !w.abandoned(); tries++ {
		err := m.start(ctx)
		if err == nil || errors.Is(err, errRetired) {
			return
		}
		w.journal.note("%s does not start: %v", m.host, err)
		if tries == 20 {
			w.history.violate("%s does not start: %v", m.host, err)
			return
		}
		w.sleep(m.host, uint64(tries), time.Second)
	}
}

// crash ends a life at once. With power the page cache survives, as after kill -9; without it the disk keeps
// what was synced, and of the rest what the dice leave.
func (m *machine) crash(power bool, keep float64) {
	m.mu.Lock()
	l := m.mu.life
	m.mu.life = nil
	if l == nil {
		m.mu.Unlock()
		return
	}
	l.dead.Store(true)
	l.end()
	w := m.world
	w.network.kill(m.host, !power)
	if power {
		keep = 1
	} else {
		m.boots++
	}
	m.disk = m.disk.CrashClone(w.dice.source("disk of "+l.name()), keep)
	m.files = vfs.NewFaulty(m.disk)
	m.mu.Unlock()
	l.cutStore()
	w.history.scanDisk(m)
	w.ending.Go(func() { l.discard() })
}

// discard ends the goroutines of a life that has crashed.
func (l *life) discard() {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	l.machine.mu.Lock()
	b := l.broker
	l.machine.mu.Unlock()
	if b != nil {
		_ = b.Stop(over) // it complains about what it could not do
	}
}

// retire ends a life in order, for the last time.
func (m *machine) retire(ctx context.Context) {
	m.mu.Lock()
	m.mu.retired = true
	m.mu.Unlock()
	m.stop(ctx)
}

// stop ends a life in order.
func (m *machine) stop(ctx context.Context) {
	m.mu.Lock()
	l := m.mu.life
	m.mu.life = nil
	m.mu.Unlock()
	if l == nil {
		return
	}
	if l.broker == nil {
		l.end() // it has only begun to start
		return
	}
	if err := l.broker.Stop(ctx); err != nil {
		m.world.journal.note("%s: stop: %v", m.host, err)
	}
	l.dead.Store(true)
	m.world.history.scanDisk(m)
}

// cutStore keeps a life from the store: its sessions expire after their timeouts, unless joinStore comes first.
func (l *life) cutStore() { l.eachSession(l.machine.world.store.Suspend) }

// joinStore ends cutStore.
func (l *life) joinStore() { l.eachSession(l.machine.world.store.Resume) }

// expire ends the sessions of a life in the store.
func (l *life) expire() { l.eachSession(l.machine.world.store.Expire) }

// eachSession does something with all sessions that a life has opened.
func (l *life) eachSession(do func(id int64)) {
	l.sessions.Lock()
	defer l.sessions.Unlock()
	for _, id := range l.sessions.ids {
		do(id)
	}
}
