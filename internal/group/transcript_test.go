package group

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

var rewrite = flag.Bool("rewrite", false, "write the transcripts anew; then review the difference")

// TestTranscripts plays testdata/transcripts: a command, a line of dashes, what came of it, an empty line.
// Lines that begin with # are comments.
//
//	join a v=9 session=10s rebalance=60s type=consumer protocols=range:t1+t2,roundrobin instance=i client=c
//	    a client's JoinGroup, as the member that it was told it is, or member=ID, member= for none
//	sync a gen=1 assign=a:text,b:text     the member's SyncGroup
//	heartbeat a gen=1                     leave a b instance=i      gone a (the connection is)
//	commit a gen=1 t-0=5 metadata=x retention=1h id=1      commit group=g t-0=5 (as nobody)
//	txn 7 t-0=5                           end 7 commit
//	fetch t-0 t-1 stable                  fetch all
//	describe  list states=x types=y  delete g  forget t-0  drop t (a topic is deleted)
//	advance 3s   step 24h (of the wall clock)   restart   foreign 3 g (a record of that type)
//	refuse NOT_ENOUGH_REPLICAS, refuse    config delay=3s size=2 retention=1h ids=true
//
// The group is g where group= says nothing else.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d transcripts, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			was, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			is := play(t, string(was))
			if *rewrite {
				if err := os.WriteFile(file, []byte(is), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if is != string(was) {
				t.Errorf("%s is not what happens (go test -rewrite writes that):\n%s", file, is)
			}
		})
	}
}

// play runs the commands of a transcript and returns it with what came of them.
func play(t *testing.T, transcript string) string {
	s := newStage(t)
	var result strings.Builder
	skip := false
	for line := range strings.Lines(transcript) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "":
			skip = false
			result.WriteString("\n")
		case skip:
		case line == "----":
			skip = true
		case strings.HasPrefix(line, "#"):
			result.WriteString(line + "\n")
		default:
			s.out.Reset()
			s.command(line)
			result.WriteString(line + "\n----\n" + s.out.String())
		}
	}
	return result.String()
}

// words are a command's arguments: plain ones, and those with names.
type words struct {
	plain []string
	named map[string]string
}

func parse(fields []string) words {
	w := words{named: map[string]string{}}
	for _, f := range fields {
		if name, value, ok := strings.Cut(f, "="); ok {
			w.named[name] = value
		} else {
			w.plain = append(w.plain, f)
		}
	}
	return w
}

func (w words) get(name, otherwise string) string {
	if value, ok := w.named[name]; ok {
		return value
	}
	return otherwise
}

func (w words) pointer(name string) *string {
	if value, ok := w.named[name]; ok {
		return &value
	}
	return nil
}

func (s *stage) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *stage) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *stage) command(line string) {
	fields := strings.Fields(line)
	w := parse(fields[1:])
	commands := map[string]func(words){
		"join": s.join, "sync": s.sync, "heartbeat": s.heartbeat, "leave": s.leave, "gone": s.gone,
		"commit": s.commit, "txn": s.txn, "end": s.end, "fetch": s.fetch, "describe": s.describe, "list": s.list,
		"delete": s.delete, "forget": s.forget, "drop": s.drop, "foreign": s.foreign, "config": s.configure,
		"advance": func(w words) { s.advance(s.duration(w.plain[0])) },
		"step":    func(w words) { s.doubt = s.duration(w.plain[0]) },
		"restart": func(words) { s.restart() },
		"refuse":  s.setRefuse,
	}
	command, ok := commands[fields[0]]
	if !ok {
		s.t.Fatalf("unknown command %q", line)
	}
	command(w)
	if g := s.machine.groups[w.get("group", "g")]; g != nil && g.classic != nil && fields[0] != "fetch" {
		c := g.classic
		s.say("%s generation %d, %d members, %d pending", c.state, c.generation, len(c.members), len(c.pending))
	}
}

func (s *stage) setRefuse(w words) {
	s.refuse = nil
	for code := protocol.Code(1); len(w.plain) > 0 && code < 137; code++ {
		if code.Name() == w.plain[0] {
			s.refuse = code
		}
	}
}

func (s *stage) configure(w words) {
	for name, value := range w.named {
		switch name {
		case "delay":
			s.config.InitialRebalanceDelay = s.duration(value)
		case "size":
			s.config.MaxSize = int(s.number(value))
		case "retention":
			s.config.OffsetsRetention = s.duration(value)
		case "metadata":
			s.config.MaxMetadata = int(s.number(value))
		case "ids":
			s.config.TopicIDs = value == "true"
		default:
			s.t.Fatalf("unknown setting %q", name)
		}
	}
}

func (s *stage) join(w words) {
	name := w.plain[0]
	r := kmsg.NewJoinGroupRequest()
	r.Version = int16(s.number(w.get("v", "9")))
	r.Group, r.MemberID, r.InstanceID = w.get("group", "g"), w.get("member", s.members[name]), w.pointer("instance")
	r.SessionTimeoutMillis = int32(s.duration(w.get("session", "10s")).Milliseconds())
	if r.Version > 0 {
		r.RebalanceTimeoutMillis = int32(s.duration(w.get("rebalance", "60s")).Milliseconds())
	}
	r.ProtocolType = w.get("type", consumerProtocol)
	if list := w.get("protocols", "range"); list != "" {
		for _, p := range strings.Split(list, ",") {
			protocol, topics, _ := strings.Cut(p, ":")
			r.Protocols = append(r.Protocols, kmsg.JoinGroupRequestProtocol{Name: protocol, Metadata: subscription(topics)})
		}
	}
	prefix := w.get("client", name)
	if r.InstanceID != nil {
		prefix = *r.InstanceID
	}
	client := ClientInfo{ClientID: w.get("client", name), Host: "/127.0.0.1"}
	_ = s.carryOut(s.machine.JoinGroup(s.now(), client, &r, s.newID(prefix), s.ticket(name)))
}

// subscription is what a consumer says in a protocol: version, topics, user data.
func subscription(topics string) []byte {
	b := []byte{0, 0}
	var names []string
	if topics != "" {
		names = strings.Split(topics, "+")
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(names)))
	for _, name := range names {
		b = binary.BigEndian.AppendUint16(b, uint16(len(name)))
		b = append(b, name...)
	}
	return append(b, 0xff, 0xff, 0xff, 0xff)
}

func (s *stage) sync(w words) {
	name := w.plain[0]
	r := kmsg.NewSyncGroupRequest()
	r.Group, r.MemberID, r.InstanceID = w.get("group", "g"), w.get("member", s.members[name]), w.pointer("instance")
	r.Generation, r.Protocol, r.ProtocolType = int32(s.number(w.get("gen", "1"))), w.pointer("protocol"), w.pointer("type")
	if list := w.get("assign", ""); list != "" {
		for _, a := range strings.Split(list, ",") {
			member, assignment, _ := strings.Cut(a, ":")
			if id, ok := s.members[member]; ok {
				member = id
			}
			r.GroupAssignment = append(r.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: member, MemberAssignment: []byte(assignment)})
		}
	}
	_ = s.carryOut(s.machine.SyncGroup(s.now(), &r, s.ticket(name)))
}

func (s *stage) heartbeat(w words) {
	r := kmsg.NewHeartbeatRequest()
	r.Group, r.MemberID, r.InstanceID = w.get("group", "g"), w.get("member", s.members[w.plain[0]]), w.pointer("instance")
	r.Generation = int32(s.number(w.get("gen", "1")))
	s.say("heartbeat: %s", s.machine.Heartbeat(s.now(), &r).Name())
}

func (s *stage) leave(w words) {
	var members []kmsg.LeaveGroupRequestMember
	for _, name := range w.plain {
		id, ok := s.members[name]
		if !ok {
			id = name
		}
		members = append(members, kmsg.LeaveGroupRequestMember{MemberID: id})
		delete(s.members, name)
	}
	if id := w.pointer("instance"); id != nil {
		if len(members) == 1 {
			members[0].InstanceID = id
		} else {
			members = append(members, kmsg.LeaveGroupRequestMember{InstanceID: id})
		}
	}
	r, d := s.machine.LeaveGroup(s.now(), w.get("group", "g"), members)
	for _, m := range r.Members {
		s.say("leave %s%s: %s", m.MemberID, instance(m.InstanceID), protocol.Code(m.ErrorCode).Name())
	}
	_ = s.carryOut(d)
}

func (s *stage) gone(w words) {
	for t, name := range s.tickets {
		if name == w.plain[0] {
			delete(s.tickets, t)
			s.left[t] = true
			_ = s.carryOut(s.machine.JoinGone(s.now(), w.get("group", "g"), t))
			return
		}
	}
	s.t.Fatalf("%s does not wait", w.plain[0])
}

// offsets are the arguments of the form topic-0=5, in order.
func (s *stage) offsets(w words, each func(tp topicPartition, offset int64)) {
	names := make([]string, 0, len(w.named))
	for name := range w.named {
		if tp, err := protocol.PartitionOfDir(name); err == nil && tp.Topic != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		tp, _ := protocol.PartitionOfDir(name)
		each(tp, s.number(w.named[name]))
	}
}

func (s *stage) commit(w words) {
	r := kmsg.NewOffsetCommitRequest()
	r.Version = int16(s.number(w.get("v", "9")))
	r.Group, r.Generation = w.get("group", "g"), int32(s.number(w.get("gen", "-1")))
	if len(w.plain) > 0 {
		r.MemberID = w.get("member", s.members[w.plain[0]])
	}
	r.InstanceID = w.pointer("instance")
	if retention := w.get("retention", ""); retention != "" {
		r.RetentionTimeMillis = s.duration(retention).Milliseconds()
	}
	id := [16]byte{15: byte(s.number(w.get("id", "0")))}
	s.offsets(w, func(tp topicPartition, offset int64) {
		r.Topics = append(r.Topics, kmsg.OffsetCommitRequestTopic{Topic: tp.Topic, TopicID: id, Partitions: []kmsg.OffsetCommitRequestTopicPartition{
			{Partition: tp.Partition, Offset: offset, LeaderEpoch: -1, Metadata: w.pointer("metadata")},
		}})
	})
	response, d, err := s.machine.OffsetCommit(s.now(), &r)
	if err != nil {
		s.say("commit: %s", protocol.CodeOf(err).Name())
		return
	}
	if err := s.carryOut(d); err != nil {
		return
	}
	for _, topic := range response.Topics {
		for _, p := range topic.Partitions {
			s.say("commit %s-%d: %s", topic.Topic, p.Partition, protocol.Code(p.ErrorCode).Name())
		}
	}
}

func (s *stage) txn(w words) {
	r := kmsg.NewTxnOffsetCommitRequest()
	r.Version = int16(s.number(w.get("v", "4")))
	r.Group, r.ProducerID, r.Generation = w.get("group", "g"), s.number(w.plain[0]), int32(s.number(w.get("gen", "-1")))
	r.MemberID = w.get("member", "")
	s.offsets(w, func(tp topicPartition, offset int64) {
		r.Topics = append(r.Topics, kmsg.TxnOffsetCommitRequestTopic{Topic: tp.Topic, Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{
			{Partition: tp.Partition, Offset: offset, LeaderEpoch: -1},
		}})
	})
	_, d, err := s.machine.TxnOffsetCommit(s.now(), &r)
	if err != nil {
		s.say("txn: %s", protocol.CodeOf(err).Name())
		return
	}
	_ = s.carryOut(d)
}

func (s *stage) end(w words) {
	s.endTransaction(protocol.ProducerID(s.number(w.plain[0])), w.plain[1] == "commit")
}

func (s *stage) fetch(w words) {
	r := kmsg.NewOffsetFetchRequestGroup()
	r.Group = w.get("group", "g")
	stableOnly := false
	for _, name := range w.plain {
		switch name {
		case "stable":
			stableOnly = true
		case "all":
		default:
			tp, err := protocol.PartitionOfDir(name)
			if err != nil {
				s.t.Fatal(err)
			}
			id := [16]byte{15: byte(s.number(w.get("id", "0")))}
			r.Topics = append(r.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: tp.Topic, TopicID: id, Partitions: []int32{tp.Partition}})
		}
	}
	response := s.machine.OffsetFetch(&r, stableOnly)
	for _, topic := range response.Topics {
		for _, p := range topic.Partitions {
			s.say("%s-%d: %s %d %q", topic.Topic, p.Partition, protocol.Code(p.ErrorCode).Name(), p.Offset, text(p.Metadata))
		}
	}
}

func (s *stage) describe(w words) {
	r := s.machine.DescribeGroup(w.get("group", "g"), int16(s.number(w.get("v", "6"))))
	s.say("%s: %s type %q protocol %q %s", protocol.Code(r.ErrorCode).Name(), r.State, r.ProtocolType, r.Protocol, text(r.ErrorMessage))
	for _, m := range r.Members {
		s.say("  %s%s client %s host %s metadata %d bytes assignment %q", m.MemberID, instance(m.InstanceID), m.ClientID, m.ClientHost, len(m.ProtocolMetadata), m.MemberAssignment)
	}
}

func (s *stage) list(w words) {
	filter := func(name string) []string {
		if list := w.get(name, ""); list != "" {
			return strings.Split(list, ",")
		}
		return nil
	}
	for _, g := range s.machine.ListGroups(filter("states"), filter("types")) {
		s.say("%s: %s type %s protocol %q", g.Group, g.GroupState, g.GroupType, g.ProtocolType)
	}
}

func (s *stage) delete(w words) {
	results, d := s.machine.DeleteGroups(w.plain)
	_ = s.carryOut(d)
	for _, r := range results {
		s.say("delete %s: %s %s", r.Group, protocol.Code(r.ErrorCode).Name(), text(r.ErrorMessage))
	}
}

func (s *stage) forget(w words) {
	r := kmsg.NewOffsetDeleteRequest()
	r.Group = w.get("group", "g")
	for _, name := range w.plain {
		tp, _ := protocol.PartitionOfDir(name)
		r.Topics = append(r.Topics, kmsg.OffsetDeleteRequestTopic{Topic: tp.Topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: tp.Partition}}})
	}
	response, d, err := s.machine.OffsetDelete(&r)
	if err != nil {
		s.say("forget: %s", protocol.CodeOf(err).Name())
		return
	}
	_ = s.carryOut(d)
	for _, topic := range response.Topics {
		for _, p := range topic.Partitions {
			s.say("forget %s-%d: %s", topic.Topic, p.Partition, protocol.Code(p.ErrorCode).Name())
		}
	}
}

func (s *stage) drop(w words) {
	id := protocol.TopicID{15: byte(s.number(w.get("id", "0")))}
	_ = s.carryOut(s.machine.ForgetTopics(func(topic string, of protocol.TopicID) bool {
		return slices.Contains(w.plain, topic) && (of.IsZero() || id.IsZero() || of == id)
	}))
}

// foreign appends a record of another kind of group, or its tombstone.
func (s *stage) foreign(w words) {
	key := binary.BigEndian.AppendUint16(nil, uint16(s.number(w.plain[0])))
	key = binary.BigEndian.AppendUint16(key, uint16(len(w.plain[1])))
	key = append(key, w.plain[1]...)
	value := []byte("opaque")
	if len(w.plain) > 2 {
		value = nil
	}
	_ = s.carryOut(shard.Decision{Records: []shard.Record{{Key: key, Value: value}}})
}

// String is for failures of tests.
func (w words) String() string { return fmt.Sprint(w.plain, w.named) }
