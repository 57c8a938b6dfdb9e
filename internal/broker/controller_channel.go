package broker

import (
	"context"
	"net"
	"slices"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/peer"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// controllerChannel carries requests of this broker to the active controller, wherever it is: each request
// looks into the image, and where another broker leads than before, the channel to the earlier one is closed.
// Toward itself it is a connection in memory, so that one broker and many work alike.
//
// There are two of them in a broker: requests of clients that are sent on may take as long as a client waits,
// and an AlterPartition behind them would hold up acks=all.
type controllerChannel struct {
	broker *Broker

	mu struct {
		sync.Mutex
		closed  bool
		to      *metadata.Broker
		channel *peer.Channel
	}
}

// do sends a request and waits for the answer. It never repeats it: whoever asks knows whether that is
// harmless. NOT_CONTROLLER as an error means that no controller is known.
func (c *controllerChannel) do(ctx context.Context, request kmsg.Request) (kmsg.Response, error) {
	channel, err := c.current()
	if err != nil {
		return nil, err
	}
	return channel.Do(ctx, request)
}

// current is the channel to the controller of the present image.
func (c *controllerChannel) current() (*peer.Channel, error) {
	image := c.broker.view.Image()
	to := image.Broker(image.Controller)
	if to == nil {
		return nil, protocol.Errorf(protocol.NotController, "no controller is known")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return nil, peer.ErrClosed
	}
	if c.mu.channel != nil && c.mu.to.ID == to.ID && slices.Equal(c.mu.to.Endpoints, to.Endpoints) {
		return c.mu.channel, nil
	}
	if c.mu.channel != nil {
		c.mu.channel.Close()
	}
	c.mu.to = to
	c.mu.channel = peer.New(func(ctx context.Context) (net.Conn, error) { return c.broker.dial(ctx, to) }, strconv.Itoa(int(c.broker.id)))
	return c.mu.channel, nil
}

// foreignController reports whether the active controller is a broker of Kafka's, as its registration tells; false where
// that cannot be read.
func (b *Broker) foreignController(ctx context.Context) bool {
	id := b.view.Image().Controller
	data, stat, err := b.session().Get(ctx, znode.BrokerPath(id))
	if err != nil {
		return false
	}
	r, err := znode.DecodeRegistration(id, protocol.BrokerEpoch(stat.Czxid), data)
	return err == nil && r.Stopped == znode.StopUnknown
}

// close ends the channel: requests under way fail, and so do later ones.
func (c *controllerChannel) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.closed = true
	if c.mu.channel != nil {
		c.mu.channel.Close()
	}
}
