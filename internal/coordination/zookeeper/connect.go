package zookeeper

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/jute"
)

// How long a round over all servers waits before the next: it doubles from one to the other. Servers that come
// back give the session its full time, of which no more than a sixth is slept away.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
)

// longer is the pause after a pause.
func (s *Session) longer(pause time.Duration) time.Duration {
	return min(max(2*pause, firstPause), longestPause, s.Timeout()/6)
}

// run keeps the session connected until it ends.
func (s *Session) run() {
	defer s.stop()
	pause := time.Duration(0)
	for s.alive() == nil {
		began := time.Now()
		l := s.connect(pause)
		if l == nil {
			return
		}
		err := l.serve()
		if s.unlinked(l, err) {
			s.store.options.Logger.Warn("zookeeper: connection lost", "server", l.server, "session", s.text(), "reason", err)
		}
		// A connection that breaks as soon as it is there is not tried again at once.
		if pause = s.longer(pause); time.Since(began) > longestPause {
			pause = 0
		}
	}
}

// connect tries one server after the other until one lets the session in; nil where the session ended.
func (s *Session) connect(pause time.Duration) *link {
	for {
		if !s.rest(pause) {
			return nil
		}
		for range s.servers {
			server := s.servers[0]
			s.servers = append(s.servers[1:], server)
			l, err := s.try(server)
			switch {
			case err == nil:
				return l
			case s.alive() != nil:
				return nil
			case errors.Is(err, coordination.ErrSessionLost), errors.Is(err, coordination.ErrAuth):
				s.end(err)
				return nil
			}
			s.failedTo(server, err)
		}
		pause = s.longer(pause)
	}
}

// rest waits, and reports whether the session is still there.
func (s *Session) rest(pause time.Duration) bool {
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.done:
		}
	}
	return s.alive() == nil
}

// failedTo notes why a server could not be used.
func (s *Session) failedTo(server string, err error) {
	s.mu.Lock()
	repeated := s.mu.reason != nil && s.mu.reason.Error() == err.Error()
	s.mu.reason = err
	s.mu.Unlock()
	if !repeated {
		s.store.options.Logger.Warn("zookeeper: a server cannot be used, trying the next", "server", server, "reason", err)
	}
}

// try connects to one server and logs in, over any of its addresses.
func (s *Session) try(server string) (*link, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	patience := s.patience()
	ctx, cancel := context.WithTimeout(s.ended, patience)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, address := range shuffled(addresses) {
		var l *link
		if l, err = s.tryAddress(host, net.JoinHostPort(address, port), patience); err == nil {
			return l, nil
		}
		if s.alive() != nil || errors.Is(err, coordination.ErrSessionLost) || errors.Is(err, coordination.ErrAuth) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s: %w", server, err)
}

// leastPatience is how long a server has for letting in a session whose timeout is not granted yet.
const leastPatience = time.Second

// patience is how long one server has for letting the session in.
func (s *Session) patience() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.id == 0 {
		return max(s.mu.timeout/3, leastPatience)
	}
	return s.mu.timeout / 3
}

// tryAddress connects to one address and logs in within patience.
func (s *Session) tryAddress(host, address string, patience time.Duration) (*link, error) {
	ctx, cancel := context.WithTimeout(s.ended, patience)
	defer cancel()
	conn, err := s.dial(ctx, host, address)
	if err != nil {
		return nil, err
	}
	unwatch := context.AfterFunc(ctx, func() { _ = conn.Close() }) // wakes whoever reads or writes
	l := newLink(s, address, conn, patience)
	if err = l.login(); errors.Is(err, errHungUp) {
		err = cmp.Or(s.behind(ctx, host, address), err)
	}
	if !unwatch() && !errors.Is(err, coordination.ErrAuth) && !errors.Is(err, coordination.ErrSessionLost) {
		err = fmt.Errorf("%s did not let the session in within %v", address, patience)
	}
	if err == nil {
		err = s.linked(l)
	}
	if err != nil {
		l.fail(err)
		return nil, err
	}
	s.store.options.Logger.Info("zookeeper: connected", "server", address, "session", s.text(), "timeout", s.Timeout())
	return l, nil
}

// dial connects to one address, with TLS where that is asked for.
func (s *Session) dial(ctx context.Context, host, address string) (net.Conn, error) {
	conn, err := s.store.options.Dial(ctx, "tcp", address)
	if err != nil || s.store.options.TLS == nil {
		return conn, err
	}
	config := s.store.options.TLS.Clone()
	config.ServerName = host
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

// login opens the session or goes on with it, authenticates, and registers the watches anew.
func (l *link) login() error {
	if err := l.handshake(); err != nil {
		return err
	}
	s := l.session
	if s.store.options.SASL != nil {
		if err := l.authenticate(*s.store.options.SASL); err != nil {
			return err
		}
	}
	for _, auth := range s.auth {
		code, _, err := l.exchange(jute.XidAuth, jute.OpAuth, &jute.AuthRequest{Scheme: auth.Scheme, Auth: auth.Data})
		switch {
		case err != nil:
			return err
		case code != jute.OK:
			return fmt.Errorf("%w: %s refused credentials of scheme %s: %w", coordination.ErrAuth, l.server, auth.Scheme, code)
		}
	}
	for _, set := range s.watchesToSet() {
		code, _, err := l.exchange(jute.XidSetWatches, jute.OpSetWatches2, set)
		switch {
		case err != nil:
			return err
		case code != jute.OK:
			return fmt.Errorf("%s did not take the watches: %w", l.server, code)
		}
	}
	return nil
}

// handshake exchanges the first packets.
func (l *link) handshake() error {
	s := l.session
	s.mu.Lock()
	request := jute.ConnectRequest{
		LastZxid: s.mu.zxid, Timeout: int32(s.mu.timeout / time.Millisecond), SessionID: s.mu.id, Password: s.mu.password,
	}
	s.mu.asked = true
	s.mu.Unlock()
	sent := time.Now()
	frame := request.Append(make([]byte, xidAt, 64))
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-xidAt))
	if err := l.writeNow(frame); err != nil {
		return err
	}
	packet, err := l.packet()
	if err != nil {
		return fmt.Errorf("%w: %s: %w", errHungUp, l.server, err)
	}
	r := jute.NewReader(packet)
	var response jute.ConnectResponse
	response.Read(r)
	switch {
	case r.Err() != nil:
		return fmt.Errorf("the greeting of %s: %w", l.server, r.Err())
	case response.Timeout <= 0:
		return errExpired()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.id, s.mu.password = response.SessionID, response.Password
	s.mu.timeout = time.Duration(response.Timeout) * time.Millisecond
	l.patience = s.mu.timeout / 3
	s.heardLocked(sent)
	return nil
}

// writeNow writes a frame of the login.
func (l *link) writeNow(frame []byte) error {
	if err := l.conn.SetWriteDeadline(time.Now().Add(l.patience)); err != nil {
		return err
	}
	_, err := l.conn.Write(frame)
	return err
}

// exchange sends a request of the login and waits for its answer; events that come before it are handed on.
func (l *link) exchange(xid int32, op jute.Op, body jute.Record) (jute.Code, []byte, error) {
	request := newRequest(op, body, true)
	request.setXid(xid)
	if err := l.writeNow(request.frame); err != nil {
		return 0, nil, err
	}
	for {
		packet, err := l.packet()
		if err != nil {
			return 0, nil, err
		}
		r := jute.NewReader(packet)
		var header jute.ReplyHeader
		header.Read(r)
		switch {
		case r.Err() != nil:
			return 0, nil, fmt.Errorf("%s: %w", l.server, r.Err())
		case header.Xid == jute.XidEvent:
			if err := l.event(r); err != nil {
				return 0, nil, err
			}
		case header.Xid == xid:
			return header.Err, r.Rest(), nil
		default:
			return 0, nil, fmt.Errorf("%s answered request %d during the login", l.server, header.Xid)
		}
	}
}
