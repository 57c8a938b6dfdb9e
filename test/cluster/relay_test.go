package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/peer"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

// stopFrame is a StopReplica of controller 2, with its length.
func stopFrame(topic string, erase bool) []byte {
	request := peer.NewStopReplica(4)
	request.ControllerID = 2
	request.Topics = []kmsg.StopReplicaRequestTopic{{
		Topic: topic, PartitionStates: []kmsg.StopReplicaRequestTopicPartitionState{{Partition: 1, Delete: erase}},
	}}
	frame := wire.AppendRequestHeader(make([]byte, wire.LengthSize), wire.RequestHeader{
		Key: request.Key(), Version: request.Version, CorrelationID: 7, ClientID: "controller",
	})
	frame = request.AppendTo(frame)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-wire.LengthSize))
	return frame
}

// TestRelayKeepsBack plays a deletion: the first StopReplica arrives, the second one never does, and a later one does.
func TestRelayKeepsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &relay{}
		arrived := make(chan []byte, 1)
		connect := func() net.Conn {
			controller, in := net.Pipe()
			out, broker := net.Pipe()
			go func() {
				r.pass(in, out, 1)
				in.Close()
				out.Close()
			}()
			go func() {
				all, _ := io.ReadAll(broker)
				arrived <- all
			}()
			return controller
		}
		send := func(c net.Conn, frame []byte) {
			t.Helper()
			if _, err := c.Write(frame); err != nil {
				t.Fatal(err)
			}
		}
		r.keepBack(erasing("doomed"), &broker{id: 1})
		first := connect()
		stop, other := stopFrame("doomed", false), stopFrame("other", true)
		send(first, other)
		send(first, stop)
		send(first, stopFrame("doomed", true))
		synctest.Wait()
		if controller, caught := r.kept.caught[1]; !caught || controller != 2 {
			t.Fatalf("caught %v, wanted one of controller 2 for broker 1", r.kept.caught)
		}
		r.lose()
		if got, want := <-arrived, append(other, stop...); !bytes.Equal(got, want) {
			t.Errorf("%x arrived, wanted %x", got, want)
		}
		again := stopFrame("doomed", true)
		second := connect()
		send(second, again)
		second.Close()
		if got := <-arrived; !bytes.Equal(got, again) {
			t.Errorf("%x arrived when nothing was kept back, wanted %x", got, again)
		}
	})
}

// TestRelayKeepsFromOthers shows that requests to a broker that nothing is kept from arrive.
func TestRelayKeepsFromOthers(t *testing.T) {
	r := &relay{}
	r.keepBack(erasing("doomed"), &broker{id: 0}, &broker{id: 2})
	if r.keep(stopFrame("doomed", true)[wire.LengthSize:], 1) != nil {
		t.Error("a request to broker 1 is kept back")
	}
	if len(r.kept.caught) != 0 {
		t.Errorf("caught %v, wanted nothing", r.kept.caught)
	}
}

// TestLeading tells an order to lead without a broker from others.
func TestLeading(t *testing.T) {
	request := kmsg.NewPtrLeaderAndISRRequest()
	request.Version, request.ControllerID = 7, 2
	request.TopicStates = []kmsg.LeaderAndISRRequestTopicState{{
		Topic: "wide", PartitionStates: []kmsg.LeaderAndISRRequestTopicPartition{{ISR: []int32{0, 1, 2}}, {ISR: []int32{2, 1}}},
	}}
	header, body := wire.RequestHeader{Key: request.Key(), Version: request.Version}, request.AppendTo(nil)
	for _, test := range []struct {
		topic   string
		without int
		want    bool
	}{{"wide", 0, true}, {"wide", 1, false}, {"narrow", 0, false}} {
		if controller, is := leading(test.topic, test.without)(header, body); is != test.want || controller != 2 {
			t.Errorf("%s without %d: got %v of controller %d, wanted %v of 2", test.topic, test.without, is, controller, test.want)
		}
	}
	if _, is := erasing("wide")(header, body); is {
		t.Error("LeaderAndIsr is taken for StopReplica")
	}
}
