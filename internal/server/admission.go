package server

import (
	"sync"
)

// admission counts connections against the limits. What is over a limit is closed at once: a client that
// is told so tries elsewhere, one left in the backlog hangs.
type admission struct {
	mu struct {
		sync.Mutex
		limits     Limits
		all        int // every connection, for Descriptors
		clients    int // those of listeners that are not InterBroker
		byListener map[string]int
		byIP       map[string]int
	}
}

// newAdmission starts with no connection.
func newAdmission(limits Limits) *admission {
	a := new(admission)
	a.mu.limits = limits
	a.mu.byListener = make(map[string]int)
	a.mu.byIP = make(map[string]int)
	return a
}

// setLimits holds for connections from now on; those that are there stay.
func (a *admission) setLimits(limits Limits) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.limits = limits
}

// enter counts a connection from host in, or says why not.
//
//	limit                           counts                                0 means
//	Descriptors                     all connections                       no limit
//	PerIP, PerIPOverrides           those of the peer's address           no limit; as an override: none allowed
//	MaxConnections                  those of clients' listeners           no limit
//	ListenerConnections             those of the listener                 no limit
//
// The first that is reached is the one that is told. Pipes of the broker to itself are not counted.
func (a *admission) enter(l *Listener, host string) (refusal ending, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	limits := &a.mu.limits
	perIP, overridden := limits.PerIPOverrides[host]
	if !overridden {
		perIP = limits.PerIP
	}
	switch {
	case limits.Descriptors > 0 && a.mu.all >= limits.Descriptors:
		return refusedDescriptors, false
	case (overridden || perIP > 0) && a.mu.byIP[host] >= perIP:
		return refusedPerIP, false
	case limits.MaxConnections > 0 && !l.InterBroker && a.mu.clients >= limits.MaxConnections:
		return refusedBroker, false
	case limits.ListenerConnections[l.Name] > 0 && a.mu.byListener[l.Name] >= limits.ListenerConnections[l.Name]:
		return refusedListener, false
	}
	a.addLocked(l, host, 1)
	return 0, true
}

// leave counts it out.
func (a *admission) leave(l *Listener, host string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addLocked(l, host, -1)
	if a.mu.byIP[host] == 0 {
		delete(a.mu.byIP, host)
	}
}

func (a *admission) addLocked(l *Listener, host string, n int) {
	a.mu.all += n
	a.mu.byListener[l.Name] += n
	a.mu.byIP[host] += n
	if !l.InterBroker {
		a.mu.clients += n
	}
}
