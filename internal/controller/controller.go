package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// Options is what a controller needs.
type Options struct {
	// BrokerID is the broker that it runs in.
	BrokerID P.BrokerID
	// Config is the broker's configuration at this moment.
	Config func() *config.Broker
	// Dial connects to a broker's inter-broker listener; to the own broker, in memory.
	Dial func(context.Context, *metadata.Broker) (net.Conn, error)
	// MinInSync is min.insync.replicas of a topic, as far as this broker knows; nil means 1 for all. Only the
	// number of eligible leaders depends on it, not the safety of what was committed.
	MinInSync func(topic string) int
	// Closed says that a broker is to get no new replicas, as far as this broker knows; nil means that none is.
	Closed func(P.BrokerID) bool
	// Policy refuses new topics for reasons of the operator's; nil allows all.
	Policy func(NewTopic) error
	// Now is the wall clock, which stands in znodes that people read; nil means time.Now.
	Now func() time.Time
	// Seed makes the placement of replicas random but repeatable.
	Seed uint64
	// Logger gets every change of leadership, with epoch and reason.
	Logger *slog.Logger
}

// Controller runs for election and leads the cluster when it wins. Its methods may be called concurrently;
// those that ask for something fail with NOT_CONTROLLER while another broker leads.
type Controller struct {
	options   Options
	random    *rand.Rand // only the term's goroutine uses it
	term      atomic.Pointer[term]
	elections elections
	// succeeds is whether another controller was seen in the session; only Run's goroutine uses it.
	succeeds bool
}

// New makes a controller; Run starts it.
func New(o Options) *Controller {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Controller{options: o, random: rand.New(rand.NewPCG(o.Seed, uint64(o.BrokerID)))}
}

// Image is the cluster as the active controller sees it, with the epochs of brokers; nil where this one is
// not active.
func (c *Controller) Image() *metadata.Image {
	if t := c.term.Load(); t != nil {
		return t.published.Load()
	}
	return nil
}

// Epoch is the controller epoch of the term that this controller leads, or false where it leads none.
func (c *Controller) Epoch() (P.ControllerEpoch, bool) {
	if t := c.term.Load(); t != nil {
		return t.cluster.epoch, true
	}
	return 0, false
}

// Run takes part in elections until ctx or the session ends, and returns why; nil for ctx. A broker registers
// on the same session before: both end together, so that nobody is controller whose broker counts as dead.
func (c *Controller) Run(ctx context.Context, session coordination.Session) error {
	watch, err := session.Watch(ctx, znode.ControllerPath, coordination.Node)
	if err != nil {
		return fmt.Errorf("watching %s: %w", znode.ControllerPath, err)
	}
	defer watch.Close()
	c.succeeds = false
	for {
		err := c.runOnce(ctx, session)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, coordination.ErrSessionLost):
			return err
		case err != nil:
			c.options.Logger.Warn("controller: trying again", "error", err)
		}
		if err := c.await(ctx, session, watch, err != nil); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// runOnce runs for election once, and leads if it wins. No error where somebody else leads.
func (c *Controller) runOnce(ctx context.Context, session coordination.Session) error {
	won, ok, err := coordination.Elect(ctx, session, coordination.Candidate{
		LeaderPath: znode.ControllerPath,
		LeaderData: znode.EncodeController(znode.Controller{BrokerID: c.options.BrokerID, Timestamp: c.options.Now().UnixMilli()}),
		EpochPath:  znode.ControllerEpochPath,
	})
	if err != nil || !ok {
		c.succeeds = c.succeeds || err == nil
		return err
	}
	t := newTerm(c, session, won)
	t.cold = !c.succeeds
	c.options.Logger.Info("this broker is the controller", "controller-epoch", won.Epoch)
	err = t.run(ctx)
	c.options.Logger.Info("this broker is no longer the controller", "controller-epoch", won.Epoch, "reason", err)
	return err
}

// retryElection is how long Run waits after an election or a term that failed.
const retryElection = 100 * time.Millisecond

// await waits until it makes sense to run again: the controller's node changed or, after a failure, some
// time has passed.
func (c *Controller) await(ctx context.Context, session coordination.Session, watch coordination.Watch, failed bool) error {
	var timer <-chan time.Time
	if failed {
		timer = time.After(retryElection)
	}
	select {
	case <-watch.Events():
	case <-timer:
	case <-session.Done():
		return session.Err()
	case <-ctx.Done():
	}
	return nil
}
