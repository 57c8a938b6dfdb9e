package api

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

// exchange is what a broker of Kafka 3.9 asked the controller, and what it was answered.
type exchange struct {
	name     string
	header   wire.RequestHeader
	request  kmsg.Request
	response []byte // without its header
}

func exchanges(t *testing.T) []exchange {
	t.Helper()
	f, err := os.Open("testdata/between.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []exchange
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var line struct{ Name, Request, Response string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		request, _ := hex.DecodeString(line.Request)
		response, err := hex.DecodeString(line.Response)
		if err != nil {
			t.Fatal(err)
		}
		x := exchange{name: line.Name}
		body, err := x.header.Parse(request)
		if err != nil {
			t.Fatal(line.Name, err)
		}
		x.request = kmsg.RequestForKey(x.header.Key)
		x.request.SetVersion(x.header.Version)
		if err := x.request.ReadFrom(body); err != nil {
			t.Fatal(line.Name, err)
		}
		if !bytes.Equal(x.request.AppendTo(nil), body) {
			t.Errorf("%s: encodes to other bytes", line.Name)
		}
		if _, x.response, err = wire.ParseResponseHeader(response, x.header.Key, x.header.Version); err != nil {
			t.Fatal(line.Name, err)
		}
		all = append(all, x)
	}
	return all
}

// The frames in which brokers of Kafka 3.9 ask their controller are read, and their answers are written again,
// without a difference. A broker that is not the controller answers as Kafka's does, byte for byte.
func TestFramesBetweenBrokers(t *testing.T) {
	s := newStage(t)
	s.API.Controller = controller.New(controller.Options{BrokerID: self})
	all := exchanges(t)
	if len(all) < 12 {
		t.Fatalf("only %d frames", len(all))
	}
	for _, x := range all {
		theirs := x.request.ResponseKind()
		if err := theirs.ReadFrom(x.response); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		if !bytes.Equal(theirs.AppendTo(nil), x.response) {
			t.Errorf("%s: the answer encodes to other bytes", x.name)
		}
		r := &Request{RequestHeader: x.header}
		var ours kmsg.Response
		switch q := x.request.(type) {
		case *kmsg.AlterPartitionRequest:
			ours = s.alterPartition(t.Context(), r, q)
		case *kmsg.AllocateProducerIDsRequest:
			ours = s.allocateProducerIDs(t.Context(), r, q)
		case *kmsg.ControlledShutdownRequest:
			if answer := s.controlledShutdown(t.Context(), r, q); answer.ErrorCode != 41 {
				t.Errorf("%s: answered %d", x.name, answer.ErrorCode)
			}
			continue
		}
		if refused := strings.HasSuffix(x.name, "-3"); refused && !bytes.Equal(ours.AppendTo(nil), x.response) {
			t.Errorf("%s: answered\n%x, Kafka's broker\n%x", x.name, ours.AppendTo(nil), x.response)
		}
	}
}

// What brokers ask each other is not for clients: alone the broker answers itself only, in a cluster whoever uses
// the listener of the brokers; and it is listed where it is answered.
func TestRequestsBetweenBrokersAreNotForClients(t *testing.T) {
	s := newStage(t, "listeners=PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:0", "inter.broker.listener.name=INSIDE",
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT")
	listed := func() int {
		s.conn.Listener = "PLAINTEXT"
		r := &Request{RequestHeader: wire.RequestHeader{Key: 18}, Conn: s.conn}
		n := 0
		for _, k := range s.apiVersions(r, &kmsg.ApiVersionsRequest{}).ApiKeys {
			if route := s.routes.find(k.ApiKey); route.internal {
				n++
			}
		}
		return n
	}
	for _, clustered := range []bool{false, true} {
		s.API.Clustered = clustered
		for listener, want := range map[string]bool{"PLAINTEXT": false, "INSIDE": clustered} {
			if s.conn.Listener = listener; s.fromBroker(s.conn) != want {
				t.Errorf("several brokers %v, listener %s: answered %v", clustered, listener, !want)
			}
		}
		if n := listed(); n != map[bool]int{false: 0, true: 7}[clustered] {
			t.Errorf("several brokers %v: %d listed", clustered, n)
		}
	}
}
