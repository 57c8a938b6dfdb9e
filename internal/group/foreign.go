package group

import (
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// foreignGroup is a group of a kind whose protocol is not spoken here: it came with an adopted log. Its
// records stay as they are; only their keys are known. Nobody can be in it, since nobody could join.
//
// Tombstones of these records are written too, where an admin deletes the group or a classic member joins a
// consumer group that is empty. Deleting the group record alone would leave member records that Kafka, given
// the log back, stumbles over.
type foreignGroup struct {
	kindName string
	// keys are the keys of its records that are not tombstones.
	keys map[string]struct{}
}

// foreignKindOf is the kind that a key says its group is of; false for keys that say nothing about that.
func foreignKindOf(t keyType) (string, bool) {
	switch {
	case t >= 3 && t <= 8 || t == 16:
		return "consumer", true
	case t >= 10 && t <= 15:
		return "share", true
	case t == 17 || t >= 19 && t <= 23:
		return "streams", true
	}
	return "", false
}

// replayForeign notes that a record of a foreign group is there, or is no more. The group exists while
// any of its records does.
func (m *Machine) replayForeign(t keyType, r shard.Replayed) error {
	kindName, ok := foreignKindOf(t)
	if !ok {
		return nil
	}
	id, err := groupOf(r.Key)
	if err != nil {
		return err
	}
	g := m.groups[id]
	if r.Value == nil {
		if g != nil && g.foreign != nil {
			delete(g.foreign.keys, string(r.Key))
			if len(g.foreign.keys) == 0 {
				g.foreign = nil
				m.kindGone(g)
			}
		}
		return nil
	}
	if g == nil {
		g = m.newGroup(id)
	}
	if g.foreign == nil || g.foreign.kindName != kindName {
		if g.classic != nil {
			g.classic.stop(m)
		}
		g.classic, g.foreign = nil, &foreignGroup{kindName: kindName, keys: map[string]struct{}{}}
	}
	g.foreign.keys[string(r.Key)] = struct{}{}
	return nil
}

// convertible reports whether a classic member may join, which makes the group a classic one: as Kafka does
// it with consumer groups that are empty.
func (f *foreignGroup) convertible() bool { return f.kindName == consumerProtocol }

// typeName is the type in ListGroups.
func (f *foreignGroup) typeName() string { return f.kindName }

// protocolName is the protocol type in ListGroups: the same.
func (f *foreignGroup) protocolName() string { return f.kindName }

// stateName is Empty.
func (f *foreignGroup) stateName() string { return empty.String() }

// subscribedTo is false: nobody is there.
func (f *foreignGroup) subscribedTo(string) bool { return false }

// empty is true: nobody is there.
func (f *foreignGroup) empty() bool { return true }

// checkCommit lets those commit who are in no group.
func (f *foreignGroup) checkCommit(who committer) protocol.Code {
	if who.generation >= 0 || who.memberID != "" {
		return protocol.UnknownMemberID
	}
	return protocol.None
}

// checkDelete allows consumer groups to be deleted. Others have state in other places too.
func (f *foreignGroup) checkDelete() protocol.Code {
	if !f.convertible() {
		return protocol.GroupIDNotFound
	}
	return protocol.None
}

// checkDeleteOffsets allows it.
func (f *foreignGroup) checkDeleteOffsets() protocol.Code { return protocol.None }

// unusedSince is the commit, as for groups that nobody is in.
func (f *foreignGroup) unusedSince(c committed) (int64, bool) { return c.commitTime, true }

// tombstones forget all records. Kafka checks while it loads that members go before what they belong to:
// their types have the higher numbers, but for the regular expressions.
func (f *foreignGroup) tombstones(string) []shard.Record {
	keys := make([]string, 0, len(f.keys))
	for key := range f.keys {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return strings.Compare(b, a) })
	records := make([]shard.Record, len(keys))
	for i, key := range keys {
		records[i] = shard.Record{Key: []byte(key)}
	}
	return records
}

// stop has nothing to stop.
func (f *foreignGroup) stop(*Machine) {}
