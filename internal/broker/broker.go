package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/api"
	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/group"
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/logdir"
	"github.com/barnabas-mq/barnabas/internal/metrics"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/replica"
	"github.com/barnabas-mq/barnabas/internal/server"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/internal/view"
)

// Options are what a broker is made of.
type Options struct {
	// Config is the broker's configuration.
	Config *config.Broker
	// FS holds the data; nil means the operating system's files.
	FS vfs.FS
	// Memory keeps the cluster's metadata in memory instead of in the metadata directory.
	Memory bool
	// Store holds the metadata of a cluster of several brokers in this process; nil is a store of this broker's
	// own. It outlives the broker.
	Store coordination.Store
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
	// Listen opens the address of a listener; nil means net.Listen.
	Listen func(network, address string) (net.Listener, error)
	// Dial connects to another broker; nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// BootID names the boot of the kernel that holds the page cache under FS; empty means this kernel's. After
	// a power cut it is another one.
	BootID string
	// Version is the program's, for metrics.
	Version string
	// Logger gets what an operator should know; nil discards it.
	Logger *slog.Logger
}

// Broker is a running broker. Its methods may be called concurrently.
//
// Fields are set by the steps of the start, in their order, and do not change afterwards, but for config,
// metrics, failure and holding, which are guarded. A part is nil until its step has run: only a start that
// fails sees that (abandon).
//
//	started   Start has returned, with or without an error
//	failed    something broke: a start under way gives up
//	done      everything has stopped
//
// stopping belongs to the first who wants to stop; the others wait for done.
type Broker struct {
	options Options
	config  atomic.Pointer[config.Broker]
	logger  *slog.Logger

	dirs       *logdir.Set
	files      *log.FileCache
	store      coordination.Store
	closeStore func() error
	// storeFailed is closed when the store's disk fails; nil for a store without one.
	storeFailed <-chan struct{}
	// chroot is the path of the cluster in a ZooKeeper that has others too.
	chroot string
	// holding has the session, which is another one after a shared store ended it.
	holding holding
	// heard is set when a controller has heard how the last life of this broker ended.
	heard atomic.Bool
	id    protocol.BrokerID
	// clusterID is what a store that is shared with other brokers says; empty for one of this broker's own.
	clusterID  string
	replicas   *replica.Replicas
	groups     *group.Coordinator
	view       *view.View
	controller *controller.Controller
	// toController carries this broker's requests to the active controller, forwarding those of its clients,
	// which may wait for long.
	toController, forwarding *controllerChannel
	api                      *api.API
	server                   *server.Server
	metrics                  atomic.Pointer[metrics.Registry]

	// background is what runs until the broker stops.
	background sync.WaitGroup
	cancel     context.CancelFunc

	stopping atomic.Bool   // by whoever set it; the others wait for done
	started  chan struct{} // closed when Start returns
	failed   chan struct{} // closed by the first failure
	done     chan struct{}
	failure  atomic.Pointer[error]
}

// Start runs a broker and returns when clients can use it. ctx bounds the start only.
func Start(ctx context.Context, o Options) (*Broker, error) {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	b := &Broker{options: o, logger: o.Logger, started: make(chan struct{}), failed: make(chan struct{}), done: make(chan struct{})}
	b.config.Store(o.Config)
	defer close(b.started)
	began := time.Now()
	if err := b.start(ctx); err != nil {
		if b.stopping.CompareAndSwap(false, true) { // a failure that comes now finds nothing more to stop
			b.abandon()
			close(b.done)
		}
		return nil, err
	}
	b.logger.Info("serving", "broker", b.id, "cluster", b.dirs.ClusterID(), "listeners", b.Addresses(), "took", time.Since(began).Round(time.Millisecond))
	return b, nil
}

// start runs the steps of the package comment.
func (b *Broker) start(ctx context.Context) error {
	// ctx is for the start; what runs on has a context of its own.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b.cancel = cancel
	for _, step := range []struct {
		name string
		run  func(ctx, running context.Context) error
	}{
		{"connecting to the metadata store", b.connect},
		{"opening the log directories", b.openDirs},
		{"opening the metadata store", b.openStore},
		{"loading the logs", b.loadLogs},
		{"putting the parts together", b.assemble},
		{"opening the listeners", b.listen},
		{"joining the cluster", b.join},
	} {
		if err := step.run(ctx, running); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// Config is the configuration as it is now, dynamic properties included.
func (b *Broker) Config() *config.Broker { return b.config.Load() }

// Addresses are the hosts and ports of the listeners, in their order.
func (b *Broker) Addresses() []string {
	var addresses []string
	for _, l := range b.Config().Listeners() {
		addresses = append(addresses, b.server.Addr(l.Name).String())
	}
	return addresses
}

// Done is closed when the broker has stopped.
func (b *Broker) Done() <-chan struct{} { return b.done }

// Err is why the broker stopped by itself; nil before that and after Stop.
func (b *Broker) Err() error {
	if err := b.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// Stop ends the broker in order. Where ctx ends first, it stops as after a crash.
func (b *Broker) Stop(ctx context.Context) error {
	var err error
	if b.stopping.CompareAndSwap(false, true) {
		err = b.stop(ctx)
		close(b.done)
	}
	<-b.done
	return err
}

// stop runs the steps of the package comment.
//
//	hand over leaderships    so that clients find new leaders before this one is gone
//	resign from groups       members' JoinGroups are answered, or the server would wait for them
//	server                   no new connections; requests in flight are answered
//	background, session      nobody appends any more; the registration goes
//	logs, store              synced, closed, marked as clean
//
// Each step is safe to be cut off: what is not done then is what a crash leaves, and the next start deals with
// that.
func (b *Broker) stop(ctx context.Context) error {
	b.handOver(ctx)
	b.groups.Close()
	errs := []error{b.server.Shutdown(ctx)}
	// From here on nobody appends. The session ends before the logs are closed, which may take long: the
	// sooner the registration goes, the sooner others lead.
	b.cancel()
	b.toController.close()
	b.forwarding.close()
	b.background.Wait()
	if err := b.session().Close(); b.shared() && err != nil {
		b.logger.Warn("the cluster learns of the stop when the session has run out", "broker", b.id, "reason", err)
	} else {
		errs = append(errs, err)
	}
	b.holding.watching.Wait()
	b.view.Close()
	errs = append(errs, b.dirs.Close(ctx), b.closeStore())
	return errors.Join(errs...)
}

// fail stops the broker by itself.
func (b *Broker) fail(err error) {
	b.logger.Error("the broker cannot go on", "error", err)
	if !b.failure.CompareAndSwap(nil, &err) {
		return // it is stopping already
	}
	close(b.failed)
	go func() {
		<-b.started // a start that is under way notices, and gives back what it has taken
		ctx, cancel := context.WithTimeout(context.Background(), failTimeout)
		defer cancel()
		_ = b.Stop(ctx) // the first failure is the one that counts
	}()
}

// failTimeout bounds the orderly part of a stop after a failure.
const failTimeout = 5 * time.Second

// abandon gives back what a start that failed has taken. Directories that were left cleanly are left so again:
// the next start shall not pay for a port that was in use.
func (b *Broker) abandon() {
	b.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), failTimeout)
	defer cancel()
	if b.groups != nil {
		b.groups.Close()
	}
	if b.toController != nil {
		b.toController.close()
		b.forwarding.close()
	}
	if b.server != nil {
		_ = b.server.Shutdown(ctx)
	}
	b.background.Wait()
	if s := b.session(); s != nil {
		_ = s.Close()
		b.holding.watching.Wait()
	}
	if b.view != nil {
		b.view.Close()
	}
	if b.dirs != nil {
		_ = b.dirs.Close(ctx)
	}
	if b.closeStore != nil {
		_ = b.closeStore()
	}
}
