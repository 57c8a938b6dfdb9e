package group

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// Heartbeat keeps a member's session alive, and tells it when it has to join again.
func (m *Machine) Heartbeat(now shard.Now, request *kmsg.HeartbeatRequest) protocol.Code {
	g := m.groups[request.Group]
	if g == nil || g.classic == nil {
		return protocol.UnknownMemberID
	}
	c := g.classic
	if code := c.check(request.MemberID, request.InstanceID); code != protocol.None {
		return code
	}
	if request.Generation != c.generation {
		return protocol.IllegalGeneration
	}
	mb := c.byID[request.MemberID]
	m.keepAlive(now, c, mb, mb.sessionTimeout)
	if c.state == preparingRebalance {
		return protocol.RebalanceInProgress
	}
	return protocol.None
}
