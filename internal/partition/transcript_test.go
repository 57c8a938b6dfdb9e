package partition

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/transcript"
)

// Every file in testdata/*.txt is a transcript: commands, a line of dashes, and what they printed. A line of
// prose ends without dashes. The clock stands still but for "at". Commands about a leader:
//
//	lead 5 isr=1,2 replicas=1,2,3 end=10 hw=7 min=2    broker 1 begins epoch 5
//	append 12                      its log ends at 12
//	fetch 2 8 broker=100           broker 2 fetches from 8
//	at 31s                         the clock shows that
//	heard 2 30s                    when broker 2 fetched anything last
//	check                          asks for a proposal
//	taken isr=1 version=4          the controller has taken it
//	answer INELIGIBLE_REPLICA      it has not
//	lost                           no answer
//	learn isr=1 version=6          UpdateMetadata says so
//	told isr=1 version=6           LeaderAndIsr says so
//	min 1, gone 3                  the minimum, or the cluster, has changed
//	passed                         nothing has happened but time
//
// and about a follower, whose log is given by where its epochs begin and its end:
//
//	follow 7 [unclean] [unclean-in=5] log=1:0,3:40 end=50 hw=45 start=0
//	diverges 1 30                  the leader says that epoch 1 ended at 30
//	differs 47                     records without epochs are not the leader's from there on
//	range 60 90                    the leader has 60 to 90 only
//	watermark 48                   the leader's
//	code NOT_LEADER_FOR_PARTITION    the leader's answer
func TestTranscripts(t *testing.T) {
	transcript.PlayAll(t, func(t *testing.T) func(transcript.Command) []string {
		w := &world{t: t, heard: map[P.BrokerID]time.Duration{}}
		return w.run
	})
}

// world is what the commands of one transcript act on.
type world struct {
	t        *testing.T
	now      time.Duration
	heard    map[P.BrokerID]time.Duration
	leader   *Leader
	proposal *Proposal
	follower Follower
	held     Held
	epochs   []EpochEnd // of the follower: Epoch begins at End
}

func (w *world) run(c transcript.Command) []string {
	plain, named := c.Plain, c.Named
	switch c.Name {
	case "at":
		w.now = w.duration(plain[0])
		return nil
	case "heard":
		w.heard[P.BrokerID(w.number(plain[0]))] = w.duration(plain[1])
		return nil
	case "lead":
		w.lead(plain, named)
		return []string{w.describe()}
	case "follow":
		w.follow(plain, named)
		return nil
	case "diverges", "differs", "range", "watermark", "code":
		return w.follows(c.Name, plain)
	}
	before := w.describe()
	said := w.leads(c.Name, plain, named)
	if after := w.describe(); after != before {
		said = append(said, after)
	}
	return said
}

func (w *world) lead(plain []string, named map[string]string) {
	state := &metadata.Partition{
		Leader: 1, LeaderEpoch: P.LeaderEpoch(w.number(plain[0])), Epoch: P.PartitionEpoch(w.number("0" + named["version"])),
		Replicas: w.brokers(named["replicas"]), ISR: w.brokers(named["isr"]),
	}
	if eligible, ok := named["eligible"]; ok {
		state.Eligible = w.brokers(eligible)
	}
	settings := Settings{Self: 1, BrokerEpoch: 1000, MinInSync: w.number("0" + named["min"]), MaxLag: 30 * time.Second}
	w.leader = Lead(state, settings, Position{End: w.offset(named["end"]), Watermark: w.offset(named["hw"])}, w.now)
}

// leads carries out a command about the leader.
func (w *world) leads(command string, plain []string, named map[string]string) []string {
	l := w.leader
	switch command {
	case "append":
		l.Appended(w.offset(plain[0]), w.now)
	case "produce":
		if err := l.Admit(true); err != nil {
			return []string{err.Error()}
		}
	case "fetch":
		q := Fetch{Replica: P.BrokerID(w.number(plain[0])), Epoch: P.NoBrokerEpoch, Offset: w.offset(plain[1])}
		if epoch, ok := named["broker"]; ok {
			q.Epoch = P.BrokerEpoch(w.number(epoch))
		}
		if _, err := l.Fetched(q, w.now); err != nil {
			return []string{err.Error()}
		}
		if l.MayExpand(q.Replica, w.now) {
			return w.check()
		}
	case "check":
		return w.check()
	case "taken":
		return w.answer(Answer{State: w.state(named)})
	case "answer":
		return w.answer(Answer{Code: w.code(plain[0])})
	case "lost":
		return w.answer(Answer{Lost: true})
	case "learn":
		state := w.state(named)
		l.Learn(&state, w.now)
	case "told":
		state := w.state(named)
		l.Told(&state, w.now)
	case "min":
		l.SetMinimum(w.number(plain[0]), w.now)
	case "gone":
		l.Gone(P.BrokerID(w.number(plain[0])), w.now)
	case "passed":
		l.Passed(w.now)
	default:
		w.t.Errorf("unknown command %s", command)
	}
	return nil
}

func (w *world) state(named map[string]string) metadata.Partition {
	state := metadata.Partition{ISR: w.brokers(named["isr"]), Epoch: P.PartitionEpoch(w.number(named["version"])), LeaderEpoch: w.leader.Epoch}
	if eligible, ok := named["eligible"]; ok {
		state.Eligible = w.brokers(eligible)
	}
	if epoch, ok := named["epoch"]; ok {
		state.LeaderEpoch = P.LeaderEpoch(w.number(epoch))
	}
	return state
}

func (w *world) answer(a Answer) []string {
	if w.leader.Answered(w.proposal, a, w.now) {
		return []string{"again"}
	}
	return nil
}

func (w *world) check() []string {
	p := w.leader.Propose(func(id P.BrokerID) time.Duration {
		if heard, ok := w.heard[id]; ok {
			return heard
		}
		return never
	}, w.now)
	if p == nil {
		return []string{"nothing to propose"}
	}
	w.proposal = p
	return []string{fmt.Sprintf("propose %v from version %d: %s", p.InSync, p.PartitionEpoch, p.Why)}
}

func (w *world) describe() string {
	l := w.leader
	text := fmt.Sprintf("watermark %d of %d, in sync %v version %d", l.watermark, l.end, l.inSync, l.partition)
	if !slices.Equal(l.wide, l.inSync) {
		text += fmt.Sprintf(", counting %v", l.wide)
	}
	if l.UnderMinimum() {
		text += ", under the minimum"
	}
	if l.eligible {
		text += ", others are eligible"
	}
	if !l.Readable() {
		text += fmt.Sprintf(", not readable before %d", l.EpochStart)
	}
	return text
}

func (w *world) follow(plain []string, named map[string]string) {
	state := &metadata.Partition{Leader: 2, LeaderEpoch: P.LeaderEpoch(w.number(plain[0])), Recovering: slices.Contains(plain, "unclean")}
	if epoch, ok := named["unclean-in"]; ok {
		state.UncleanEpoch = P.LeaderEpoch(w.number(epoch))
	}
	w.follower = Follow(state, false)
	w.held = Held{Start: w.offset("0" + named["start"]), Watermark: w.offset(named["hw"]), End: w.offset(named["end"]), LastEpoch: P.NoLeaderEpoch}
	w.epochs = nil
	for one := range strings.SplitSeq(named["log"], ",") {
		epoch, start, ok := strings.Cut(one, ":")
		if ok {
			w.epochs = append(w.epochs, EpochEnd{P.LeaderEpoch(w.number(epoch)), w.offset(start)})
			w.held.LastEpoch = P.LeaderEpoch(w.number(epoch))
		}
	}
}

// own is the end of an epoch in the follower's log, as Kafka's logs answer it.
func (w *world) own(epoch P.LeaderEpoch) EpochEnd {
	found := EpochEnd{P.NoLeaderEpoch, P.NoOffset}
	for i, e := range w.epochs {
		if e.Epoch <= epoch {
			found = EpochEnd{e.Epoch, w.held.End}
			if i+1 < len(w.epochs) {
				found.End = w.epochs[i+1].End
			}
		}
	}
	return found
}

// follows carries out a command about the follower.
func (w *world) follows(command string, plain []string) []string {
	var step Step
	switch command {
	case "watermark":
		return []string{fmt.Sprint("watermark ", w.follower.Watermark(w.offset(plain[0]), w.held))}
	case "code":
		step = w.follower.Answered(w.code(plain[0]))
	case "differs":
		step = w.follower.Differs(w.offset(plain[0]), w.held)
	case "range":
		step = w.follower.OutOfRange(w.offset(plain[0]), w.offset(plain[1]), w.held)
	default:
		leader := EpochEnd{P.LeaderEpoch(w.number(plain[0])), w.offset(plain[1])}
		step = w.follower.Diverged(leader, w.own(leader.Epoch), w.held)
	}
	text := step.Kind.String()
	if step.Kind == Truncate || step.Kind == Restart {
		text += fmt.Sprintf(" %d", step.Offset)
	}
	if step.Err != nil {
		text += ": " + step.Err.Error()
	}
	return []string{text}
}

func (w *world) number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		w.t.Error(err)
	}
	return n
}

func (w *world) offset(text string) P.Offset { return P.Offset(w.number(text)) }

func (w *world) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		w.t.Error(err)
	}
	return d
}

func (w *world) brokers(text string) (ids []P.BrokerID) {
	for one := range strings.SplitSeq(text, ",") {
		ids = append(ids, P.BrokerID(w.number(one)))
	}
	return ids
}

func (w *world) code(name string) P.Code {
	for c := P.Code(-1); c < 200; c++ {
		if c.Name() == name {
			return c
		}
	}
	w.t.Errorf("no code %s", name)
	return P.None
}
