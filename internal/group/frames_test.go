package group

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/shard/shardtest"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

// frame is a request of a real client, and the response of a real broker.
type frame struct {
	client            string
	request, response []byte
}

func readFrames(t *testing.T) []frame {
	t.Helper()
	data, err := os.ReadFile("testdata/frames.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var frames []frame
	for line := range strings.Lines(string(data)) {
		var f struct{ Client, Request, Response string }
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		request, err := hex.DecodeString(f.Request)
		if err != nil {
			t.Fatal(err)
		}
		response, err := hex.DecodeString(f.Response)
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, frame{f.Client, request, response})
	}
	return frames
}

// givenID gives the coordinator the random bytes that a real one drew.
type givenID struct{ next []byte }

func (g *givenID) Read(p []byte) (int, error) {
	n := copy(p, g.next)
	clear(p[n:])
	g.next = nil
	return len(p), nil
}

// Sessions of real clients, from 0.9 to 4.4, get the same bytes from us as from Kafka.
func TestGoldenFrames(t *testing.T) {
	random := &givenID{}
	c := NewCoordinator(Options{Partitions: 1, Random: random, Config: func() Config {
		config := DefaultConfig()
		config.InitialRebalanceDelay = 0
		return config
	}})
	t.Cleanup(c.Close)
	c.Lead(0, 0, shardtest.New(0))
	if err := c.Await(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	prepare(t, c)
	for _, f := range readFrames(t) {
		header, body, err := wire.ParseRequestHeader(f.request)
		if err != nil {
			t.Fatal(err)
		}
		request := kmsg.RequestForKey(header.Key)
		request.SetVersion(header.Version)
		if err := request.ReadFrom(body); err != nil {
			t.Fatal(err)
		}
		name := f.client + " " + kmsg.NameForKey(header.Key)
		want := request.ResponseKind()
		_, wantBody, err := wire.ParseResponseHeader(f.response, header.Key, header.Version)
		if err != nil {
			t.Fatal(err)
		}
		if err := want.ReadFrom(wantBody); err != nil {
			t.Fatal(err)
		}
		if join, ok := want.(*kmsg.JoinGroupResponse); ok {
			id := strings.ReplaceAll(join.MemberID[len(join.MemberID)-36:], "-", "")
			if random.next, err = hex.DecodeString(id); err != nil {
				t.Fatal(err)
			}
		}
		response := answer(t, c, header.ClientID, request)
		got := response.AppendTo(wire.AppendResponseHeader(nil, header.Key, header.Version, header.CorrelationID))
		if !bytes.Equal(got, f.response) {
			t.Errorf("%s version %d:\nkafka %x\n      %+v\nours  %x\n      %+v", name, header.Version, f.response, want, got, response)
		}
	}
}

// prepare commits the offsets that the sessions found.
func prepare(t *testing.T, c *Coordinator) {
	t.Helper()
	commit := func(group, topic string, offset int64, metadata string) {
		r := kmsg.NewOffsetCommitRequest()
		r.Version, r.Group = 9, group
		r.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{
			{Offset: offset, LeaderEpoch: -1, Metadata: &metadata},
		}}}
		if response := c.OffsetCommit(t.Context(), &r); response.Topics[0].Partitions[0].ErrorCode != 0 {
			t.Fatalf("%+v", response)
		}
	}
	commit("g-txn", "codec-none", 3, "in a commit")
	commit("g-deleted", "codec-none", 1, "")
	commit("g-offset-deleted", "codec-gzip", 1, "")
	commit("g-offset-deleted", "codec-none", 2, "")
}

func answer(t *testing.T, c *Coordinator, clientID string, request kmsg.Request) kmsg.Response {
	t.Helper()
	ctx := t.Context()
	switch r := request.(type) {
	case *kmsg.JoinGroupRequest:
		return c.JoinGroup(ctx, ClientInfo{ClientID: clientID, Host: "/127.0.0.1"}, r)
	case *kmsg.SyncGroupRequest:
		return c.SyncGroup(ctx, r)
	case *kmsg.LeaveGroupRequest:
		return c.LeaveGroup(ctx, r)
	case *kmsg.OffsetCommitRequest:
		return c.OffsetCommit(ctx, r)
	case *kmsg.OffsetFetchRequest:
		return c.OffsetFetch(ctx, r)
	case *kmsg.DescribeGroupsRequest:
		return c.DescribeGroups(ctx, r)
	case *kmsg.DeleteGroupsRequest:
		return c.DeleteGroups(ctx, r)
	case *kmsg.OffsetDeleteRequest:
		return c.OffsetDelete(ctx, r)
	}
	t.Fatalf("request %T", request)
	return nil
}
