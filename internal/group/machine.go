package group

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// Config is what may change while groups are coordinated. [DefaultConfig] is Kafka's.
type Config struct {
	// InitialRebalanceDelay is how long the first rebalance of a group waits for more members
	// (group.initial.rebalance.delay.ms).
	InitialRebalanceDelay time.Duration
	// MinSessionTimeout and MaxSessionTimeout bound what members may ask for
	// (group.min.session.timeout.ms, group.max.session.timeout.ms).
	MinSessionTimeout, MaxSessionTimeout time.Duration
	// NewMemberJoinTimeout ends the wait of new members, whose clients may be gone
	// (group.new.member.join.timeout.ms, an internal key of Kafka's).
	NewMemberJoinTimeout time.Duration
	// MaxSize is how many members a group may have (group.max.size).
	MaxSize int
	// MaxMetadata is how long the metadata of an offset may be (offset.metadata.max.bytes), in UTF-16 units
	// as Kafka counts them.
	MaxMetadata int
	// OffsetsRetention is how long offsets are kept that nobody uses (offsets.retention.minutes).
	OffsetsRetention time.Duration
	// RetentionCheckInterval is how often that is checked (offsets.retention.check.interval.ms).
	RetentionCheckInterval time.Duration
	// TopicIDs writes the topic's id with an offset, as Kafka 4 does: in a version of the record that
	// older tools cannot read.
	TopicIDs bool
}

// DefaultConfig is what Kafka has without configuration.
func DefaultConfig() Config {
	return Config{
		InitialRebalanceDelay: 3 * time.Second, MinSessionTimeout: 6 * time.Second, MaxSessionTimeout: 30 * time.Minute,
		NewMemberJoinTimeout: 5 * time.Minute, MaxSize: 1<<31 - 1, MaxMetadata: 4096,
		OffsetsRetention: 7 * 24 * time.Hour, RetentionCheckInterval: 10 * time.Minute,
	}
}

// ClientInfo is who sends a request.
type ClientInfo struct {
	// ClientID is from the request's header.
	ClientID string
	// Host is the client's address as Kafka shows it: a slash and the IP address.
	Host string
}

// Machine holds the groups of one partition of __consumer_offsets. It is a [shard.Machine].
//
//	requests          api_*.go, on the connection's goroutine ─► shard lock ─► methods here
//	timers            shard's timer ─► Expire, one due timer a call
//	log               Replay and EndTransaction: while loading, and for each appended record unless Applied is set
//	late answers      Answers, asked for after every step
//
// Offsets change by Replay, so that what is committed is what the log says. Classic groups change at once, and
// their records, which hold less than the group does, are written with Applied (see shard.Decision).
type Machine struct {
	config func() Config
	logger *slog.Logger
	groups map[string]*group
	// transactions are the offsets that open transactions have committed, by producer.
	transactions map[protocol.ProducerID]map[groupPartition]committed
	timers       timers
	check        timer // of the retention of offsets; it runs while there are groups
	answers      []shard.Answer
	// skipped counts the records that could not be read.
	skipped int
}

var _ shard.Machine = (*Machine)(nil)

// NewMachine makes a machine without groups. config is asked whenever it matters.
func NewMachine(config func() Config, logger *slog.Logger) *Machine {
	return &Machine{
		config: config, logger: logger, groups: map[string]*group{},
		transactions: map[protocol.ProducerID]map[groupPartition]committed{},
	}
}

// Replay applies a record. Keys of types that are not known say nothing here; records that are damaged or
// from a future version are skipped and told of, since one of them must not take all other groups away.
func (m *Machine) Replay(r shard.Replayed) {
	t, err := typeOf(r.Key)
	if err == nil {
		switch {
		case t == keyOffset || t == keyOffsetLegacy:
			err = m.replayOffset(r)
		case t == keyGroup:
			err = m.replayGroup(r)
		case t >= keyForeignFirst && t <= keyForeignLast:
			err = m.replayForeign(t, r)
		}
	}
	if err != nil {
		m.skipped++
		m.logger.Warn("record skipped", "offset", r.Offset, "error", err)
	}
}

// replayGroup applies the record of a classic group.
func (m *Machine) replayGroup(r shard.Replayed) error {
	id, err := groupOf(r.Key)
	if err != nil {
		return err
	}
	g := m.groups[id]
	if r.Value == nil {
		if g != nil && g.classic != nil {
			g.classic.stop(m)
			g.classic = nil
			m.kindGone(g)
		}
		return nil
	}
	v, err := groupValueOf(r.Value)
	if err != nil {
		return err
	}
	if g == nil {
		g = m.newGroup(id)
	}
	if g.classic != nil {
		g.classic.stop(m)
	}
	g.classic, g.foreign = classicFromRecord(g, v), nil
	return nil
}

// newGroup makes a group, which has no kind yet.
func (m *Machine) newGroup(id string) *group {
	g := &group{id: id}
	m.groups[id] = g
	return g
}

// classicFor makes the group under id a classic one, and returns the records that forget what was there.
func (m *Machine) classicFor(now shard.Now, id string) (*group, []shard.Record) {
	g := m.groups[id]
	if g == nil {
		g = m.newGroup(id)
	}
	var forget []shard.Record
	if g.foreign != nil {
		forget = g.foreign.tombstones(id)
		g.foreign = nil
		m.logger.Info("group becomes a classic one", "group", id)
	}
	g.classic = newClassic(g, now.Latest)
	m.startCheck(now)
	return g, forget
}

// kindGone is called when a group has lost its kind: while it has offsets it is a simple one.
func (m *Machine) kindGone(g *group) {
	if g.classic != nil || g.foreign != nil {
		return
	}
	if g.offsets.empty() {
		delete(m.groups, g.id)
		return
	}
	g.classic = newClassic(g, noStateTime)
}

// dropUnborn forgets a group that was never more than a wish.
func (m *Machine) dropUnborn(g *group) {
	c := g.classic
	if c != nil && c.state == empty && !c.persisted && len(c.pending) == 0 && c.generation == 0 && g.offsets.empty() {
		delete(m.groups, g.id)
	}
}

// Loaded starts the sessions of all members.
func (m *Machine) Loaded(now shard.Now) {
	for _, id := range m.ids() {
		if c := m.groups[id].classic; c != nil {
			c.loaded(m, now)
			m.dropUnborn(c.group) // the last of its offsets was deleted, and it had nothing else
		}
	}
	if len(m.groups) > 0 {
		m.startCheck(now)
	}
}

// Deadline is when the nearest timer may be due.
func (m *Machine) Deadline() (time.Duration, bool) { return m.timers.next() }

// Expire does what one timer that is due is for.
func (m *Machine) Expire(now shard.Now) (shard.Decision, bool) {
	t := m.timers.due(now)
	if t == nil {
		return shard.Decision{}, false
	}
	return t.fire(m, now), true
}

// Answers hands over the answers to those who waited.
func (m *Machine) Answers() []shard.Answer {
	answers := m.answers
	m.answers = nil
	return answers
}

// ids are the ids of all groups, sorted: no decision hangs on the order of a map.
func (m *Machine) ids() []string { return slices.Sorted(maps.Keys(m.groups)) }
