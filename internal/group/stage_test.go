package group

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// stage runs a machine as a shard does, but one step at a time: it keeps the log, applies decisions, and
// writes down what happens.
type stage struct {
	t       testing.TB
	machine *Machine
	config  Config
	mono    time.Duration
	wall    int64
	// doubt is how far the wall clock has stepped.
	doubt time.Duration
	log   []entry
	// refuse makes appends fail.
	refuse error
	ids    int

	tickets map[shard.Ticket]string
	last    shard.Ticket
	// left are the tickets of those who have gone away; an answer may still come.
	left map[shard.Ticket]bool
	// members are the ids that clients have got, by the name that the transcript has for them.
	members map[string]string
	out     strings.Builder
}

// entry is one thing in the log: a record or a marker.
type entry struct {
	shard.Replayed
	marker, commit bool
}

// epoch is the wall clock's time when a stage is set.
const epoch = int64(1_700_000_000_000)

func newStage(t testing.TB) *stage {
	s := &stage{t: t, config: DefaultConfig(), wall: epoch, tickets: map[shard.Ticket]string{}, left: map[shard.Ticket]bool{}, members: map[string]string{}}
	s.machine = NewMachine(func() Config { return s.config }, slog.New(slog.DiscardHandler))
	return s
}

func (s *stage) now() shard.Now {
	stepped := s.wall + s.doubt.Milliseconds()
	return shard.Now{Mono: s.mono, Wall: stepped, Earliest: min(s.wall, stepped), Latest: max(s.wall, stepped)}
}

// say writes a line of the transcript.
func (s *stage) say(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

// ticket names somebody who waits.
func (s *stage) ticket(name string) shard.Ticket {
	s.last++
	s.tickets[s.last] = name
	return s.last
}

// carryOut appends a decision, and tells what was appended and who was answered. It reports an error where
// the append was refused.
func (s *stage) carryOut(d shard.Decision) error {
	var first error
	for len(d.Records) > 0 && s.refuse != nil {
		s.say("refused: %s", protocol.CodeOf(s.refuse).Name())
		if first == nil {
			first = s.refuse
		}
		if d.Refused == nil {
			s.restart()
			return first
		}
		d = d.Refused(s.refuse)
	}
	producer := protocol.NoProducerID
	if d.Producer != nil {
		producer = d.Producer.ID
	}
	for _, r := range d.Records {
		e := entry{Replayed: shard.Replayed{Offset: protocol.Offset(len(s.log)), Timestamp: s.now().Wall, ProducerID: producer, Key: r.Key, Value: r.Value}}
		s.log = append(s.log, e)
		s.say("log %d: %s", e.Offset, describeRecord(e.Replayed))
		if d.Applied == nil {
			s.machine.Replay(e.Replayed)
		}
	}
	if d.Applied != nil {
		d.Applied()
	}
	s.deliver()
	s.check()
	return first
}

// deliver tells the late answers.
func (s *stage) deliver() {
	for _, a := range s.machine.Answers() {
		name, ok := s.tickets[a.To]
		if s.left[a.To] {
			delete(s.left, a.To)
			continue
		}
		if !ok {
			s.t.Fatalf("ticket %d answered twice, or never given out: %v", a.To, a.Value)
		}
		delete(s.tickets, a.To)
		s.say("%s ← %s", name, describeAnswer(a.Value))
		if join, ok := a.Value.(*kmsg.JoinGroupResponse); ok && join.MemberID != "" {
			s.members[name] = join.MemberID
		}
	}
}

// advance lets time pass, and timers fire when they are due.
func (s *stage) advance(by time.Duration) {
	end := s.mono + by
	for {
		at, ok := s.machine.Deadline()
		if !ok || at > end {
			break
		}
		s.pass(max(at-s.mono, 0))
		before := s.out.String()
		for {
			d, due := s.machine.Expire(s.now())
			if !due {
				break
			}
			// A refusal is in the transcript already.
			_ = s.carryOut(d)
		}
		if text := s.out.String(); text != before {
			s.out.Reset()
			s.out.WriteString(strings.TrimSuffix(text, "\n") + fmt.Sprintf("   (after %s)\n", by-(end-s.mono)))
		}
	}
	s.pass(end - s.mono)
}

func (s *stage) pass(by time.Duration) {
	s.mono += by
	s.wall += by.Milliseconds()
}

// restart loads what is in the log into a new machine. Who waits is told by the shard.
func (s *stage) restart() {
	for _, t := range slices.Sorted(maps.Keys(s.tickets)) {
		s.say("%s ← NOT_COORDINATOR", s.tickets[t])
	}
	clear(s.tickets)
	s.machine = NewMachine(func() Config { return s.config }, slog.New(slog.DiscardHandler))
	for _, e := range s.log {
		if e.marker {
			s.machine.EndTransaction(e.ProducerID, e.commit)
		} else {
			s.machine.Replay(e.Replayed)
		}
	}
	s.machine.Loaded(s.now())
	s.deliver()
	s.check()
}

// endTransaction appends a marker.
func (s *stage) endTransaction(producer protocol.ProducerID, commit bool) {
	e := entry{Replayed: shard.Replayed{Offset: protocol.Offset(len(s.log)), ProducerID: producer}, marker: true, commit: commit}
	s.log = append(s.log, e)
	s.say("log %d: marker of producer %d, commit %t", e.Offset, producer, commit)
	s.machine.EndTransaction(producer, commit)
	s.check()
}

// newID is the next member id.
func (s *stage) newID(prefix string) string {
	s.ids++
	return fmt.Sprintf("%s-%d", prefix, s.ids)
}

// check holds the machine to what is always true of it.
func (s *stage) check() {
	for id, g := range s.machine.groups {
		if (g.classic == nil) == (g.foreign == nil) || g.id != id {
			s.t.Fatalf("group %s has no kind or two", id)
		}
		if g.classic != nil {
			s.checkClassic(g.classic)
		}
		for topic, partitions := range g.offsets.byTopic {
			if len(partitions) == 0 {
				s.t.Fatalf("group %s: empty map of topic %s", id, topic)
			}
		}
		for tp, producers := range g.offsets.unstable {
			for producer := range producers {
				if _, ok := s.machine.transactions[producer][groupPartition{id, tp}]; !ok {
					s.t.Fatalf("group %s: %v is unstable for producer %d, which has no offset there", id, tp, producer)
				}
			}
		}
	}
	for i, t := range s.machine.timers {
		if t.index != i+1 || t.queued > t.at || t.fire == nil {
			s.t.Fatalf("timer %d of %d: %+v", i, len(s.machine.timers), *t)
		}
	}
}

// checkClassic holds a classic group to what is always true of it.
func (s *stage) checkClassic(c *classicGroup) {
	fail := func(format string, args ...any) {
		s.t.Helper()
		s.t.Fatalf("group %s in %s, generation %d: %s\n%s", c.group.id, c.state, c.generation, fmt.Sprintf(format, args...), s.out.String())
	}
	joined, statics := 0, 0
	for _, mb := range c.members {
		if c.byID[mb.id] != mb {
			fail("%s is not found by its id", mb.id)
		}
		if mb.instanceID != nil {
			statics++
			if c.byInstance[*mb.instanceID] != mb {
				fail("%s is not found by its instance id", mb.id)
			}
		}
		if mb.join.waits() {
			joined++
		}
		if mb.join.waits() && c.state != preparingRebalance {
			fail("%s waits for a rebalance", mb.id)
		}
		if mb.sync.waits() && c.state != completingRebalance {
			fail("%s waits for an assignment", mb.id)
		}
		if (mb.fresh || mb.nameless) && c.state != preparingRebalance && !(mb.instanceID != nil && mb.nameless) {
			fail("%s is new for ever", mb.id)
		}
		if mb.session.index == 0 && !mb.alive() {
			fail("%s has no session, and does not wait either", mb.id)
		}
	}
	for id := range c.awaitingSync {
		if c.byID[id] == nil {
			fail("%s is awaited, but no member", id)
		}
	}
	switch {
	case joined != c.joined || len(c.byID) != len(c.members) || len(c.byInstance) != statics:
		fail("%d joined, counted %d; %d by id, %d by instance", joined, c.joined, len(c.byID), len(c.byInstance))
	case c.state == empty && len(c.members) > 0, len(c.members) == 0 && (c.state == stable || c.state == completingRebalance):
		fail("%d members", len(c.members))
	case (c.leader == "") != (len(c.members) == 0) || c.leader != "" && c.byID[c.leader] == nil:
		fail("leader %q", c.leader)
	case c.state == preparingRebalance && c.joinTimer.index == 0:
		fail("nothing ends the rebalance")
	case c.state == stable && len(c.members) > 0 && !c.common(c.protocol):
		fail("protocol %q is not common to all", c.protocol)
	}
}

// describeRecord is one line for a record.
func describeRecord(r shard.Replayed) string {
	t, err := typeOf(r.Key)
	if err != nil {
		return err.Error()
	}
	switch t {
	case keyOffset:
		group, tp, _ := offsetKeyOf(r.Key)
		if r.Value == nil {
			return fmt.Sprintf("offset %s %s: gone", group, tp)
		}
		var v kmsg.OffsetCommitValue
		_ = v.ReadFrom(r.Value)
		return fmt.Sprintf("offset %s %s: v%d %d %q at +%s%s", group, tp, v.Version, v.Offset, v.Metadata, since(v.CommitTimestamp), ofProducer(r.ProducerID))
	case keyGroup:
		group, _ := groupOf(r.Key)
		if r.Value == nil {
			return fmt.Sprintf("group %s: gone", group)
		}
		v, _ := groupValueOf(r.Value)
		return fmt.Sprintf("group %s: v%d generation %d protocol %s leader %s at +%s%s",
			group, v.Version, v.Generation, text(v.Protocol), text(v.Leader), since(v.CurrentStateTimestamp), describeMembers(v))
	}
	group, _ := groupOf(r.Key)
	if r.Value == nil {
		return fmt.Sprintf("key of type %d, group %s: gone", t, group)
	}
	return fmt.Sprintf("key of type %d, group %s", t, group)
}

func describeMembers(v *kmsg.GroupMetadataValue) string {
	var all strings.Builder
	for _, m := range v.Members {
		fmt.Fprintf(&all, " [%s%s %q]", m.MemberID, instance(m.InstanceID), m.Assignment)
	}
	return all.String()
}

func since(ms int64) time.Duration { return time.Duration(ms-epoch) * time.Millisecond }

func ofProducer(id protocol.ProducerID) string {
	if id == protocol.NoProducerID {
		return ""
	}
	return fmt.Sprintf(" of producer %d", id)
}

func text(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

func instance(id *string) string {
	if id == nil {
		return ""
	}
	return "/" + *id
}

// describeAnswer is one line for a response.
func describeAnswer(value any) string {
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch r := value.(type) {
	case *kmsg.JoinGroupResponse:
		say("join: %s", protocol.Code(r.ErrorCode).Name())
		if r.MemberID != "" {
			say("as %s", r.MemberID)
		}
		if r.ErrorCode == 0 {
			say("generation %d protocol %s leader %s", r.Generation, text(r.Protocol), r.LeaderID)
		}
		if r.SkipAssignment {
			say("skip the assignment")
		}
		for _, m := range r.Members {
			topics, _ := subscribedTopics(m.ProtocolMetadata)
			say("[%s%s%s]", m.MemberID, instance(m.InstanceID), strings.Join(append([]string{""}, topics...), " "))
		}
	case *kmsg.SyncGroupResponse:
		say("sync: %s", protocol.Code(r.ErrorCode).Name())
		if r.ErrorCode == 0 {
			say("protocol %s %q", text(r.Protocol), r.MemberAssignment)
		}
	}
	return strings.Join(parts, " ")
}
