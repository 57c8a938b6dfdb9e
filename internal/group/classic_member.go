package group

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/shard"
)

// member is a member of a classic group.
//
// It belongs to one classicGroup and is never shared. Its life:
//
//	JoinGroup ─► fresh, waits in join ─► answered, one generation on ─► waits in sync ─► assigned
//	                   ▲                                                                    │
//	                   └──────────────── not fresh, waits in join ◄──── joins again ────────┘
//
// It ends by LeaveGroup, by its session, by not asking for its assignment in time, and where it is dynamic by not
// joining in time. The session counts only while the member does not wait for us; heartbeats, commits and answers
// start it anew.
type member struct {
	id string
	// instanceID makes the member static (KIP-345): it keeps its place through a restart.
	instanceID   *string
	clientID     string
	clientHost   string
	protocolType string
	// protocols are what it speaks, the one it likes best first, with what it tells the leader in each.
	protocols []memberProtocol
	// assignment is what the leader gave it, opaque.
	assignment []byte

	sessionTimeout, rebalanceTimeout time.Duration
	session                          timer

	// join and sync are its requests that wait for an answer.
	join, sync waiter
	// fresh is set from its first join to the end of that rebalance. A fresh member may time out although
	// it waits: its client may be long gone, and retry as somebody else.
	fresh bool
	// nameless is set where the client does not know its member id yet: it learns it from the answer.
	nameless bool
}

// memberProtocol is one protocol that a member speaks.
type memberProtocol struct {
	name     string
	metadata []byte
}

// waiter is the ticket of a request that waits; the zero value is nobody.
type waiter struct{ ticket shard.Ticket }

func (w waiter) waits() bool { return w.ticket != 0 }

// protocolsOf copies what a request says, since its bytes live in a buffer that is used again. Where a name
// comes twice the first one counts.
func protocolsOf(request []kmsg.JoinGroupRequestProtocol) []memberProtocol {
	protocols := make([]memberProtocol, 0, len(request))
	for _, p := range request {
		named := func(other memberProtocol) bool { return other.name == p.Name }
		if !slices.ContainsFunc(protocols, named) {
			protocols = append(protocols, memberProtocol{p.Name, bytes.Clone(p.Metadata)})
		}
	}
	return protocols
}

// sameProtocols reports whether a member that joins again has nothing new to say.
func sameProtocols(a, b []memberProtocol) bool {
	return slices.EqualFunc(a, b, func(x, y memberProtocol) bool {
		return x.name == y.name && bytes.Equal(x.metadata, y.metadata)
	})
}

// metadata is what the member says in a protocol; nil where it does not speak it.
func (m *member) metadata(protocol string) []byte {
	for _, p := range m.protocols {
		if p.name == protocol {
			return p.metadata
		}
	}
	return nil
}

// alive reports whether the member needs no heartbeat: it waits for us.
func (m *member) alive() bool {
	return !m.fresh && (m.join.waits() || m.sync.waits())
}
