package admin

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DefaultTimeout bounds a request, its retries included, where [Options] have none.
const DefaultTimeout = 30 * time.Second

// dialTimeout bounds one attempt to connect: an address that drops packets must not hold up a command.
const dialTimeout = 5 * time.Second

// Options say which cluster to talk to, and how.
type Options struct {
	// Bootstrap are the addresses to begin with, as host:port or host (port 9092).
	Bootstrap []string
	// ClientID is what the broker logs and meters us under.
	ClientID string
	// Version is told to the broker with the name of the software.
	Version string
	// Timeout bounds a request with its retries, and how long a producer waits for any of its records to be
	// acknowledged; 0 is [DefaultTimeout].
	Timeout time.Duration
	// Client are further options of the franz-go client, which beat those above.
	Client []kgo.Opt
}

// Client talks to one cluster. It is safe for concurrent use.
//
//	kafka   the franz-go client: connections, metadata, retries, sharding of requests over brokers
//	admin   the same client behind kadm's typed requests
//
// A client is cheap to make and to close; commands make one each.
type Client struct {
	bootstrap []string
	version   string
	timeout   time.Duration
	kafka     *kgo.Client
	admin     *kadm.Client
}

// New makes a client. It connects to nothing yet: an unreachable cluster shows at the first operation.
func New(o Options) (*Client, error) {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	o.Version = cmp.Or(o.Version, "development")
	options := []kgo.Opt{
		kgo.SeedBrokers(o.Bootstrap...),
		kgo.ClientID(o.ClientID),
		kgo.SoftwareNameAndVersion("barnabas", o.Version),
		kgo.Dialer(dialer(min(dialTimeout, o.Timeout))),
		kgo.RetryTimeout(o.Timeout),
		kgo.RequestRetries(5),
		// Whoever gives up on a record (see patience) produces nothing behind it: no sequence is at stake.
		kgo.AllowIdempotentProduceCancellation(),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.DisableClientMetrics(),
	}
	kafka, err := kgo.NewClient(append(options, o.Client...)...)
	if err != nil {
		return nil, err
	}
	c := &Client{bootstrap: o.Bootstrap, version: o.Version, timeout: o.Timeout, kafka: kafka, admin: kadm.NewClient(kafka)}
	c.admin.SetTimeoutMillis(int32(o.Timeout.Milliseconds()))
	return c, nil
}

// errSilent is what is told of an address that answers nothing.
var errSilent = errors.New("no answer to the attempt to connect")

// dialer connects within a timeout. The client would try an address that answers nothing again and again,
// as it may be slow; for a command once is enough, so the error is not one of time.
func dialer(timeout time.Duration) func(ctx context.Context, network, host string) (net.Conn, error) {
	d := net.Dialer{Timeout: timeout}
	return func(ctx context.Context, network, host string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, host)
		var op *net.OpError
		if errors.As(err, &op) && op.Timeout() {
			return nil, &net.OpError{Op: op.Op, Net: op.Net, Source: op.Source, Addr: op.Addr, Err: errSilent}
		}
		return conn, err
	}
}

// Close closes the connections; records that are still buffered are lost.
func (c *Client) Close() { c.kafka.Close() }

// Timeout is how long an operation may take, and how long a producer waits for any acknowledgement.
func (c *Client) Timeout() time.Duration { return c.timeout }

// Kafka is the client underneath.
func (c *Client) Kafka() *kgo.Client { return c.kafka }

// request sends a request to any broker, or to the one that its kind demands, and explains what fails.
func request[R kmsg.Response](ctx context.Context, c *Client, r kmsg.Request) (R, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	response, err := c.kafka.Request(ctx, r)
	if err != nil {
		var none R
		return none, c.Explain(err)
	}
	return response.(R), nil
}

// newest sends a request to the controller: other brokers may not have heard yet of what has just been created, moved or
// changed. Where there is none, or it does not answer, any broker will do.
func newest[R kmsg.Response](ctx context.Context, c *Client, r kmsg.Request) (R, error) {
	cluster, err := c.Cluster(ctx)
	if err != nil {
		var none R
		return none, err
	}
	if cluster.Controller >= 0 {
		asking, cancel := c.limitOne(ctx)
		defer cancel()
		if response, err := c.kafka.Broker(int(cluster.Controller)).Request(asking, r); err == nil {
			return response.(R), nil
		}
	}
	return request[R](ctx, c, r)
}

// limitOne bounds what one broker is asked of many, so that one that hangs does not hold up a command for long.
func (c *Client) limitOne(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, min(c.timeout, dialTimeout))
}

// limit bounds one operation.
//
// It encloses all retries of the client, and those of every broker that a sharded request goes to.
func (c *Client) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout)
}
