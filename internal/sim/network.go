package sim

import (
	"container/heap"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	// progress counts what was delivered.
	progress *atomic.Int64

	// mu is never held while anything waits.
	mu struct {
		sync.Mutex
		packets   packets
		held      map[link][]*packet
		cut       map[link]bool
		listeners map[string]*listener // by address
		ends      map[*end]bool
		dark      map[string]bool // hosts without power: they do not even refuse
		kills     map[string]int  // of each host
		dials     map[link]uint64
		delivered int
	}
}

// link is one direction between two hosts.
type link struct{ from, to string }

// stream is one direction of one connection, or what a call to connect sends. Each throws its own dice: what the
// other connections of the same two hosts send, and in which order, changes nothing for it.
type stream struct {
	link
	name string // the same in every run of a seed
	mu   struct {
		sync.Mutex
		count uint64    // packets so far
		last  time.Time // when the newest one is due
	}
}

// packet is bytes, or the end of a stream, on their way.
type packet struct {
	stream *stream
	due    time.Time
	number uint64 // on its stream
	act    func() // what its arrival does
}

type packets []*packet

// Len is container/heap's.
func (p packets) Len() int { return len(p) }

// Swap is container/heap's.
func (p packets) Swap(i, j int) { p[i], p[j] = p[j], p[i] }

// Push is container/heap's.
func (p *packets) Push(x any) { *p = append(*p, x.(*packet)) }

// Less is container/heap's: the first to arrive comes first.
func (p packets) Less(i, j int) bool {
	a, b := p[i], p[j]
	switch {
	case !a.due.Equal(b.due):
		return a.due.Before(b.due)
	case a.stream != b.stream:
		return a.stream.name < b.stream.name
	}
	return a.number < b.number
}

// Pop is container/heap's.
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
	n.mu.dark, n.mu.kills, n.mu.dials = map[string]bool{}, map[string]int{}, map[link]uint64{}
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
	if on := p.stream.link; n.mu.cut[on] {
		n.mu.held[on] = append(n.mu.held[on], p)
		n.mu.Unlock()
		return
	}
	n.mu.delivered++
	n.progress.Add(1)
	flood := n.mu.delivered == n.flood
	n.mu.Unlock()
	if flood {
		n.flooded()
	}
	p.act()
}

// send puts a packet on a stream, behind everything that is on it.
func (n *network) send(on *stream, act func()) {
	on.mu.Lock()
	on.mu.count++
	p := &packet{stream: on, number: on.mu.count, act: act}
	latency := n.dice.between(latencyMin, latencyMax, on.name, p.number)
	n.mu.Lock()
	if n.mu.delivered > n.flood {
		latency *= 1000
	}
	p.due = time.Now().Add(latency)
	if !p.due.After(on.mu.last) {
		p.due = on.mu.last.Add(time.Nanosecond)
	}
	on.mu.last = p.due
	heap.Push(&n.mu.packets, p)
	n.mu.Unlock()
	on.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
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
	n.mu.kills[host]++
	if dark {
		n.mu.dark[host] = true
	}
	var open []*listener
	for _, address := range slices.Sorted(maps.Keys(n.mu.listeners)) {
		if l := n.mu.listeners[address]; l.host == host {
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
	slices.SortFunc(own, func(a, b *end) int { return strings.Compare(a.out.name, b.out.name) })
	for _, l := range open {
		l.shut()
	}
	for _, e := range own {
		e.reset(syscall.ECONNABORTED)
		if !dark {
			n.send(e.out, func() { e.peer.reset(syscall.ECONNRESET) })
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
	near, far := n.connect(host, to)
	life := n.life(host)
	n.send(near.out, func() {
		n.mu.Lock()
		l, gone := n.mu.listeners[address], n.mu.dark[to] || n.mu.kills[host] != life
		if !gone {
			n.mu.ends[near], n.mu.ends[far] = true, true
		}
		n.mu.Unlock()
		if gone {
			return
		}
		if l == nil || !l.offer(far) {
			n.forget(near, far)
			n.send(far.out, func() { answer <- outcome{err: fmt.Errorf("dial %s: %w", address, syscall.ECONNREFUSED)} })
			return
		}
		n.send(far.out, func() { answer <- outcome{end: near} })
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

// life counts the lives of a host that have ended.
func (n *network) life(host string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.kills[host]
}

// connect makes the two ends of a connection.
func (n *network) connect(a, b string) (near, far *end) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.dials[link{a, b}]++
	name := fmt.Sprintf("%s>%s %d", a, b, n.mu.dials[link{a, b}])
	near = newEnd(n, a, &stream{link: link{a, b}, name: name + " there"})
	far = newEnd(n, b, &stream{link: link{b, a}, name: name + " back"})
	near.peer, far.peer = far, near
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
