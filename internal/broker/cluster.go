package broker

import (
	"context"
	"errors"
	"io/fs"

	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/logdir"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// shared reports whether the store holds the metadata of several brokers.
//
// It decides about much: with a store of its own a broker is the whole cluster, formats it, and ends with the
// store; with one that is shared it is a member, and outlives a lost session.
func (b *Broker) shared() bool {
	return b.options.Store != nil || b.Config().String("zookeeper.connect") != ""
}

// connect opens a session with a store that is shared with other brokers, and makes the permanent nodes. It
// comes before the log directories are opened: an empty one is formatted for the cluster of the store, and
// one of another cluster is refused. A new store takes over the id that the directories have.
func (b *Broker) connect(ctx, _ context.Context) error {
	if !b.shared() {
		return nil
	}
	if err := b.openShared(); err != nil {
		return err
	}
	wanted := b.Config().ClusterID()
	own, err := b.identity()
	if err != nil {
		return err
	}
	if own.Cluster != "" {
		wanted = own.Cluster
	}
	session, err := b.openSession(ctx)
	if err != nil {
		return err
	}
	b.hold(session)
	if b.clusterID, err = controller.Prepare(ctx, session, wanted); protocol.CodeOf(err) == protocol.InconsistentClusterID {
		err = b.wrongCluster(ctx, own, err)
	}
	return err
}

// identity is what the first log directory that says anything says about whose it is. The directories are not
// locked yet: what it says is compared again once they are.
func (b *Broker) identity() (logdir.Identity, error) {
	none := logdir.Identity{Node: protocol.NoBroker}
	for _, dir := range append([]string{b.Config().MetadataLogDir()}, b.Config().LogDirs()...) {
		id, err := logdir.ReadIdentity(b.options.FS, dir)
		switch {
		case err == nil:
			return id, nil
		case !errors.Is(err, fs.ErrNotExist):
			return none, err
		}
	}
	return none, nil
}

// drawID is the id of a broker whose configuration has none: that of its directories, or a new one.
func (b *Broker) drawID(ctx context.Context) (protocol.BrokerID, error) {
	own, err := b.identity()
	if err != nil || own.Node != protocol.NoBroker {
		return own.Node, err
	}
	if !b.Config().Bool("broker.id.generation.enable") {
		return protocol.NoBroker, errors.New("broker.id is not set, and broker.id.generation.enable is false")
	}
	return controller.NewBrokerID(ctx, b.session(), b.Config().Int("reserved.broker.max.id"))
}
