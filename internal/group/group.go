package group

import (
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// group is all that is known under one group id. It exists while it has a kind.
type group struct {
	id string
	// classic is set unless foreign is.
	classic *classicGroup
	// foreign is set where the log has a group of another kind under this id.
	foreign *foreignGroup
	offsets offsets
}

// kind is what the kinds of groups have in common.
type kind interface {
	// typeName is the group's type in ListGroups, such as "classic".
	typeName() string
	// protocolName is the protocol type in ListGroups: "consumer", "share", what members of a classic
	// group say, or empty for a simple group.
	protocolName() string
	// stateName is the state as Kafka names it.
	stateName() string
	// subscribedTo reports whether members may be reading topic, so that its offsets are in use.
	subscribedTo(topic string) bool
	// checkCommit says why a member may not commit offsets. Transactional commits of old clients name no
	// member.
	checkCommit(c committer) protocol.Code
	// checkDelete says why the group may not be deleted.
	checkDelete() protocol.Code
	// checkDeleteOffsets says why single offsets may not be deleted.
	checkDeleteOffsets() protocol.Code
	// unusedSince is the time from which the retention of an offset counts; false where it does not
	// expire now.
	unusedSince(c committed) (int64, bool)
	// empty reports whether there is nobody in the group.
	empty() bool
	// tombstones are the records that forget the group, but for its offsets.
	tombstones(id string) []shard.Record
	// stop ends the group's timers.
	stop(m *Machine)
}

// committer is who commits offsets.
type committer struct {
	memberID      string
	instanceID    *string
	generation    int32
	transactional bool
}

// kind is the group's kind.
func (g *group) kind() kind {
	if g.foreign != nil {
		return g.foreign
	}
	return g.classic
}
