package api

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/group"
	"github.com/barnabas-mq/barnabas/internal/logdir"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/replica"
	"github.com/barnabas-mq/barnabas/internal/server"
	"github.com/barnabas-mq/barnabas/internal/view"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

// Options are the parts that requests reach.
type Options struct {
	// Self is this broker.
	Self protocol.BrokerID
	// ClusterID is the id of the cluster.
	ClusterID string
	// Config gives the broker's properties as they are now, dynamic ones included.
	Config func() *config.Broker
	// Replicas, Dirs, View, Controller and Groups do the work.
	Replicas   *replica.Replicas
	Dirs       *logdir.Set
	View       *view.View
	Controller *controller.Controller
	Groups     *group.Coordinator
	// Clustered is true where other brokers may share the store: what brokers ask each other is then served on
	// the inter-broker listener, and listed.
	Clustered bool
	// GroupPartitions is how many partitions __consumer_offsets has or will have.
	GroupPartitions int
	// Now is the wall clock.
	Now func() time.Time
	// Observe is told of every answered request; it must be quick. Nil for nobody.
	Observe func(Observation)
	// Forward sends a request to the active controller and returns its answer; used where Clustered is true.
	Forward func(context.Context, kmsg.Request) (kmsg.Response, error)
	// ForeignController reports whether the active controller is a broker of Kafka's; nil where there is none.
	ForeignController func(context.Context) bool
	// Draining is closed when the broker begins to stop, and waits for the requests in flight; nil for never.
	Draining func() <-chan struct{}
	// Logger gets what an operator should know.
	Logger *slog.Logger
}

// Observation is one answered request, for whoever measures.
type Observation struct {
	// Key and Version name the API.
	Key, Version int16
	// Total is from the last byte of the request to the finished answer; Local the part of it in the
	// connection's reader.
	Total, Local time.Duration
}

// API answers requests. Its methods may be called concurrently.
type API struct {
	Options
	routes    routes
	sessions  *sessions
	traffic   *Traffic
	producers producerIDs
	pools     *pools
}

// New makes the API of one broker.
func New(o Options) *API {
	slots := int(o.Config().Int("max.incremental.fetch.session.cache.slots"))
	return &API{Options: o, routes: newRoutes(), sessions: newSessions(slots, o.Now), traffic: newTraffic(), pools: newPools(), producers: producerIDs{turn: make(chan struct{}, 1)}}
}

// draining is readable while the broker stops: what waits for something to come answers with what it has.
func (a *API) draining() <-chan struct{} {
	if a.Draining == nil {
		return nil
	}
	return a.Draining()
}

// drainGrace is how long requests that wait for others go on when the broker has begun to stop.
const drainGrace = 500 * time.Millisecond

// within bounds a request by its time, and by drainGrace when the broker stops: what waits for other brokers, as the
// deletion of a topic for one that is dead, would hold up the stop for as long as its client waits. What has been begun is
// carried on by the next controller.
func (a *API) within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	go func() {
		select {
		case <-a.draining():
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(drainGrace):
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// Traffic is what was produced and fetched by topic.
func (a *API) Traffic() *Traffic { return a.traffic }

// Request is one request with its header parsed. It is used again once the request has been answered, unless
// it waits.
//
// frame and body belong to the server and are used again as soon as the first phase has returned; what a second
// phase needs must be copied before.
type Request struct {
	wire.RequestHeader
	// Conn is where it came from.
	Conn *server.Conn

	frame *server.Frame
	pools *pools
	// forwarded says that another broker sends the request on: it must not travel further.
	forwarded bool
}

// Handle is the [server.Handler] of this API. An unknown key, a version that is not served and a body that
// does not decode close the connection, as Kafka does: the client's next request would be misread as well.
//
// A request's way, and on which goroutine:
//
//	reader      frame read → header → route → decode → first phase       one request at a time, in order
//	goroutine   wait (only some)                                         any number, at most one where it holds
//	anybody     a fetch that sleeps, by who has appended                 never two at a time for one request
//	writer      the answer, in the order of the requests                 see package server
//
// What the reader does must not wait for other requests, other brokers or time: all of the connection stands
// behind it. Appending to a log is the exception: its order is the reason for it.
func (a *API) Handle(ctx context.Context, c *server.Conn, f *server.Frame) server.Reply {
	r := a.pools.requests.Get().(*Request)
	body, err := r.Parse(f.Bytes)
	if err != nil {
		return a.refuse(c, "a request header does not decode", "error", err)
	}
	r.Conn, r.frame, r.pools = c, f, a.pools
	reply := a.observed(r, a.dispatch(ctx, r, body))
	if reply.Wait == nil && reply.Phase == nil {
		r.Conn, r.frame = nil, nil
		a.pools.requests.Put(r) // with its client id, which the next request probably has too
	}
	return reply
}

// dispatch hands the request to the handler of its key.
func (a *API) dispatch(ctx context.Context, r *Request, body []byte) server.Reply {
	route := a.routes.find(r.Key)
	if route == nil || route.internal && !a.fromBroker(r.Conn) {
		return a.refuse(r.Conn, "a request has an unknown API key", "key", r.Key)
	}
	if a.Clustered && !route.internal && !a.admitted(ctx) {
		return server.Reply{Close: true}
	}
	if r.Key == int16(kmsg.ApiVersions) && !route.serves(r.Version) {
		return a.apiVersionsTooNew(r)
	}
	if !route.serves(r.Version) {
		return a.refuse(r.Conn, "a request has a version that is not served", "api", kmsg.NameForKey(r.Key), "version", r.Version)
	}
	return route.handle(a, ctx, r, body)
}

// fromBroker reports whether a connection is one of those that brokers use among each other. Without
// authentication that is a matter of listeners, as in Kafka.
func (a *API) fromBroker(c *server.Conn) bool {
	return c.Internal || a.Clustered && c.Listener == a.Config().InterBrokerListener()
}

// admitted waits until the controller has told this broker what there is: before that a client would learn that
// its topics are gone. It reports false where the broker stops or the connection ends first.
func (a *API) admitted(ctx context.Context) bool {
	select {
	case <-a.View.Ready():
		return true
	default:
	}
	select {
	case <-a.View.Ready():
		return true
	case <-a.draining():
	case <-ctx.Done():
	}
	return false
}

// observed reports the request once it is answered.
func (a *API) observed(r *Request, reply server.Reply) server.Reply {
	if a.Observe == nil {
		return reply
	}
	local := time.Since(r.frame.Received)
	switch {
	case reply.Wait != nil:
		reply.Wait = a.observedLater(r, local, reply.Wait)
	case reply.Phase != nil:
		reply.Phase = &observedPhase{Phase: reply.Phase, api: a, received: r.frame.Received,
			observation: Observation{Key: r.Key, Version: r.Version, Local: local}}
	default:
		a.Observe(Observation{Key: r.Key, Version: r.Version, Total: local, Local: local})
	}
	return reply
}

// observedPhase reports a request whose second phase sleeps.
type observedPhase struct {
	server.Phase
	api         *API
	received    time.Time
	observation Observation
}

// Run runs the phase, and reports its answer.
func (o *observedPhase) Run(s *server.Sleep, why server.Why) *server.Response {
	response := o.Phase.Run(s, why)
	if response != nil {
		o.observation.Total = time.Since(o.received)
		o.api.Observe(o.observation)
	}
	return response
}

// observedLater is wait, and reports the request at its end.
func (a *API) observedLater(r *Request, local time.Duration, wait func(context.Context) *server.Response) func(context.Context) *server.Response {
	o, received := Observation{Key: r.Key, Version: r.Version, Local: local}, r.frame.Received
	return func(ctx context.Context) *server.Response {
		response := wait(ctx)
		o.Total = time.Since(received)
		a.Observe(o)
		return response
	}
}

// refuse closes the connection, and says why to the operator.
//
// The operator's line names the client's software, since this is most often an old or a broken library.
func (a *API) refuse(c *server.Conn, why string, attributes ...any) server.Reply {
	name, version := c.ClientSoftware()
	a.Logger.Warn("closing a connection: "+why, append(attributes, "peer", c.RemoteAddr, "client", name, "client_version", version)...)
	return server.Reply{Close: true}
}

// recovered turns a panic of a request that runs in its own goroutine into a closed connection; the
// server does the same for those in the reader.
func (a *API) recovered(r *Request, response **server.Response) {
	cause := recover()
	if cause == nil {
		return
	}
	a.Logger.Error("a request failed with a bug", "api", kmsg.NameForKey(r.Key), "version", r.Version, "panic", cause, "stack", string(debug.Stack()))
	*response = &server.Response{Close: true}
}
