package sim

import (
	"container/heap"
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing/synctest"
	"time"
)

// Latencies of a link.
const (
	latencyMin = 100 * time.Microsecond
	latencyMax = 2 * time.Millisecond
)

// network is the wires between hosts. One goroutine delivers packets one at a time, and before each it waits
// until everybody has done what the one before it led to.
//
//	Write ─▶ packet (due) ─▶ heap ─▶ [deliver] ─▶ inbox of the other end ─▶ Read
//	                            └─ link is cut ─▶ held until it heals
//
// A host is a process: when it ends, its name may come up again as another life. What arrives for an earlier
// life is answered with a reset, unless the whole machine is dark.
type network struct {
	dice dice
	wake chan struct{}
	done chan struct{}
	// flood is how many packets are more than a run needs: then flooded is called, and everything slows down, so
	// that a run ends in which somebody asks without a pause.
	flood   int
	flooded func()

	// mu is never held while anything waits.
	mu struct {
		sync.Mutex
		packets   packets
		held      map[link][]*packet
		cut       map[link]bool
		listeners map[string]*listener // by address
		ends      map[*end]bool
		dark      map[string]bool // hosts without power: they do not even refuse
		counts    map[link]uint64
		delivered int
	}
}

// link is one direction between two hosts.
type link struct{ from, to string }

// packet is bytes, or the end of a stream, on their way.
type packet struct {
	link
	due    time.Time
	number uint64 // on its link
	act    func() // what its arrival does
}

type packets []*packet

func (p packets) Len() int      { return len(p) }
func (p packets) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *packets) Push(x any)   { *p = append(*p, x.(*packet)) }
func (p packets) Less(i, j int) bool {
	a, b := p[i], p[j]
	switch {
	case !a.due.Equal(b.due):
		return a.due.Before(b.due)
	case a.link != b.link:
		return a.from+">"+a.to < b.from+">"+b.to
	}
	return a.number < b.number
}

func (p *packets) Pop() any {
	old := *p
	last := old[len(old)-1]
	*p = old[:len(old)-1]
	return last
}

func newNetwork(d dice) *network {
	n := &network{dice: d, wake: make(chan struct{}, 1), done: make(chan struct{})}
	n.mu.held, n.mu.cut = map[link][]*packet{}, map[link]bool{}
	n.mu.listeners, n.mu.ends = map[string]*listener{}, map[*end]bool{}
	n.mu.dark, n.mu.counts = map[string]bool{}, map[link]uint64{}
	return n
}

// run delivers until stop.
func (n *network) run() {
	for {
		n.mu.Lock()
		wait := time.Duration(-1)
		if len(n.mu.packets) > 0 {
			wait = max(time.Until(n.mu.packets[0].due), 0)
		}
		n.mu.Unlock()
		if wait == 0 {
			synctest.Wait()
			n.deliver()
			continue
		}
		var timer <-chan time.Time
		if wait > 0 {
			timer = time.After(wait)
		}
		select {
		case <-timer:
		case <-n.wake:
		case <-n.done:
			return
		}
	}
}

func (n *network) stop() { close(n.done) }

// deliver lets one packet arrive, or holds it back where its link is cut.
func (n *network) deliver() {
	n.mu.Lock()
	p := heap.Pop(&n.mu.packets).(*packet)
	if n.mu.cut[p.link] {
		n.mu.held[p.link] = append(n.mu.held[p.link], p)
		n.mu.Unlock()
		return
	}
	n.mu.delivered++
	flood := n.mu.delivered == n.flood
	n.mu.Unlock()
	if flood {
		n.flooded()
	}
	p.act()
}

// send puts a packet on a link, behind everything that is due before after.
func (n *network) send(on link, after time.Time, act func()) time.Time {
	n.mu.Lock()
	n.mu.counts[on]++
	count := n.mu.counts[on]
	latency := n.dice.between(latencyMin, latencyMax, on.from+">"+on.to, count)
	if n.mu.delivered > n.flood {
		latency *= 1000
	}
	due := time.Now().Add(latency)
	if !due.After(after) {
		due = after.Add(time.Nanosecond)
	}
	heap.Push(&n.mu.packets, &packet{link: on, due: due, number: count, act: act})
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
	return due
}

// sever cuts one direction of a link.
func (n *network) sever(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.cut[link{from, to}] = true
}

// heal ends a cut: what was held back arrives now, since TCP sends it again.
func (n *network) heal(from, to string) {
	on := link{from, to}
	n.mu.Lock()
	delete(n.mu.cut, on)
	for _, p := range n.mu.held[on] {
		p.due = time.Now()
		heap.Push(&n.mu.packets, p)
	}
	delete(n.mu.held, on)
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// healAll ends all cuts.
func (n *network) healAll() {
	n.mu.Lock()
	var cuts []link
	for on := range n.mu.cut {
		cuts = append(cuts, on)
	}
	n.mu.Unlock()
	for _, on := range cuts {
		n.heal(on.from, on.to)
	}
}

// kill ends a host's life: its own calls fail, its listener is gone, and the other ends learn of it by a reset;
// where the machine is dark they hear nothing until it is up again and they send something.
func (n *network) kill(host string, dark bool) {
	n.mu.Lock()
	if dark {
		n.mu.dark[host] = true
	}
	var open []*listener
	for address, l := range n.mu.listeners {
		if l.host == host {
			delete(n.mu.listeners, address)
			open = append(open, l)
		}
	}
	var own []*end
	for e := range n.mu.ends {
		if e.host == host {
			own = append(own, e)
			delete(n.mu.ends, e)
		}
	}
	n.mu.Unlock()
	for _, l := range open {
		l.shut()
	}
	for _, e := range own {
		e.reset(syscall.ECONNABORTED)
		if !dark {
			n.send(link{host, e.peer.host}, time.Time{}, func() { e.peer.reset(syscall.ECONNRESET) })
		}
	}
}

// light gives a host its power back.
func (n *network) light(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.mu.dark, host)
}

func (n *network) isDark(host string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.dark[host]
}

// listen opens an address for a host.
func (n *network) listen(host, address string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.listeners[address] != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, syscall.EADDRINUSE)
	}
	l := &listener{network: n, host: host, address: address, arriving: make(chan net.Conn, 128), closed: make(chan struct{})}
	n.mu.listeners[address] = l
	return l, nil
}

// dial connects a host to an address. The request takes its time on the way, and so does the answer.
func (n *network) dial(ctx context.Context, host, address string) (net.Conn, error) {
	to, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	type outcome struct {
		end *end
		err error
	}
	answer := make(chan outcome, 1)
	n.send(link{host, to}, time.Time{}, func() {
		if n.isDark(to) {
			return
		}
		near, far := n.connect(host, to)
		n.mu.Lock()
		l := n.mu.listeners[address]
		n.mu.Unlock()
		if l == nil || !l.offer(far) {
			n.forget(near, far)
			n.send(link{to, host}, time.Time{}, func() {
				answer <- outcome{err: fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)}
			})
			return
		}
		n.send(link{to, host}, time.Time{}, func() { answer <- outcome{end: near} })
	})
	select {
	case o := <-answer:
		if o.err != nil {
			return nil, o.err
		}
		return o.end, nil
	case <-ctx.Done():
		go func() { // whoever answers later finds nobody
			select {
			case o := <-answer:
				if o.end != nil {
					_ = o.end.Close()
				}
			case <-n.done:
			}
		}()
		return nil, ctx.Err()
	}
}

// connect makes the two ends of a connection.
func (n *network) connect(a, b string) (near, far *end) {
	near, far = newEnd(n, a), newEnd(n, b)
	near.peer, far.peer = far, near
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.ends[near], n.mu.ends[far] = true, true
	return near, far
}

func (n *network) forget(ends ...*end) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range ends {
		delete(n.mu.ends, e)
	}
}

// listener is an address that is open.
type listener struct {
	network       *network
	host, address string
	arriving      chan net.Conn
	closed        chan struct{}
	once          sync.Once
}

// offer hands a new connection to Accept; false where the listener is closed or nobody accepts.
func (l *listener) offer(c net.Conn) bool {
	select {
	case <-l.closed:
		return false
	default:
	}
	select {
	case l.arriving <- c:
		return true
	default:
		return false
	}
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.arriving:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.network.mu.Lock()
	if l.network.mu.listeners[l.address] == l {
		delete(l.network.mu.listeners, l.address)
	}
	l.network.mu.Unlock()
	l.shut()
	return nil
}

func (l *listener) shut() {
	l.once.Do(func() {
		close(l.closed)
		for {
			select {
			case c := <-l.arriving:
				_ = c.Close()
			default:
				return
			}
		}
	})
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return address(l.address) }

// address is a host and port by name.
type address string

// Network implements net.Addr.
func (address) Network() string { return "tcp" }

// String implements net.Addr.
func (a address) String() string { return string(a) }
