package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/zookeeper"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// openShared makes the store that this broker shares with others: the one of the options, or the ensemble of
// zookeeper.connect.
func (b *Broker) openShared() error {
	b.closeStore = func() error { return nil }
	if b.options.Store != nil {
		b.store = b.options.Store
		return nil
	}
	c := b.Config()
	servers, chroot, err := zookeeper.ParseConnect(c.String("zookeeper.connect"))
	if err != nil {
		return fmt.Errorf("zookeeper.connect: %w", err)
	}
	o := zookeeper.Options{Servers: servers, Dial: b.options.Dial, Observe: b.holding.answered, Logger: b.logger}
	if o.SASL, err = zooKeeperLogin(c); err != nil {
		return err
	}
	if o.TLS, err = zooKeeperTLS(c, b.options.FS); err != nil {
		return err
	}
	if c.Bool("zookeeper.set.acl") {
		if o.SASL == nil && (o.TLS == nil || len(o.TLS.Certificates) == 0) {
			return errors.New("zookeeper.set.acl=true protects what this broker writes for whoever it logs in as, and it does not log in: " +
				"set zookeeper.sasl.jaas.config, or zookeeper.ssl.client.enable and zookeeper.ssl.keystore.location")
		}
		o.ACL = znode.SecureACL
	}
	b.store, b.chroot = zookeeper.New(o), chroot
	return nil
}

// openSession opens a session with the shared store, within zookeeper.connection.timeout.ms.
//
// zookeeper.connection.timeout.ms bounds the first contact; after that the session's own timeout counts, which
// the ensemble may cut to what it allows.
func (b *Broker) openSession(ctx context.Context) (coordination.Session, error) {
	c := b.Config()
	o := coordination.SessionOptions{Timeout: c.Duration("zookeeper.session.timeout.ms"), Chroot: b.chroot}
	patience := o.Timeout
	if c.IsSet("zookeeper.connection.timeout.ms") {
		patience = c.Duration("zookeeper.connection.timeout.ms")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := b.store.Open(ctx, o)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no session within %v (zookeeper.connection.timeout.ms): %w", patience, err)
		}
		return nil, err
	}
	if err := b.ensureChroot(ctx, s); err != nil {
		_ = s.Close() // the error before counts
		return nil, err
	}
	return s, nil
}

// ensureChroot creates the path that all of the cluster lies under, where it is missing. That takes a session
// that sees what is above it.
func (b *Broker) ensureChroot(ctx context.Context, s coordination.Session) error {
	if b.chroot == "" {
		return nil
	}
	_, there, err := s.Exists(ctx, "/")
	if err != nil || there {
		return err
	}
	above, err := b.store.Open(ctx, coordination.SessionOptions{Timeout: s.Timeout()})
	if err != nil {
		return err
	}
	return errors.Join(coordination.EnsurePath(ctx, above, b.chroot), above.Close())
}

// zooKeeperLogin reads zookeeper.sasl.jaas.config; nil where it is not set.
//
//	org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="secret";
func zooKeeperLogin(c *config.Broker) (*zookeeper.Credentials, error) {
	const key = "zookeeper.sasl.jaas.config"
	text := strings.TrimSuffix(strings.TrimSpace(c.String(key)), ";")
	if text == "" {
		return nil, nil //nolint:nilnil // nobody logs in
	}
	module, options, _ := strings.Cut(text, " ")
	if !strings.HasSuffix(module, "DigestLoginModule") {
		return nil, fmt.Errorf("%s: %s is not supported, only org.apache.zookeeper.server.auth.DigestLoginModule is", key, module)
	}
	var who zookeeper.Credentials
	for _, name := range []string{"username", "password"} {
		_, rest, ok := strings.Cut(options, name+"=\"")
		value, _, closed := strings.Cut(rest, "\"")
		if !ok || !closed {
			return nil, fmt.Errorf("%s has no %s=\"…\"", key, name)
		}
		if name == "username" {
			who.Username = value
		} else {
			who.Password = value
		}
	}
	return &who, nil
}

// registrationSlack is what servers may need beyond a session's timeout to end it: they count in ticks, and a
// new leader among them begins to count anew.
const registrationSlack = 4 * time.Second
