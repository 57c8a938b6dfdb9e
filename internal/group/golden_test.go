package group

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/shard"
	"github.com/barnabas-mq/barnabas/internal/shard/shardtest"
)

// goldenGroup is a group as Kafka's own admin client described it.
type goldenGroup struct {
	Group    string         `json:"group"`
	State    string         `json:"state"`
	Assignor string         `json:"assignor"`
	Members  []goldenMember `json:"members"`
	Offsets  []goldenOffset `json:"offsets"`
}

type goldenMember struct {
	MemberID   string  `json:"memberId"`
	InstanceID *string `json:"instanceId"`
	ClientID   string  `json:"clientId"`
	Host       string  `json:"host"`
	Assignment string  `json:"assignment"`
}

type goldenOffset struct {
	Topic       string `json:"topic"`
	Partition   int32  `json:"partition"`
	Offset      int64  `json:"offset"`
	LeaderEpoch *int32 `json:"leaderEpoch"`
	Metadata    string `json:"metadata"`
}

// leadGolden is a coordinator of what a real Kafka wrote into its __consumer_offsets of four partitions.
func leadGolden(t *testing.T, version string) *Coordinator {
	t.Helper()
	c := NewCoordinator(Options{Partitions: 4})
	t.Cleanup(c.Close)
	for partition := range int32(4) {
		p := shardtest.New(7)
		segment, err := os.ReadFile(fmt.Sprintf("testdata/golden/%s/%d.log", version, partition))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := p.Load(segment); err != nil {
			t.Fatal(err)
		}
		c.Lead(partition, 7, p)
		if err := c.Await(t.Context(), partition); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestGoldenGroups(t *testing.T) {
	for version, kinds := range map[string]string{
		"2.8.2": "g-classic classic",
		"3.9.2": "g-classic classic, g-offset-deleted classic, g-simple classic, g-static classic, g-txn classic",
		"4.4.0": "g-848 consumer, g-848-static consumer, g-classic classic, g-offset-deleted classic, g-share share, g-simple classic, g-static classic, g-txn classic",
	} {
		t.Run(version, func(t *testing.T) {
			c := leadGolden(t, version)
			var listed []string
			list := c.ListGroups(t.Context(), &kmsg.ListGroupsRequest{Version: 5})
			for _, g := range list.Groups {
				listed = append(listed, g.Group+" "+g.GroupType)
			}
			slices.Sort(listed)
			if got := strings.Join(listed, ", "); got != kinds {
				t.Errorf("groups: %s\nwant    %s", got, kinds)
			}
			data, err := os.ReadFile("testdata/golden/" + version + "/groups.jsonl")
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(data)) {
				var want goldenGroup
				if err := json.Unmarshal([]byte(line), &want); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, seen(t, c, want)); diff != "" {
					t.Errorf("-kafka +ours\n%s", diff)
				}
			}
		})
	}
}

// seen is a group as a client sees it. Of kinds that are not spoken here only state and offsets can be
// compared: the rest is taken over.
func seen(t *testing.T, c *Coordinator, want goldenGroup) goldenGroup {
	t.Helper()
	got := goldenGroup{Group: want.Group, Members: []goldenMember{}, Offsets: []goldenOffset{}}
	list := c.ListGroups(t.Context(), &kmsg.ListGroupsRequest{Version: 5})
	i := slices.IndexFunc(list.Groups, func(g kmsg.ListGroupsResponseGroup) bool { return g.Group == want.Group })
	if i < 0 {
		return got
	}
	got.State = list.Groups[i].GroupState
	got.Assignor = want.Assignor
	if list.Groups[i].GroupType == "classic" {
		g := c.DescribeGroups(t.Context(), &kmsg.DescribeGroupsRequest{Version: 6, Groups: []string{want.Group}}).Groups[0]
		got.Assignor = g.Protocol
		for _, m := range g.Members {
			got.Members = append(got.Members, goldenMember{m.MemberID, m.InstanceID, m.ClientID, m.ClientHost, assignmentText(t, m.MemberAssignment)})
		}
	}
	request := kmsg.NewOffsetFetchRequestGroup()
	request.Group = want.Group
	response := c.OffsetFetch(t.Context(), &kmsg.OffsetFetchRequest{Version: 9, Groups: []kmsg.OffsetFetchRequestGroup{request}})
	for _, topic := range response.Groups[0].Topics {
		for _, p := range topic.Partitions {
			o := goldenOffset{topic.Topic, p.Partition, p.Offset, nil, *p.Metadata}
			if p.LeaderEpoch >= 0 {
				o.LeaderEpoch = &p.LeaderEpoch
			}
			got.Offsets = append(got.Offsets, o)
		}
	}
	return got
}

// assignmentText is a consumer's assignment as Java prints it.
func assignmentText(t *testing.T, assignment []byte) string {
	t.Helper()
	var a kmsg.ConsumerMemberAssignment
	if err := a.ReadFrom(assignment); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, topic := range a.Topics {
		for _, p := range topic.Partitions {
			all = append(all, topic.Topic+"-"+strconv.Itoa(int(p)))
		}
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// What is read from a record and written again must be the same bytes.
func TestGoldenRecordsSurviveRewriting(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*/*.log")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d segments, %v", len(files), err)
	}
	offsets, groups := 0, 0
	for _, file := range files {
		segment, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for entry, err := range record.Entries(segment) {
			if err != nil {
				t.Fatal(err)
			}
			for r, err := range entry.Records(nil) {
				if err != nil {
					t.Fatal(err)
				}
				if entry.Control() || r.Value == nil {
					continue
				}
				again, ok := rewritten(t, r)
				if !ok {
					continue
				}
				if !bytes.Equal(again.Key, r.Key) || !bytes.Equal(again.Value, r.Value) {
					t.Errorf("%s offset %d: %s\nkafka %x %x\nours  %x %x", file, r.Offset, describeRecord(shard.Replayed{Key: r.Key, Value: r.Value}), r.Key, r.Value, again.Key, again.Value)
				}
				if t, _ := typeOf(r.Key); t == keyOffset {
					offsets++
				} else {
					groups++
				}
			}
		}
	}
	if offsets < 20 || groups < 8 {
		t.Errorf("only %d offsets and %d groups compared", offsets, groups)
	}
}

func rewritten(t *testing.T, r record.Record) (shard.Record, bool) {
	t.Helper()
	switch kind, _ := typeOf(r.Key); kind {
	case keyOffset:
		id, tp, err := offsetKeyOf(r.Key)
		if err != nil {
			t.Fatal(err)
		}
		c, err := committedOf(r.Value, r.Offset)
		if err != nil {
			t.Fatal(err)
		}
		return offsetRecord(id, tp, c, true), true
	case keyGroup:
		v, err := groupValueOf(r.Value)
		if err != nil {
			t.Fatal(err)
		}
		id, _ := groupOf(r.Key)
		return classicFromRecord(&group{id: id}, v).record(nil), true
	}
	return shard.Record{}, false
}

// Replaying a log twice, with a compaction in between that keeps the last record of each key, must come to
// the same.
func TestGoldenGroupsSurviveCompaction(t *testing.T) {
	for _, version := range []string{"3.9.2", "4.4.0"} {
		for partition := range 4 {
			segment, err := os.ReadFile(fmt.Sprintf("testdata/golden/%s/%d.log", version, partition))
			if os.IsNotExist(err) {
				continue
			}
			whole, compacted := replayed(t, segment, false), replayed(t, segment, true)
			if diff := cmp.Diff(whole.progress(), compacted.progress()); diff != "" {
				t.Errorf("%s partition %d: -whole +compacted\n%s", version, partition, diff)
			}
		}
	}
}

func replayed(t *testing.T, segment []byte, compact bool) *Machine {
	t.Helper()
	m := NewMachine(DefaultConfig, slog.New(slog.DiscardHandler))
	last := map[string]protocol.Offset{}
	each := func(f func(e record.Entry, r record.Record)) {
		for e, err := range record.Entries(segment) {
			if err != nil {
				t.Fatal(err)
			}
			for r, err := range e.Records(nil) {
				if err != nil {
					t.Fatal(err)
				}
				f(e, r)
			}
		}
	}
	each(func(e record.Entry, r record.Record) {
		if !e.Control() {
			last[string(r.Key)] = r.Offset
		}
	})
	each(func(e record.Entry, r record.Record) {
		producer := protocol.NoProducerID
		if e.Transactional() {
			producer = e.ProducerID
		}
		switch {
		case e.Control():
			m.EndTransaction(producer, r.Key[3] == 1)
		case !compact || last[string(r.Key)] == r.Offset || e.Transactional():
			m.Replay(shard.Replayed{Offset: r.Offset, ProducerID: producer, Key: r.Key, Value: r.Value})
		}
	})
	m.Loaded(shard.Now{})
	if m.skipped > 0 {
		t.Errorf("%d records skipped", m.skipped)
	}
	return m
}
