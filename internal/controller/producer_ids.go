package controller

import (
	"context"
	"errors"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// AllocateProducerIDsFor is AllocateProducerIDs for a broker that says which life of it asks.
func (c *Controller) AllocateProducerIDsFor(ctx context.Context, broker P.BrokerID, epoch P.BrokerEpoch) (first P.ProducerID, count int32, err error) {
	image := c.Image()
	if image == nil {
		return P.NoProducerID, 0, P.NotController
	}
	if b := image.Broker(broker); b == nil || b.Epoch != epoch {
		return P.NoProducerID, 0, P.StaleBrokerEpoch
	}
	return c.AllocateProducerIDs(ctx, broker)
}

// AllocateProducerIDs reserves a block of producer ids for a broker, and returns its first id and how many
// there are. No id is ever in two blocks; one whose reservation was not heard of is lost.
func (c *Controller) AllocateProducerIDs(ctx context.Context, broker P.BrokerID) (first P.ProducerID, count int32, err error) {
	t := c.term.Load()
	if t == nil {
		return P.NoProducerID, 0, P.NotController
	}
	for {
		data, stat, err := t.session.Get(ctx, znode.ProducerIDBlockPath)
		if err != nil {
			return P.NoProducerID, 0, failed(err)
		}
		block, err := znode.NextProducerIDBlock(data, broker)
		if err != nil {
			return P.NoProducerID, 0, P.Errorf(P.UnknownServerError, "%w", err)
		}
		_, err = coordination.FencedTxn(ctx, t.session, t.guard,
			coordination.Set(znode.ProducerIDBlockPath, znode.EncodeProducerIDBlock(block), stat.Version))
		switch {
		case err == nil:
			return block.First, int32(block.Last - block.First + 1), nil
		case errors.Is(err, coordination.ErrBadVersion) && !errors.Is(err, coordination.ErrFenced):
			continue // another broker took the block
		}
		return P.NoProducerID, 0, failed(err)
	}
}
