package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/logdir"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// runController takes part in elections until the broker stops. Where the session ends, the cluster takes this
// broker for dead: with a store that is shared it registers again, under a new epoch, and goes on; its partitions
// have served all the while, unless others lead them by now. The built-in store ends its session only when it
// fails.
func (b *Broker) runController(running context.Context) {
	for {
		err := b.controller.Run(running, b.session())
		if running.Err() != nil {
			return
		}
		if !b.shared() {
			b.fail(fmt.Errorf("the session with the metadata store ended: %w", err))
			return
		}
		if !ended(b.session()) {
			// The store did not answer, and the session lives: with a second one this broker would find its own
			// registration in its way.
			b.logger.Warn("the metadata store did not answer the controller, trying again", "broker", b.id, "error", err)
			if !pause(running, rejoinPause) {
				return
			}
			continue
		}
		b.logger.Warn("the session with the metadata store ended, registering again", "broker", b.id, "epoch", b.view.BrokerEpoch(), "reason", err)
		if err := b.rejoin(running); err != nil {
			if running.Err() == nil {
				b.fail(err)
			}
			return
		}
	}
}

// rejoinPause is how long the broker waits before it tries again to get back into its cluster.
const rejoinPause = time.Second

// rejoin opens a new session and registers, however long the store is away. Its error is final: somebody else
// has this broker's id, or the store does not let it in.
//
// Until it succeeds the broker goes on serving what it leads, if others have not taken over: epochs fence it
// where they have.
func (b *Broker) rejoin(running context.Context) error {
	for {
		err := b.tryRejoin(running)
		switch {
		case err == nil || running.Err() != nil:
			return err
		case errors.Is(err, coordination.ErrNodeExists), errors.Is(err, coordination.ErrAuth):
			return err
		}
		b.logger.Error("this broker is not back in its cluster yet; it serves what it leads, and tries again", "broker", b.id, "error", err)
		pause(running, rejoinPause)
	}
}

// ended reports whether a session has ended.
func ended(s coordination.Session) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

// pause lets d pass; false where ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// tryRejoin is one try of rejoin.
func (b *Broker) tryRejoin(running context.Context) error {
	s, err := b.openSession(running)
	if err != nil {
		return err
	}
	if err = b.sameCluster(running, s); err == nil {
		err = b.view.Follow(running, s)
	}
	if err == nil {
		r := b.registration()
		if b.heard.Load() { // the process lives: nothing of its logs can be missing that was there then
			r.Stopped = znode.StopClean
		}
		err = b.register(running, s, r)
	}
	if err != nil {
		_ = s.Close() // the error before counts
		return err
	}
	b.hold(s)
	b.logger.Info("back in the cluster", "broker", b.id, "epoch", b.view.BrokerEpoch())
	return nil
}

// sameCluster demands that the store still holds this broker's cluster. One that was wiped, or is another, is
// not written to: the partitions would look deleted.
func (b *Broker) sameCluster(ctx context.Context, s coordination.Session) error {
	data, _, err := s.Get(ctx, znode.ClusterIDPath)
	if errors.Is(err, coordination.ErrNoNode) {
		return fmt.Errorf("the metadata store does not know the cluster %s any more: it was wiped, or it is another one. Restore its data", b.dirs.ClusterID())
	}
	if err != nil {
		return err
	}
	id, err := znode.DecodeClusterID(data)
	if err == nil && id != b.dirs.ClusterID() {
		err = fmt.Errorf("the metadata store holds the cluster %s, and this broker belongs to %s", id, b.dirs.ClusterID())
	}
	return err
}

// register registers the broker on a session. Orders to an earlier life of it are refused from then on, and a
// clean stop is remembered under this epoch. In a shared store an id that is taken is waited for no longer than
// a session without its broker can last.
func (b *Broker) register(ctx context.Context, s coordination.Session, r znode.Registration) error {
	waiting := ctx
	if b.shared() {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, s.Timeout()+registrationSlack)
		defer cancel()
	}
	epoch, err := controller.Register(waiting, s, r)
	switch {
	case err != nil && ctx.Err() == nil && (waiting.Err() != nil || errors.Is(err, coordination.ErrNodeExists)):
		return b.taken(ctx, s, err)
	case err != nil:
		return err
	}
	b.dirs.SetBrokerEpoch(epoch)
	b.view.SetBrokerEpoch(epoch)
	return nil
}

// taken says who has the id of this broker, which could not be had in time; if nobody has it, cause is why.
func (b *Broker) taken(ctx context.Context, s coordination.Session, cause error) error {
	data, stat, err := s.Get(ctx, znode.BrokerPath(b.id))
	if err != nil || stat.EphemeralOwner == s.ID() {
		return cause
	}
	var where []string
	if other, err := znode.DecodeRegistration(b.id, protocol.BrokerEpoch(stat.Czxid), data); err == nil {
		for _, e := range other.Endpoints {
			where = append(where, fmt.Sprintf("%s:%d", e.Host, e.Port))
		}
	}
	return fmt.Errorf("broker id %d is taken: another broker is registered with it, at %s, and stayed so while this one waited. "+
		"Stop the other one, or give this one another broker.id (%w: session %#x)",
		b.id, strings.Join(where, ", "), coordination.ErrNodeExists, stat.EphemeralOwner)
}

// wrongCluster explains a store that belongs to another cluster than this broker, and what to do.
func (b *Broker) wrongCluster(ctx context.Context, own logdir.Identity, cause error) error {
	where := "the metadata store"
	if connect := b.Config().String("zookeeper.connect"); connect != "" {
		where = "zookeeper.connect=" + connect
	}
	if own.Cluster == "" {
		return fmt.Errorf("%w: cluster.id does not fit %s", cause, where)
	}
	stored := "ID"
	if data, _, err := b.session().Get(ctx, znode.ClusterIDPath); err == nil {
		if id, err := znode.DecodeClusterID(data); err == nil {
			stored = id
		}
	}
	var files []string
	for _, dir := range b.Config().LogDirs() {
		files = append(files, dir+"/meta.properties")
	}
	return fmt.Errorf("%w, as its log directories say. Is %s right, its chroot included, and was the store not wiped? "+
		"Only where the records do belong into that cluster: sed -i 's/^cluster.id=.*/cluster.id=%s/' %s", cause, where, stored, strings.Join(files, " "))
}
