package controller

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/peer"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// settleTime is how long a controller that has started cold waits for brokers that it knows of and does
// not see, before it takes them out of in-sync sets.
const settleTime = 10 * time.Second

// retryAfter is how long a term waits before it tries again what the store did not answer.
const retryAfter = 100 * time.Millisecond

// maxRequests bounds the requests that wait for a term; one more waits to get in.
const maxRequests = 128

// term is one time of leading the cluster. One goroutine, in run, owns everything in it but what is said
// to be shared; others hand it functions to call.
type term struct {
	controller *Controller
	session    coordination.Session
	guard      coordination.Guard
	// ctx ends with the term.
	ctx context.Context

	// cluster is what decisions are made from.
	cluster cluster
	// registered is the version of the parent of the registrations, as of when they were read last.
	registered int32
	// spoken holds, by their name in metrics, the topics whose names hold a '.' or '_'.
	spoken map[string]string
	// deletions holds the topics on their way out. They stay in the image until they are gone, so that the
	// next controller finds what this one was doing; decisions and pushes leave them out.
	deletions map[string]*deletion
	// moving holds the partitions that are being reassigned, and ending those whose old replicas are being
	// deleted; requested is what an old tool has asked for that has not ended.
	moving    map[P.TopicPartition]bool
	ending    map[P.TopicPartition]*ending
	requested []znode.Reassignment
	// queues holds those of the living brokers that are being told.
	queues map[P.BrokerID]*live

	// What has to be read again. The flags mean everything of their kind.
	look struct {
		brokers, topics, deletions bool
		requests, notifications    bool // znodes of old tools, and of brokers
		all                        bool // not to be read, but to be decided about
		moves                      bool // reassignments may have come further
		topic                      map[string]bool
		state                      map[P.TopicPartition]bool
	}
	// owed holds the partitions that brokers were not told about, since their states had to be read first.
	owed map[P.TopicPartition]bool
	// refresh is true where the brokers have not been told yet who lives.
	refresh bool
	retry   <-chan time.Time // set while something could not be read or written
	settle  <-chan time.Time // set while settling
	// cold is whether this broker has seen no other controller in its session: the cluster may be starting, and
	// others be on their way. Where it has, who is missing now has died.
	cold  bool
	again <-chan time.Time // set while a replica refused to be deleted
	// balancing fires at balanceAt, when leadership is looked at.
	balancing <-chan time.Time
	widening  <-chan time.Time // set when brokers have joined
	// stuck fires at stuckAt, when partitions that nobody may lead are looked at; unclean holds those of their topics
	// that allowed an unclean election when that was read last.
	stuck     <-chan time.Time
	stuckAt   time.Time
	unclean   map[string]bool
	balanceAt time.Time
	filling   filling
	unmet     refusals

	// Shared with the goroutines of requests and queues.

	// requests holds what others want done; a function returns an error only where it is the store's.
	requests chan func() error
	// answers is unbuffered: a queue tells no more before its last answer has been looked at.
	answers chan answer
	// done is closed when the term has ended.
	done chan struct{}
	// published is the newest image, for those who may not touch cluster.
	published atomic.Pointer[metadata.Image]
	// waits are the unclean elections that will be held.
	waits atomic.Pointer[[]Wait]
	// queueing counts the queues' goroutines, which the term outlives.
	queueing sync.WaitGroup
}

// live is the queue to one life of a broker; end stops it, whatever it is waiting for.
type live struct {
	*queue
	end context.CancelFunc
}

func newTerm(c *Controller, session coordination.Session, won coordination.Leadership) *term {
	t := &term{
		controller: c, session: session, guard: won.Guard,
		cluster: cluster{
			image: metadata.Empty(), stops: map[P.BrokerID]znode.Stop{}, loads: newLoads(),
			ends: map[P.TopicPartition]map[P.BrokerID]logEnd{}, leaving: map[P.BrokerID]P.BrokerEpoch{}, minimum: c.options.MinInSync,
			epoch: P.ControllerEpoch(won.Epoch), waiting: waiting{},
		},
		unclean: map[string]bool{},
		spoken:  map[string]string{}, deletions: map[string]*deletion{}, queues: map[P.BrokerID]*live{},
		requests: make(chan func() error, maxRequests), answers: make(chan answer), done: make(chan struct{}),
	}
	t.cluster.loads.closed = c.options.Closed
	t.moving, t.ending = map[P.TopicPartition]bool{}, map[P.TopicPartition]*ending{}
	t.look.topic, t.look.state, t.owed = map[string]bool{}, map[P.TopicPartition]bool{}, map[P.TopicPartition]bool{}
	return t
}

// watches are what a term hears of the store.
type watches struct {
	brokers, topics, deletions, controller coordination.Watch
	// reassignments and elections are single znodes, changes and dirs lists of announcements.
	reassignments, elections, changes, dirs coordination.Watch
}

// run leads until ctx ends, the session is lost or somebody else leads, and returns why.
func (t *term) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	t.ctx = ctx
	defer t.queueing.Wait()
	defer cancel()
	defer close(t.done)
	// The watches come first: what changes while the cluster is read raises an event afterwards.
	w, err := t.watch()
	defer w.close()
	if err != nil {
		return err
	}
	if err := t.load(); err != nil {
		return err
	}
	t.controller.term.Store(t)
	defer t.controller.term.CompareAndSwap(t, nil)
	for {
		if err := t.work(); err != nil {
			return err
		}
		if err := t.wait(w); err != nil {
			return err
		}
	}
}

func (t *term) watch() (w watches, err error) {
	for _, one := range []struct {
		at   *coordination.Watch
		path string
		mode coordination.Mode
	}{
		{&w.controller, znode.ControllerPath, coordination.Node},
		// A registration may go and come back in between: its data tells, not the list of names.
		{&w.brokers, znode.BrokersPath, coordination.Subtree},
		{&w.topics, znode.TopicsPath, coordination.Subtree},
		{&w.deletions, znode.DeleteTopicsPath, coordination.Children},
		{&w.reassignments, znode.ReassignPartitionsPath, coordination.Node},
		{&w.elections, znode.PreferredElectionPath, coordination.Node},
		{&w.changes, znode.IsrChangesPath, coordination.Children},
		{&w.dirs, znode.LogDirEventsPath, coordination.Children},
	} {
		if *one.at, err = t.session.Watch(t.ctx, one.path, one.mode); err != nil {
			return w, err
		}
	}
	return w, nil
}

func (w watches) close() {
	for _, one := range []coordination.Watch{w.brokers, w.topics, w.deletions, w.controller, w.reassignments, w.elections, w.changes, w.dirs} {
		if one != nil {
			one.Close()
		}
	}
}

// errDeposed ends a term whose node in the store is gone or another's.
var errDeposed = errors.New("another controller has been elected")

// wait takes one event; what it is about is looked at in work.
func (t *term) wait(w watches) error {
	select {
	case <-w.brokers.Events():
		t.look.brokers = true
	case event := <-w.topics.Events():
		// The term's own writes come back as events, thousands at once after a failover.
		t.topicEvent(event)
		for range len(w.topics.Events()) {
			t.topicEvent(<-w.topics.Events())
		}
	case <-w.deletions.Events():
		t.look.deletions = true
	case <-w.reassignments.Events():
		t.look.requests = true
	case <-w.elections.Events():
		t.look.requests = true
	case <-w.changes.Events():
		t.look.notifications = true
	case <-w.dirs.Events():
		t.look.notifications = true
	case <-t.widening:
		t.widening = nil
		return t.survive(t.widenInternal())
	case <-t.balancing:
		return t.survive(t.balance())
	case <-t.filling.wake:
		return t.survive(t.fill())
	case plan := <-t.filling.planned:
		return t.survive(t.filled(plan))
	case <-w.controller.Events():
		return t.stillLeading()
	case request := <-t.requests:
		return t.survive(request())
	case a := <-t.answers:
		return t.answered(a)
	case <-t.retry:
		t.retry = nil
	case <-t.settle:
		t.settled()
	case <-t.again:
		t.again = nil
		t.repeatDeletions()
		t.repeatErasures()
	case <-t.stuck:
		return t.survive(t.decideStuck())
	case <-t.unmet.repeat:
		t.repeatOrders()
	case <-t.session.Done():
		return t.session.Err()
	case <-t.ctx.Done():
		return t.ctx.Err()
	}
	return nil
}

// certain reports whether the session lives for certain. Otherwise another controller may have been elected, and this
// one keeps still, whatever it is that the store does not answer; what it writes is fenced anyway. It may be called by
// anybody.
func (t *term) certain() bool { return time.Now().Before(t.session.Deadline()) }

// stillLeading looks whether the controller's node is still this session's.
func (t *term) stillLeading() error {
	stat, ok, err := t.session.Exists(t.ctx, znode.ControllerPath)
	switch {
	case err != nil:
		return err
	case !ok || stat.EphemeralOwner != t.session.ID():
		return errDeposed
	}
	return nil
}

// work reads again what events pointed at, decides, writes and pushes. What the store did not answer stays
// to be looked at, and is tried again a little later.
func (t *term) work() error {
	for range workRounds {
		for _, step := range []func() error{
			t.readBrokers, t.readTopics, t.readDeletions, t.decideAgain, t.readNotifications, t.readStates, t.readRequests, t.advanceMoves,
		} {
			if err := t.survive(step()); err != nil {
				return err
			}
		}
		if !t.looking() || t.retry != nil {
			break
		}
	}
	if t.looking() && t.retry == nil {
		t.retry = time.After(retryAfter) // somebody else writes the same znodes
	}
	t.reachAll()
	return nil
}

// workRounds bounds how often work looks at what its own steps have raised, before events get their turn.
const workRounds = 3

// looking reports whether there is anything to be read again.
func (t *term) looking() bool {
	return t.look.brokers || t.look.topics || t.look.deletions || t.look.requests || t.look.notifications || t.look.all || t.look.moves || len(t.look.topic) > 0 || len(t.look.state) > 0
}

// survive sorts an error of the store: one that ends the term is returned, any other makes work try again.
func (t *term) survive(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, coordination.ErrFenced), errors.Is(err, coordination.ErrSessionLost), t.ctx.Err() != nil:
		return err
	}
	t.controller.options.Logger.Warn("controller: the store did not answer, trying again", "error", err)
	if t.retry == nil {
		t.retry = time.After(retryAfter)
	}
	return nil
}

// change replaces the image and counts what changed.
func (t *term) change(changes ...metadata.Change) metadata.Delta {
	image, d := t.cluster.image.With(changes...)
	t.cluster.image = image
	t.cluster.loads.apply(d.Partitions)
	t.follow(d.Partitions)
	for _, topic := range d.Deleted {
		if t.spoken[metricName(topic.Name)] == topic.Name {
			delete(t.spoken, metricName(topic.Name))
		}
	}
	for _, topic := range d.Created {
		if ambiguous(topic.Name) {
			t.spoken[metricName(topic.Name)] = topic.Name
		}
	}
	t.published.Store(image)
	return d
}

// follow keeps track of the partitions that are being reassigned, and of those that have a leader again.
func (t *term) follow(changes []metadata.PartitionChange) {
	for _, c := range changes {
		if c.New != nil && moving(c.New) {
			t.moving[c.TopicPartition], t.look.moves = true, true
		} else {
			delete(t.moving, c.TopicPartition)
		}
		if c.New == nil || c.New.Leader != P.NoBroker {
			delete(t.cluster.ends, c.TopicPartition)
			delete(t.cluster.waiting, c.TopicPartition)
		}
	}
}

// reach starts telling a living broker, beginning with all that it has to know.
func (t *term) reach(b *metadata.Broker) {
	t.leave(b.ID)
	ctx, end := context.WithCancel(t.ctx)
	options := &t.controller.options
	settings := options.Config()
	q := &queue{
		broker: b.ID,
		sender: sender{controller: options.BrokerID, epoch: t.cluster.epoch, broker: b.Epoch, listener: settings.InterBrokerListener()},
		channel: peer.New(func(ctx context.Context) (net.Conn, error) {
			return options.Dial(ctx, b)
		}, text(int64(options.BrokerID))),
		foreign: t.cluster.stops[b.ID] == znode.StopUnknown,
		timeout: settings.Duration("controller.socket.timeout.ms"),
		certain: t.certain, answers: t.answers, logger: options.Logger, wake: make(chan struct{}, 1),
	}
	t.queues[b.ID] = &live{queue: q, end: end}
	t.tellAll(q)
	t.queueing.Go(func() { q.run(ctx) })
}

// leave stops telling a broker. What it was not told yet is void: its next life is told everything.
func (t *term) leave(id P.BrokerID) {
	if l := t.queues[id]; l != nil {
		l.end()
		delete(t.queues, id)
		delete(t.unmet.orders, id)
	}
}
