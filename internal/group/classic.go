package group

import (
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// state is the state of a classic group:
//
//	        join                        all joined, or time is up
//	Empty ──────► PreparingRebalance ──────────────────────────────► CompletingRebalance
//	  ▲               │   ▲    ▲     a join, a leave, a lost member        │
//	  │ nobody is left│   │    └───────────────────────────────────────────┤ the leader has
//	  └───────────────┘   └───────────────────── Stable ◄──────────────────┘ assigned
//
// Kafka's Dead is the state of a group that does not exist.
//
// Who moves it, and what goes into the log on the way:
//
//	Empty → Preparing          the first JoinGroup of a new member; nothing is written
//	Preparing → Completing     the last JoinGroup that was waited for, a leave of whom it waited for, or joinTimer:
//	                           the generation rises here and nowhere else; nothing is written
//	Preparing → Empty          the same, where nobody is left: a record without members
//	Completing → Stable        the leader's SyncGroup, once the record with all assignments is appended
//	Completing → Preparing     a new member, changed metadata, a leave, a lost session, syncTimer, an assignment
//	                           that the log refused; nothing is written
//	Stable → Preparing         the same, and a leader that joins again
//
// So the log holds only generations that were shared out, and empty ones. A coordinator that takes over in the
// middle of a rebalance finds the group Stable in the generation before it; members that have learned a higher
// one get ILLEGAL_GENERATION from it, and join again.
type state int8

const (
	empty state = iota
	preparingRebalance
	completingRebalance
	stable
)

// deadState is what Kafka calls a group that does not exist.
const deadState = "Dead"

// String is Kafka's name of the state.
func (s state) String() string {
	return [...]string{"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}[s]
}

// consumerProtocol is the protocol type of consumers, whose subscriptions can be read.
const consumerProtocol = "consumer"

// classicGroup is a group whose members agree on a protocol, and whose leader assigns.
type classicGroup struct {
	group *group
	state state
	// initial is set from the first join of an empty group to the end of that rebalance: it is delayed,
	// so that a group that starts as a whole rebalances once.
	initial bool
	// joinedMeanwhile is set where somebody joined since the initial delay was last set.
	joinedMeanwhile bool
	// stateTime is when the state was entered, in ms; noStateTime for groups whose records are older
	// than that field.
	stateTime int64
	// protocolType is what members have in common; empty in a group that never had any.
	protocolType string
	// protocol is the protocol chosen for this generation; empty while Empty.
	protocol string
	// generation rises by one with each completed rebalance.
	generation int32
	// leader is a member's id, or empty where there are none.
	leader string
	// members are in the order in which they came; all have a protocol in common.
	members []*member
	// byID and byInstance find members, by instance id only the static ones.
	byID, byInstance map[string]*member
	// speakers counts the members that speak a protocol.
	speakers map[string]int
	// joined counts the members whose JoinGroup waits for the end of the rebalance.
	joined int
	// pending are member ids that were handed out with MEMBER_ID_REQUIRED and have not come back yet.
	pending map[string]*pendingMember
	// awaitingSync are the members that have not sent SyncGroup in this generation.
	awaitingSync map[string]bool
	// topics are what the members subscribe to; known is false where that cannot be told.
	topics      map[string]bool
	topicsKnown bool
	// persisted is set once there is a record of the group in the log.
	persisted bool

	// joinTimer runs in PreparingRebalance only: the initial delay of a group that was empty, else the longest
	// rebalance timeout. syncTimer runs from the end of a rebalance until every member has sent SyncGroup, also
	// in Stable: a member that joined and then says nothing would hold partitions that nobody reads.
	joinTimer timer
	syncTimer timer
}

// pendingMember is a member id without a member.
type pendingMember struct{ session timer }

// newClassic makes an empty group, which as such is a simple one: a place for offsets.
func newClassic(g *group, stateTime int64) *classicGroup {
	return &classicGroup{group: g, stateTime: stateTime}
}

// enter moves to another state.
func (c *classicGroup) enter(now shard.Now, to state) {
	from := c.state
	ok := false
	switch to {
	case preparingRebalance:
		ok = from != preparingRebalance
	case completingRebalance, empty:
		ok = from == preparingRebalance
	case stable:
		ok = from == completingRebalance
	}
	if !ok {
		invariant.Fail("group %s generation %d: %s after %s", c.group.id, c.generation, to, from)
	}
	c.state, c.stateTime = to, now.Latest
}

// add takes in a member, who leads if nobody does.
func (c *classicGroup) add(m *member) {
	if len(c.members) == 0 {
		c.protocolType = m.protocolType
		c.byID, c.byInstance, c.speakers = map[string]*member{}, map[string]*member{}, map[string]int{}
	}
	if c.leader == "" {
		c.leader = m.id
	}
	c.members = append(c.members, m)
	c.enlist(m)
}

// enlist makes a member findable.
//
// Everything that is counted or indexed by a member's fields is kept here and in strike, so that whoever
// changes an id, a protocol list or a waiting JoinGroup strikes the member first and enlists it afterwards.
func (c *classicGroup) enlist(m *member) {
	c.byID[m.id] = m
	if m.instanceID != nil {
		c.byInstance[*m.instanceID] = m
	}
	for _, p := range m.protocols {
		c.speakers[p.name]++
	}
	if m.join.waits() {
		c.joined++
	}
}

// strike takes back what enlist did.
func (c *classicGroup) strike(m *member) {
	delete(c.byID, m.id)
	if m.instanceID != nil && c.byInstance[*m.instanceID] == m {
		delete(c.byInstance, *m.instanceID)
	}
	for _, p := range m.protocols {
		if c.speakers[p.name]--; c.speakers[p.name] == 0 {
			delete(c.speakers, p.name)
		}
	}
	if m.join.waits() {
		c.joined--
	}
}

// remove takes out a member. If it led, the oldest of the others does.
func (c *classicGroup) remove(machine *Machine, m *member) {
	machine.timers.stop(&m.session)
	c.strike(m)
	c.members = slices.DeleteFunc(c.members, func(other *member) bool { return other == m })
	if c.leader != m.id {
		return
	}
	c.leader = ""
	if len(c.members) > 0 {
		c.leader = c.members[0].id
	}
}

// removePending forgets a member id that was handed out.
func (c *classicGroup) removePending(machine *Machine, id string) {
	if p := c.pending[id]; p != nil {
		machine.timers.stop(&p.session)
		delete(c.pending, id)
	}
}

// check says why a request of a member is refused: it is not known, or another has taken its instance id.
//
// The order matters to static members (KIP-345): an instance id that is known under another member id means
// that a newer process has taken the place, and the old one must hear FENCED_INSTANCE_ID, which is fatal to it.
// With UNKNOWN_MEMBER_ID it would join again, and the two would take the place from each other for ever.
func (c *classicGroup) check(memberID string, instanceID *string) protocol.Code {
	if instanceID != nil {
		owner := c.byInstance[*instanceID]
		if owner == nil {
			return protocol.UnknownMemberID
		}
		if owner.id != memberID {
			return protocol.FencedInstanceID
		}
	}
	if c.byID[memberID] == nil {
		return protocol.UnknownMemberID
	}
	return protocol.None
}

// allJoined reports whether a rebalance need not wait any longer.
func (c *classicGroup) allJoined() bool { return len(c.pending) == 0 && c.joined == len(c.members) }

// rebalanceTimeout is the longest of the members'.
func (c *classicGroup) rebalanceTimeout() time.Duration {
	var longest time.Duration
	for _, m := range c.members {
		longest = max(longest, m.rebalanceTimeout)
	}
	return longest
}

// typeName is the type in ListGroups.
func (c *classicGroup) typeName() string { return "classic" }

// protocolName is the protocol type, empty for a simple group.
func (c *classicGroup) protocolName() string { return c.protocolType }

// stateName is the state's name.
func (c *classicGroup) stateName() string { return c.state.String() }

// empty reports whether there is nobody in the group.
func (c *classicGroup) empty() bool { return c.state == empty }

// checkCommit says why offsets may not be committed.
//
// A generation below 0 means that the client is in no group, as those that assign partitions by hand and the
// tools that reset offsets. They may commit while nobody is in the group; with members in it their commit would
// move the readers' place behind their backs. During CompletingRebalance a plain commit is refused with
// REBALANCE_IN_PROGRESS, since its sender may not own the partitions any more; a transactional one
// must not be, for its producer would have to abort for a matter that ends by itself (KIP-447 fences it by
// generation instead).
func (c *classicGroup) checkCommit(who committer) protocol.Code {
	anonymous := who.generation < 0
	if anonymous && c.state == empty {
		return protocol.None // a client that only keeps offsets here, or an admin
	}
	if !anonymous || who.memberID != "" || who.instanceID != nil {
		if code := c.check(who.memberID, who.instanceID); code != protocol.None {
			return code
		}
		if who.generation != c.generation {
			return protocol.IllegalGeneration
		}
	} else if !who.transactional {
		return protocol.UnknownMemberID // members are here, and this is none of them
	}
	if !who.transactional && c.state == completingRebalance {
		return protocol.RebalanceInProgress
	}
	return protocol.None
}

// checkDelete says why the group may not be deleted.
func (c *classicGroup) checkDelete() protocol.Code {
	if c.state != empty {
		return protocol.NonEmptyGroup
	}
	return protocol.None
}

// checkDeleteOffsets says why no offset may be deleted: what members of other protocols read is unknown.
func (c *classicGroup) checkDeleteOffsets() protocol.Code {
	if c.state != empty && c.protocolType != consumerProtocol {
		return protocol.NonEmptyGroup
	}
	return protocol.None
}

// subscribedTo reports whether offsets of topic are in use. Of consumers whose subscriptions are unknown it
// is assumed.
func (c *classicGroup) subscribedTo(topic string) bool {
	if c.topicsKnown {
		return c.topics[topic]
	}
	return c.protocolType == consumerProtocol
}

// unusedSince is when the retention of an offset began: for a group that members have left, when the last
// one did; else when it was committed (KIP-211). A group with members keeps what it may be using.
//
//	simple group (no protocol type)        each offset from its own commit
//	Empty, state time known                all offsets from when the last member left
//	Empty, record older than that field    each offset from its own commit
//	Stable consumers, topics known         topics that nobody subscribes to (see subscribedTo), from their commit
//	anything else                          never: what members of other protocols read is unknown
//
// The state time is in the record, so that a takeover does not begin the retention anew (KAFKA-10401).
func (c *classicGroup) unusedSince(o committed) (int64, bool) {
	switch {
	case c.protocolType == "":
		return o.commitTime, true
	case c.state == empty && c.stateTime != noStateTime:
		return c.stateTime, true
	case c.state == empty:
		return o.commitTime, true
	case c.state == stable && c.protocolType == consumerProtocol && c.topicsKnown:
		return o.commitTime, true
	}
	return 0, false
}

// tombstones forget the group.
func (c *classicGroup) tombstones(id string) []shard.Record {
	return []shard.Record{groupTombstone(id)}
}

// stop ends all timers.
func (c *classicGroup) stop(m *Machine) {
	m.timers.stop(&c.joinTimer)
	m.timers.stop(&c.syncTimer)
	for _, mb := range c.members {
		m.timers.stop(&mb.session)
	}
	for _, p := range c.pending {
		m.timers.stop(&p.session)
	}
}
