package zookeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/jute"
)

// Options say where the ensemble is and how to speak with it. Only Servers is needed.
type Options struct {
	// Servers are host:port; names are resolved again for every try.
	Servers []string
	// Dial connects to one address; nil means TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS is how connections are encrypted; nil means not. ServerName is set to the name in Servers.
	TLS *tls.Config
	// SASL is whom to log in as with DIGEST-MD5; nil means nobody.
	SASL *Credentials
	// ACL is what protects a node that is created without an ACL of its own; path is the session's. nil, and
	// an empty answer, mean that everybody may do everything.
	ACL func(path string) []coordination.ACL
	// MaxPacket is the servers' jute.maxbuffer: they hang up on larger requests, so none is sent. 0 means
	// their default of 1 MiB less one byte.
	MaxPacket int
	// Observe is told how long a request took from being sent to its answer; nil does not want to know. It
	// must not block.
	Observe func(took time.Duration)
	// Logger gets what happens to connections and sessions; nil discards it.
	Logger *slog.Logger
}

// Credentials are a user and a password for SASL DIGEST-MD5.
type Credentials struct {
	Username, Password string
}

// defaultMaxPacket is jute.maxbuffer where nobody has set it.
const defaultMaxPacket = 0xfffff

// The room that is left in a packet for what coordination.Op.Size does not count: a chroot, the ends of a
// transaction. The exact size is checked before sending as well.
const (
	nodeReserve = 1023
	txnReserve  = 255
)

// Store opens sessions on an ensemble. Its methods may be called concurrently.
type Store struct {
	options Options
	limits  coordination.Limits
}

var _ coordination.Store = (*Store)(nil)

// New makes a store; nothing is connected before Open.
func New(o Options) *Store {
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	if o.MaxPacket == 0 {
		o.MaxPacket = defaultMaxPacket
	}
	if o.Observe == nil {
		o.Observe = func(time.Duration) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Store{options: o, limits: coordination.Limits{
		MaxTxnBytes: o.MaxPacket - txnReserve, MaxNodeBytes: o.MaxPacket - nodeReserve,
	}}
}

// Limits implements coordination.Store.
func (s *Store) Limits() coordination.Limits { return s.limits }

// Open implements coordination.Store. Where ctx ends first, the error tells what the servers said last.
func (s *Store) Open(ctx context.Context, o coordination.SessionOptions) (coordination.Session, error) {
	chroot, err := coordination.NewChroot(o.Chroot)
	if err != nil {
		return nil, err
	}
	if o.Timeout <= 0 {
		o.Timeout = coordination.DefaultSessionTimeout
	}
	session := newSession(s, chroot, o)
	session.work.Go(session.run)
	select {
	case <-session.opened:
		return session, nil
	case <-session.done:
		return nil, fmt.Errorf("opening a session: %w", session.Err())
	case <-ctx.Done():
	}
	outcome, reason := session.giveUp()
	return nil, fmt.Errorf("opening a session on %s: %w: %w (%w)",
		strings.Join(s.options.Servers, ","), outcome, ctx.Err(), reason)
}

// acls are those of a node that is about to be created at a path of the session's.
func (s *Store) acls(path string, wanted []coordination.ACL) []jute.ACL {
	if wanted == nil && s.options.ACL != nil {
		wanted = s.options.ACL(path)
	}
	if len(wanted) == 0 {
		return []jute.ACL{{Permissions: jute.PermAll, Scheme: "world", ID: "anyone"}}
	}
	acls := make([]jute.ACL, len(wanted))
	for i, a := range wanted {
		acls[i] = jute.ACL{Permissions: a.Permissions, Scheme: a.Scheme, ID: a.ID}
	}
	return acls
}

// defaultPort is what a server without a port in zookeeper.connect listens on.
const defaultPort = "2181"

// ParseConnect takes Kafka's zookeeper.connect apart: "host1:2181,host2:2181,[::1]:2181/chroot". A chroot of
// "/" is none. Servers come back as host:port.
func ParseConnect(connect string) (servers []string, chroot string, err error) {
	hosts := connect
	if i := strings.IndexByte(connect, '/'); i >= 0 {
		hosts, chroot = connect[:i], connect[i:]
	}
	if chroot == "/" {
		chroot = ""
	}
	if chroot != "" {
		if err := coordination.ValidatePath(chroot); err != nil {
			return nil, "", fmt.Errorf("the chroot of %q: %w", connect, err)
		}
	}
	for server := range strings.SplitSeq(hosts, ",") {
		server = strings.TrimSpace(server)
		if server == "" {
			continue
		}
		host, port, err := net.SplitHostPort(server)
		if err != nil {
			host, port = strings.Trim(server, "[]"), defaultPort
		}
		if host == "" || port == "" || strings.ContainsAny(host, " \t") {
			return nil, "", fmt.Errorf("%q is no host:port", server)
		}
		servers = append(servers, net.JoinHostPort(host, port))
	}
	if len(servers) == 0 {
		return nil, "", errors.New("no server is named")
	}
	return servers, chroot, nil
}

// shuffled is a random order of a list: brokers that start together shall not all ask the same server.
func shuffled(list []string) []string {
	list = append([]string(nil), list...)
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
