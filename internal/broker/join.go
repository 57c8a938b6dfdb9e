package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/replica"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// join registers the broker, runs the controller, waits for the first image, and lets clients in.
func (b *Broker) join(ctx, running context.Context) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	b.background.Go(func() { b.runController(running) })
	b.background.Go(func() { b.watchDirs(running) })
	b.background.Go(func() { b.replicas.Run(running) })
	// Clients are let in with the first image: the empty one would tell them that their topics are gone. In a
	// cluster it comes from another broker, so that the listeners open before it, and clients' requests wait.
	if b.shared() {
		b.server.Start()
	}
	select {
	case <-b.view.Ready():
	case <-b.failed:
		return *b.failure.Load()
	case <-ctx.Done():
		return fmt.Errorf("no metadata came from a controller: %w", ctx.Err())
	}
	b.heard.Store(true)
	b.background.Go(b.dirs.Heard) // whoever controls has written down what it means for the in-sync sets
	b.server.Start()
	b.background.Go(b.forgetTopics) // a crash may have come between a deletion and the tombstones
	b.background.Go(func() { b.dirs.Run(running) })
	b.background.Go(func() { b.finishMoves(running) })
	return nil
}

// enter follows the configurations and registers. A session with a shared store may have ended while the logs were loaded,
// or end while an earlier registration is waited for; then it is done with another one.
func (b *Broker) enter(ctx context.Context) error {
	err := b.view.Follow(ctx, b.session())
	if err == nil {
		err = b.register(ctx, b.session(), b.registration())
	}
	for err != nil && b.shared() && errors.Is(err, coordination.ErrSessionLost) && ctx.Err() == nil {
		b.logger.Warn("the session with the metadata store ended during the start, registering with another", "broker", b.id, "reason", err)
		if pause(ctx, rejoinPause) {
			err = b.tryRejoin(ctx)
		}
	}
	return err
}

func (b *Broker) registration() znode.Registration {
	r := znode.Registration{Timestamp: b.options.Now().UnixMilli(), Stopped: b.stopped()}
	r.ID, r.Endpoints = b.id, b.endpoints()
	if rack := b.Config().String("broker.rack"); rack != "" {
		r.Rack = &rack
	}
	return r
}

// stopped says how the last life of this broker ended, by which the controller judges its logs.
func (b *Broker) stopped() znode.Stop {
	trust, earlier := b.dirs.Stopped()
	switch {
	case !earlier:
		return znode.StopNever
	case trust == log.Clean:
		return znode.StopClean
	case trust == log.SameBoot:
		return znode.StopKilled
	}
	return znode.StopUnclean
}

// watchDirs takes partitions that went offline out of service, reads included: what they see may be damaged, or
// gone after the next start. It stops the broker where the directory of the metadata or the store in it fails.
//
// A failed directory fences its partitions; a failed directory of metadata, or a store that cannot write, ends
// the broker, which could otherwise not say what it leads.
func (b *Broker) watchDirs(running context.Context) {
	for {
		select {
		case dir := <-b.dirs.Failed():
			if dir == b.dirs.MetadataDir() {
				b.fail(fmt.Errorf("the directory of the metadata, %s, failed", dir))
				return
			}
		case <-b.dirs.WentOffline():
			for _, tp := range b.replicas.Fence() {
				if tp.Topic == protocol.GroupMetadataTopic {
					b.groups.Resign(tp.Partition)
				}
			}
			b.announceOffline(running)
		case <-b.storeFailed:
			b.fail(fmt.Errorf("the disk of the metadata store failed: it lies in %s", b.dirs.MetadataDir()))
			return
		case <-running.Done():
			return
		}
	}
}

// announceOffline has the controller ask which partitions this broker cannot serve any more, so that others
// lead them, at once or when they are there. A broker that is the whole cluster has nobody to tell.
func (b *Broker) announceOffline(running context.Context) {
	if b.shared() {
		b.background.Go(func() {
			if err := controller.AnnounceLogDirFailure(running, b.session(), b.id); err != nil && running.Err() == nil {
				b.logger.Error("no controller hears of the failed log directory", "error", err)
			}
		})
	}
}

// finishMoves puts copies of logs that have caught up in another directory in the place of the logs.
func (b *Broker) finishMoves(running context.Context) {
	for {
		select {
		case tp := <-b.dirs.CaughtUp():
			if err := b.swap(tp); err != nil {
				b.logger.Error("a partition cannot change its directory yet", "partition", tp, "error", err)
			}
		case <-running.Done():
			return
		}
	}
}

func (b *Broker) swap(tp protocol.TopicPartition) error {
	p, err := b.replicas.Partition(tp)
	if err != nil {
		return err
	}
	return p.SwapLog(func() (*log.Log, error) { return b.dirs.Swap(tp) })
}

// apply hands a change of the cluster to the parts, in this order: the broker's own properties, since they
// are the defaults of topics; the replicas; the coordinators, which read what the replicas lead.
//
// It is called by the view, one change at a time, and must not wait for another change. What takes long
// (loading a coordinator, deleting files) goes on by itself.
func (b *Broker) apply(delta metadata.Delta, image *metadata.Image) map[protocol.TopicPartition]error {
	b.configure(delta, image)
	failed := b.replicas.Apply(delta, image)
	b.coordinate(delta, failed)
	return failed
}

// configure takes over dynamic properties of this broker.
func (b *Broker) configure(delta metadata.Delta, image *metadata.Image) {
	for _, entity := range delta.Configs {
		if entity.Type() != metadata.BrokerEntities {
			continue
		}
		next, err := b.options.Config.WithDynamic(image.BrokerConfig(b.id), image.BrokerConfig(protocol.NoBroker))
		if err != nil {
			b.logger.Error("the broker keeps its old properties: the new ones are not valid", "error", err)
			return
		}
		b.config.Store(next)
		b.dirs.SetConfig(next)
		if limits, err := connectionLimits(next); err == nil {
			b.server.SetLimits(limits)
		}
		return
	}
}

// coordinate tells the group coordinator which partitions it has, and which topics are gone.
func (b *Broker) coordinate(delta metadata.Delta, failed map[protocol.TopicPartition]error) {
	for _, change := range delta.Replicas {
		if change.Topic != protocol.GroupMetadataTopic {
			continue
		}
		// A coordinator whose log cannot be written must not answer from what it has in memory.
		if change.Role != metadata.Lead || failed[change.TopicPartition] != nil {
			b.groups.Resign(change.Partition)
			continue
		}
		if p, err := b.replicas.Partition(change.TopicPartition); err == nil {
			b.groups.Lead(change.Partition, change.State.LeaderEpoch, replica.NewCoordinatorLog(p, b.options.Now))
		}
	}
	if len(delta.Deleted) > 0 {
		b.background.Go(b.forgetTopics)
	}
}

// forgetTopics drops the committed offsets of topics that do not exist any more.
func (b *Broker) forgetTopics() {
	ctx, cancel := context.WithTimeout(context.Background(), b.Config().Duration("request.timeout.ms"))
	defer cancel()
	err := b.groups.ForgetTopics(ctx, func(name string, id protocol.TopicID) bool {
		topic := b.view.Image().Topic(name)
		return topic == nil || !id.IsZero() && topic.ID != id
	})
	if err != nil {
		b.logger.Warn("offsets of deleted topics are kept until they expire", "error", err)
	}
}
