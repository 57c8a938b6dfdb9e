package view

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/peer"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/wire"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// pushed is a frame that a controller of Kafka 3.9 sent to a broker, and what the broker answered.
type pushed struct {
	name    string
	request kmsg.Request
	answer  []byte // as sent, without its header
}

func goldenPushes(t *testing.T) []pushed {
	t.Helper()
	f, err := os.Open("testdata/pushes.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []pushed
	lines := bufio.NewScanner(f)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var line struct{ Name, Request, Response string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		header, body, err := wire.ParseRequestHeader(unhex(t, line.Request))
		if err != nil {
			t.Fatal(err)
		}
		var request kmsg.Request = peer.NewStopReplica(header.Version)
		if header.Key != 5 {
			request = kmsg.RequestForKey(header.Key)
			request.SetVersion(header.Version)
		}
		if err := request.ReadFrom(body); err != nil {
			t.Fatalf("%s: %v", line.Name, err)
		}
		if !bytes.Equal(request.AppendTo(nil), body) {
			t.Errorf("%s: encodes to other bytes", line.Name)
		}
		_, answer, err := wire.ParseResponseHeader(unhex(t, line.Response), header.Key, header.Version)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, pushed{name: line.Name, request: request, answer: answer})
	}
	return all
}

func unhex(t *testing.T, text string) []byte {
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Every frame of Kafka 3.9's controllers, at three inter-broker protocols, is carried out, and answered with
// the bytes with which Kafka's broker answered it, but for the order, which is that of hash maps there.
func TestGoldenPushes(t *testing.T) {
	all := goldenPushes(t)
	if len(all) < 30 {
		t.Fatalf("only %d frames", len(all))
	}
	for _, p := range all {
		var orders []metadata.ReplicaChange
		self := selfOf(p.request)
		v := New(Options{Self: self, Apply: func(d metadata.Delta, _ *metadata.Image) map[P.TopicPartition]error {
			orders = append(orders, d.Replicas...)
			return nil
		}})
		var response kmsg.Response
		want := 0
		switch q := p.request.(type) {
		case *kmsg.LeaderAndISRRequest:
			want = v.preset(q, p.answer)
			response = v.LeaderAndISR(q)
		case *peer.StopReplica:
			for _, topic := range q.Topics {
				want += max(1, len(topic.PartitionStates)+len(topic.Partitions))
			}
			v.host(q)
			response = v.StopReplica(q)
		case *kmsg.UpdateMetadataRequest:
			response = v.UpdateMetadata(q)
			compareImage(t, p.name, v.Image(), q)
		}
		theirs := p.request.ResponseKind()
		if err := theirs.ReadFrom(p.answer); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
		if got, want := inOrder(response), inOrder(theirs); !bytes.Equal(got, want) {
			t.Errorf("%s: answered\n%x, Kafka's broker\n%x", p.name, got, want)
		}
		if len(orders) != want {
			t.Errorf("%s: %d orders to replicas, want %d", p.name, len(orders), want)
		}
	}
}

// inOrder encodes a response with its partitions sorted.
func inOrder(response kmsg.Response) []byte {
	switch r := response.(type) {
	case *kmsg.LeaderAndISRResponse:
		slices.SortFunc(r.Partitions, func(a, b kmsg.LeaderAndISRResponseTopicPartition) int {
			return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
		})
		slices.SortFunc(r.Topics, func(a, b kmsg.LeaderAndISRResponseTopic) int { return bytes.Compare(a.TopicID[:], b.TopicID[:]) })
		for _, topic := range r.Topics {
			slices.SortFunc(topic.Partitions, func(a, b kmsg.LeaderAndISRResponseTopicPartition) int { return cmp.Compare(a.Partition, b.Partition) })
		}
	case *kmsg.StopReplicaResponse:
		slices.SortFunc(r.Partitions, func(a, b kmsg.StopReplicaResponsePartition) int {
			return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
		})
	}
	return response.AppendTo(nil)
}

// selfOf finds a broker that has a replica of everything in a LeaderAndIsr.
func selfOf(request kmsg.Request) P.BrokerID {
	q, ok := request.(*kmsg.LeaderAndISRRequest)
	if !ok {
		return 1
	}
	count, total := map[int32]int{}, 0
	for _, o := range ordersOf(q) {
		total++
		for _, id := range o.state.Replicas {
			count[int32(id)]++
		}
	}
	for id, n := range count {
		if n == total {
			return P.BrokerID(id)
		}
	}
	return P.NoBroker
}

// preset gives the view the orders that the answer says the broker had carried out before, and returns how
// many are left.
func (v *View) preset(q *kmsg.LeaderAndISRRequest, answered []byte) int {
	response := q.ResponseKind().(*kmsg.LeaderAndISRResponse)
	if err := response.ReadFrom(answered); err != nil {
		panic(err)
	}
	codes := map[string]int16{}
	for _, p := range response.Partitions {
		codes[fmt.Sprint(p.Topic, p.Partition)] = p.ErrorCode
	}
	for _, topic := range response.Topics {
		for _, p := range topic.Partitions {
			codes[fmt.Sprint(topic.TopicID, p.Partition)] = p.ErrorCode
		}
	}
	left := 0
	for _, o := range ordersOf(q) {
		if codes[fmt.Sprint(o.Topic, o.Partition)] == 0 && codes[fmt.Sprint([16]byte(o.topicID), o.Partition)] == 0 {
			left++
			continue
		}
		v.hosted[o.TopicPartition] = hosted{topicID: o.topicID, epoch: o.state.LeaderEpoch}
	}
	return left
}

// host lets the view have all replicas that are to be stopped.
func (v *View) host(q *peer.StopReplica) {
	for _, s := range stopsOf(q) {
		v.hosted[s.TopicPartition] = hosted{epoch: max(s.epoch, 0)}
	}
}

// compareImage compares an image with the request that it came from.
func compareImage(t *testing.T, name string, image *metadata.Image, q *kmsg.UpdateMetadataRequest) {
	t.Helper()
	if len(image.Brokers()) != len(q.LiveBrokers) || image.Controller != P.BrokerID(q.ControllerID) || image.ControllerEpoch != P.ControllerEpoch(q.ControllerEpoch) {
		t.Errorf("%s: %d brokers, controller %d", name, len(image.Brokers()), image.Controller)
	}
	for _, b := range q.LiveBrokers {
		got := image.Broker(P.BrokerID(b.ID))
		if got == nil || len(got.Endpoints) != len(b.Endpoints) || got.Endpoints[0].Port != b.Endpoints[0].Port || got.Endpoints[0].Listener == "" {
			t.Errorf("%s: broker %d is %+v", name, b.ID, got)
		}
	}
	for _, topic := range q.TopicStates {
		for _, p := range topic.PartitionStates {
			got := image.Partition(P.TopicPartition{Topic: topic.Topic, Partition: p.Partition})
			if p.Leader == leaderDuringDelete {
				if got != nil {
					t.Errorf("%s: %s-%d is still shown", name, topic.Topic, p.Partition)
				}
				continue
			}
			if got == nil || int32(got.Leader) != p.Leader || int32(got.LeaderEpoch) != p.LeaderEpoch || len(got.ISR) != len(p.ISR) || int32(got.Epoch) != p.ZKVersion {
				t.Errorf("%s: %s-%d is %+v", name, topic.Topic, p.Partition, got)
			}
			if id := P.TopicID(topic.TopicID); !id.IsZero() && image.TopicByID(id) == nil {
				t.Errorf("%s: topic id %s is not known", name, id)
			}
		}
	}
}
