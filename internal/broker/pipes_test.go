package broker_test

import (
	"net"
	"sync"
)

// pipes is a network in memory with one listener at a time. In a bubble of testing/synctest, whoever waits
// for it lets time pass, which a socket of the system does not.
type pipes struct {
	mu       sync.Mutex
	listener *pipeListener
}

// listen is net.Listen for the one address that there is.
func (p *pipes) listen(_, _ string) (net.Listener, error) {
	l := &pipeListener{arriving: make(chan net.Conn), closed: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener = l
	return l, nil
}

// dial connects to the listener.
func (p *pipes) dial() (net.Conn, error) {
	p.mu.Lock()
	l := p.listener
	p.mu.Unlock()
	ours, theirs := net.Pipe()
	select {
	case l.arriving <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

type pipeListener struct {
	arriving chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.arriving:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9092} }
