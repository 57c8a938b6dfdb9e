package group

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// TestRandomLives has a few clients do whatever comes to their minds, with refused appends and restarts of the
// coordinator in between. After every step the machine must be consistent in itself (stage.check), and its
// offsets must be those that a much simpler reading of the log gives. In the end, with nobody left to do
// anything, everybody must get an answer and all groups become empty.
func TestRandomLives(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newStage(t)
		s.config.InitialRebalanceDelay = time.Second
		var history []string
		defer func() {
			if rt.Failed() || t.Failed() {
				rt.Logf("%s", strings.Join(history, "\n"))
			}
		}()
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			for _, line := range step(rt, s) {
				s.out.Reset()
				history = append(history, "> "+line)
				s.command(line)
				history = append(history, s.out.String())
				if diff := cmp.Diff(readOffsets(s.log), s.allOffsets()); diff != "" {
					rt.Fatalf("after %s: -log +machine\n%s", line, diff)
				}
			}
		}
		s.refuse = nil
		s.advance(time.Hour)
		if len(s.tickets) > 0 {
			rt.Fatalf("%d still wait: %v", len(s.tickets), s.tickets)
		}
		for id, g := range s.machine.groups {
			if !g.kind().empty() {
				rt.Fatalf("group %s is %s after an hour of silence", id, g.kind().stateName())
			}
		}
		before := s.allOffsets()
		s.restart()
		if diff := cmp.Diff(before, s.allOffsets()); diff != "" {
			rt.Fatalf("-before +after a restart\n%s", diff)
		}
	})
}

// step draws a command of a transcript, or a few that belong together.
func step(rt *rapid.T, s *stage) []string {
	// Spread evenly: rapid likes the first of a list.
	pick := func(label string, of ...string) string {
		return of[rapid.Uint32().Draw(rt, label)*2654435761>>16%uint32(len(of))]
	}
	group := pick("group", "g", "g", "h")
	name := pick("name", "a", "b", "c", "d")
	name += "@" + group // a client is in one group
	generation := int32(0)
	if g := s.machine.groups[group]; g != nil && g.classic != nil {
		generation = g.classic.generation
		for leader, id := range s.members {
			if id == g.classic.leader && g.classic.state == completingRebalance && pick("leader", "leads", "") != "" {
				name = leader
			}
		}
	}
	if pick("form", "", "", "", "", "form") != "" {
		lines := []string{
			fmt.Sprintf("join a@%s group=%s v=3 session=30s", group, group), fmt.Sprintf("join b@%s group=%s v=3 session=30s", group, group), "advance 2s",
		}
		for _, who := range []string{"a", "b"} {
			lines = append(lines, fmt.Sprintf("sync %s@%s group=%s gen=%d assign=a@%s:x,b@%s:y", who, group, group, generation+1, group, group))
		}
		return lines
	}
	return []string{oneStep(rt, s, pick, group, name, generation)}
}

// oneStep draws one command.
func oneStep(rt *rapid.T, s *stage, pick func(label string, of ...string) string, group, name string, generation int32) string {
	// Static clients are so for good, and say so every time.
	static := ""
	if strings.HasPrefix(name, "c") || strings.HasPrefix(name, "d") {
		static = " instance=" + name
	}
	switch pick("what", "join", "join", "join", "sync", "sync", "sync", "heartbeat", "leave", "gone", "commit", "commit", "txn", "end",
		"advance", "advance", "restart", "refuse", "delete", "forget", "drop", "size", "foreign") {
	case "join":
		id := pick("id", "", "", " member=")
		return fmt.Sprintf("join %s group=%s v=%s session=%s rebalance=%s protocols=%s%s%s", name, group, pick("v", "0", "3", "8", "9"),
			pick("session", "6s", "30s"), pick("rebalance", "10s", "60s"), pick("protocols", "p:t,q:t", "q:t,p:t+u", "p:u", "r"), static, id)
	case "sync":
		assign := make([]string, 0, 4)
		for member := range s.members {
			assign = append(assign, member+":x")
		}
		slices.Sort(assign)
		return fmt.Sprintf("sync %s group=%s gen=%d%s assign=%s", name, group, generation, static, strings.Join(assign, ","))
	case "heartbeat":
		return fmt.Sprintf("heartbeat %s group=%s gen=%d%s", name, group, generation, static)
	case "leave":
		return fmt.Sprintf("leave %s group=%s", name, group)
	case "gone":
		waiting := slices.Sorted(func(yield func(string) bool) {
			for _, who := range s.tickets {
				if !yield(who) {
					return
				}
			}
		})
		if len(waiting) == 0 {
			return "advance 1s"
		}
		who := rapid.SampledFrom(waiting).Draw(rt, "who")
		return fmt.Sprintf("gone %s group=%s", who, who[len(who)-1:])
	case "commit":
		as := pick("as", "", " "+name+fmt.Sprintf(" gen=%d", generation)+static)
		return fmt.Sprintf("commit group=%s %s-%s=%d%s", group, pick("topic", "t", "u"), pick("partition", "0", "1"), rapid.IntRange(0, 99).Draw(rt, "offset"), as)
	case "txn":
		return fmt.Sprintf("txn %s group=%s %s-0=%d", pick("producer", "1", "2"), group, pick("topic", "t", "u"), rapid.IntRange(0, 99).Draw(rt, "offset"))
	case "end":
		return fmt.Sprintf("end %s %s", pick("producer", "1", "2"), pick("how", "commit", "abort"))
	case "advance":
		return "advance " + pick("time", "1s", "5s", "20s", "70s")
	case "refuse":
		return pick("refusal", "refuse", "refuse", "refuse NOT_ENOUGH_REPLICAS", "refuse RECORD_LIST_TOO_LARGE")
	case "delete":
		return "delete " + group
	case "forget":
		return fmt.Sprintf("forget group=%s %s-0", group, pick("topic", "t", "u"))
	case "drop":
		return "drop " + pick("topic", "t", "u")
	case "size":
		return "config size=" + pick("size", "1", "2", "100")
	case "foreign":
		return fmt.Sprintf("foreign %s %s%s", pick("type", "3", "5", "11"), pick("of", "x", "y"), pick("gone", "", " gone"))
	}
	return "restart"
}

// readOffsets is what the records of a log say, read as simply as can be.
func readOffsets(log []entry) map[string]int64 {
	type commit struct {
		key    string
		offset int64
		at     protocol.Offset
	}
	settled := map[string]commit{}
	open := map[protocol.ProducerID][]commit{}
	for _, e := range log {
		kind, _ := typeOf(e.Key)
		switch {
		case e.marker:
			for _, c := range open[e.ProducerID] {
				if was, ok := settled[c.key]; e.commit && (!ok || was.at < c.at) {
					settled[c.key] = c
				}
			}
			delete(open, e.ProducerID)
		case kind != keyOffset:
		case e.Value == nil:
			delete(settled, string(e.Key))
			for producer := range open {
				open[producer] = slices.DeleteFunc(open[producer], func(c commit) bool { return c.key == string(e.Key) })
			}
		default:
			v, _ := committedOf(e.Value, e.Offset)
			c := commit{string(e.Key), v.offset, e.Offset}
			if e.ProducerID == protocol.NoProducerID {
				settled[c.key] = c
			} else {
				open[e.ProducerID] = append(open[e.ProducerID], c)
			}
		}
	}
	offsets := map[string]int64{}
	for key, c := range settled {
		group, tp, _ := offsetKeyOf([]byte(key))
		offsets[group+" "+tp.String()] = c.offset
	}
	return offsets
}

// allOffsets are the machine's.
func (s *stage) allOffsets() map[string]int64 {
	offsets := map[string]int64{}
	for _, p := range s.machine.progress() {
		for _, o := range p.Offsets {
			offsets[fmt.Sprintf("%s %s-%d", p.Group, o.Topic, o.Partition)] = o.Offset
		}
	}
	return offsets
}
