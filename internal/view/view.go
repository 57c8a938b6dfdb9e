// Package view is the cluster as this broker knows it: the current image, what came before it, and a way to
// wait for what comes next.
//
// Two kinds of sources feed it. The controller pushes: UpdateMetadata is what clients are shown,
// LeaderAndIsr and StopReplica are orders to this broker's own replicas. The configurations come from the
// store, by a watch. The sources are not ordered among each other.
//
//	LeaderAndIsr ────┐
//	StopReplica ─────┤ one at a time                   ┌─▶ Apply: replicas, coordinators, …
//	UpdateMetadata ──┼──────────────▶ (delta, image) ──┤
//	watch of /config ┘                                 └─▶ then the image is current, waiters look
//
// An order to a replica is not shown to clients: a topic that this broker has one partition of would
// otherwise look like a topic of one partition until UpdateMetadata comes.
package view

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Options is what a view needs.
type Options struct {
	// Self is this broker.
	Self P.BrokerID
	// ClusterID stands in every image.
	ClusterID string
	// Apply carries out every change, one at a time and in order, before the image becomes current. It
	// returns what failed by partition, for the answer to LeaderAndIsr and StopReplica. It must not call
	// the view's methods that wait.
	Apply func(metadata.Delta, *metadata.Image) map[P.TopicPartition]error
	// End says what a replica on this broker holds: the epoch of its last record, and its log end offset; false where
	// it cannot be said. It stands in the answer where a partition has no leader. Nil means that nobody can say.
	End func(P.TopicPartition) (P.LeaderEpoch, P.Offset, bool)
	// Offline reports whether the log of a partition cannot be used any more: the answer to LeaderAndIsr says so,
	// also where the order is an old one. Nil means never.
	Offline func(P.TopicPartition) bool
	// Logger gets what an operator should know.
	Logger *slog.Logger
}

// View holds the current image. Its methods may be called concurrently.
//
// Readers take current without a lock and may keep the image for as long as they like. Writers take changing,
// in whichever goroutine they are: the controller's connection or the watch of the store.
//
//	controller   only rises: an order of a lower epoch comes from a controller that was deposed
//	epoch        of this registration: an order with a lower one was meant for an earlier life, when other logs were here
//	hosted       for judging orders; it is not the image, which clients see
//	configs      by mzxid, so that a late event of the watch cannot undo a newer read
type View struct {
	options Options
	current atomic.Pointer[moment]
	ready   chan struct{} // closed with the first UpdateMetadata
	epoch   atomic.Int64  // of this broker
	closing chan struct{} // closed by Close

	closeOnce sync.Once

	// changing is held while a change is made and applied. What follows belongs to whoever holds it.
	changing turn
	// controller is the highest controller epoch that was heard of.
	controller P.ControllerEpoch
	// life is the newest life of this broker that a controller has known. Its first order may come before the answer to the
	// registration, which SetBrokerEpoch waits for.
	life P.BrokerEpoch
	// hosted holds the replicas on this broker.
	hosted map[P.TopicPartition]hosted
	// configs holds the transactions that wrote the configurations in the image.
	configs map[metadata.Entity]int64
	session coordination.Session // nil before Follow
	follows sync.WaitGroup
}

// turn is a lock that may be held while the store is read: who waits for a mutex would stop the virtual clock of
// tests.
type turn chan struct{}

// Lock waits for the turn; it cannot be given up.
func (t turn) Lock() { t <- struct{}{} }

// Unlock hands the turn on.
func (t turn) Unlock() { <-t }

// hosted is what the controller said last of a replica on this broker.
type hosted struct {
	topicID P.TopicID
	epoch   P.LeaderEpoch
	// life is the one in which it was said, or said again.
	life P.BrokerEpoch
}

// moment is an image while it is current.
type moment struct {
	image *metadata.Image
	over  chan struct{} // closed when the next one is current
}

// New makes a view whose image is empty but for the cluster's id.
func New(o Options) *View {
	if o.Apply == nil {
		o.Apply = func(metadata.Delta, *metadata.Image) map[P.TopicPartition]error { return nil }
	}
	if o.End == nil {
		o.End = func(P.TopicPartition) (P.LeaderEpoch, P.Offset, bool) { return 0, 0, false }
	}
	if o.Offline == nil {
		o.Offline = func(P.TopicPartition) bool { return false }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	v := &View{
		options: o, ready: make(chan struct{}), closing: make(chan struct{}),
		hosted: map[P.TopicPartition]hosted{}, configs: map[metadata.Entity]int64{}, changing: make(turn, 1),
	}
	image, _ := metadata.Empty().With(metadata.SetClusterID{ID: o.ClusterID})
	v.current.Store(&moment{image: image, over: make(chan struct{})})
	v.epoch.Store(int64(P.NoBrokerEpoch))
	return v
}

// Image is the current image.
func (v *View) Image() *metadata.Image { return v.current.Load().image }

// Ready is closed when the controller has told for the first time who lives and what there is. Before that
// clients get no answers: the empty image would tell them that their topics are gone.
func (v *View) Ready() <-chan struct{} { return v.ready }

// SetBrokerEpoch says which life of this broker orders are for; those for earlier ones are refused.
func (v *View) SetBrokerEpoch(epoch P.BrokerEpoch) { v.epoch.Store(int64(epoch)) }

// BrokerEpoch is what SetBrokerEpoch said; NoBrokerEpoch before.
func (v *View) BrokerEpoch() P.BrokerEpoch { return P.BrokerEpoch(v.epoch.Load()) }

// Wait returns when seen is true of the current image, at once where it is already, or with ctx's error.
func (v *View) Wait(ctx context.Context, seen func(*metadata.Image) bool) error {
	for {
		now := v.current.Load()
		if seen(now.image) {
			return nil
		}
		select {
		case <-now.over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends what Follow began.
func (v *View) Close() {
	v.closeOnce.Do(func() { close(v.closing) })
	v.follows.Wait()
}

// change makes and applies the next image; v.changing is held. replicas are the orders that come with it.
func (v *View) change(replicas []metadata.ReplicaChange, changes ...metadata.Change) map[P.TopicPartition]error {
	now := v.current.Load()
	image, delta := now.image.With(changes...)
	delta.Replicas = replicas
	if delta.Empty() {
		return nil
	}
	failed := v.options.Apply(delta, image)
	if image != now.image {
		v.current.Store(&moment{image: image, over: make(chan struct{})})
		close(now.over)
	}
	return failed
}

// admit checks the epochs of a request of a controller, and remembers the controller's; v.changing is held.
func (v *View) admit(controller P.BrokerID, epoch P.ControllerEpoch, broker P.BrokerEpoch) P.Code {
	if own := v.BrokerEpoch(); broker != P.NoBrokerEpoch && broker < own {
		v.options.Logger.Info("refusing an order to an earlier life of this broker", "controller", controller, "broker-epoch", broker, "own", own)
		return P.StaleBrokerEpoch
	}
	if epoch < v.controller {
		v.options.Logger.Warn("refusing an order of a deposed controller", "controller", controller, "controller-epoch", epoch, "newest", v.controller)
		return P.StaleControllerEpoch
	}
	v.controller, v.life = epoch, max(v.life, broker, v.BrokerEpoch())
	return P.None
}

// ids turns what a message holds into broker ids; an empty list stays nil.
func ids(numbers []int32) []P.BrokerID {
	if len(numbers) == 0 {
		return nil
	}
	out := make([]P.BrokerID, len(numbers))
	for i, n := range numbers {
		out[i] = P.BrokerID(n)
	}
	return out
}
