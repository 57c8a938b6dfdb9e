package view

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/memory"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/peer"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/wire"
	"github.com/barnabas-mq/barnabas/internal/znode"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// solo is a broker of which there is nothing but the controller, the view and the connection between them.
type solo struct {
	*stage
	controller *controller.Controller
	session    coordination.Session
	stop       func()
}

func startSolo(t testing.TB, store *memory.Store, s *stage) *solo {
	t.Helper()
	settings := config.Default()
	session, err := store.Open(context.Background(), coordination.SessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = controller.Prepare(ctx, session, "c")
	must(err)
	must(s.Follow(ctx, session))
	epoch, err := controller.Register(ctx, session, znode.Registration{Stopped: znode.StopClean, Broker: metadata.Broker{
		ID: 1, Endpoints: []metadata.Endpoint{{Listener: "PLAINTEXT", Host: "h", Port: 1}},
	}})
	must(err)
	s.SetBrokerEpoch(epoch)
	b := &solo{stage: s, session: session}
	b.controller = controller.New(controller.Options{
		BrokerID: 1, Config: func() *config.Broker { return settings },
		Dial: func(context.Context, *metadata.Broker) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go s.serve(theirs)
			return ours, nil
		},
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = b.controller.Run(ctx, session)
	}()
	b.stop = func() {
		cancel()
		<-ended
		_ = session.Close()
		s.Close()
	}
	<-s.Ready()
	return b
}

// serve answers the controller.
func (s *stage) serve(conn net.Conn) {
	defer conn.Close()
	for {
		var prefix [4]byte
		if _, err := io.ReadFull(conn, prefix[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(prefix[:]))
		if _, err := io.ReadFull(conn, frame); err != nil {
			return
		}
		header, body, _ := wire.ParseRequestHeader(frame)
		var response kmsg.Response
		switch header.Key {
		case 4:
			q := &kmsg.LeaderAndISRRequest{Version: header.Version}
			_ = q.ReadFrom(body)
			response = s.LeaderAndISR(q)
		case 5:
			q := peer.NewStopReplica(header.Version)
			_ = q.ReadFrom(body)
			response = s.StopReplica(q)
		case 6:
			q := &kmsg.UpdateMetadataRequest{Version: header.Version}
			_ = q.ReadFrom(body)
			response = s.UpdateMetadata(q)
		}
		out := wire.AppendResponseHeader(make([]byte, 4), header.Key, header.Version, header.CorrelationID)
		out = response.AppendTo(out)
		binary.BigEndian.PutUint32(out, uint32(len(out)-4))
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

// A topic lives: it is made, configured, survives a restart of the broker, is deleted and made again.
func TestLifeOfATopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		defer store.Close()
		b := startSolo(t, store, newStage(t))
		value := "1000"
		topic := controller.NewTopic{Name: "t", Partitions: 1, ReplicationFactor: 1, Configs: map[string]*string{"retention.ms": &value}}
		made := b.controller.CreateTopics(t.Context(), []controller.NewTopic{topic}, false)[0]
		if made.Err != nil {
			t.Fatal(made.Err)
		}
		shown := func(id P.TopicID) func(*metadata.Image) bool {
			return func(i *metadata.Image) bool { return i.TopicByID(id) != nil }
		}
		if err := b.Wait(t.Context(), shown(made.ID)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b.expect(t, "broker 1 alive true", "topics/tmap[retention.ms:1000]", "lead t-0 leader 1 epoch 0 new true config map[retention.ms:1000]", "t-0 shown true")
		value = "2000"
		change := controller.ConfigChange{Entity: "topics/t", Ops: []config.Op{{Name: "retention.ms", Value: &value}}}
		if err := b.controller.AlterConfigs(t.Context(), []controller.ConfigChange{change}, false)[0]; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b.expect(t, "topics/tmap[retention.ms:2000]")
		b.stop()

		b = startSolo(t, store, newStage(t))
		synctest.Wait()
		b.expect(t, "topics/tmap[retention.ms:2000]", "lead t-0 leader 1 epoch 1 new false config map[retention.ms:2000]", "broker 1 alive true", "t-0 shown true")
		if r := b.controller.DeleteTopics(t.Context(), []controller.TopicRef{{Name: "t"}})[0]; r.Err != nil {
			t.Fatal(r.Err)
		}
		synctest.Wait()
		b.expect(t, "t-0 shown false", "stop t-0", "delete t-0", "topics/tmap[]")
		made = b.controller.CreateTopics(t.Context(), []controller.NewTopic{{Name: "t", Partitions: 1, ReplicationFactor: 1}}, false)[0]
		if made.Err != nil {
			t.Fatal(made.Err)
		}
		if err := b.Wait(t.Context(), shown(made.ID)); err != nil {
			t.Fatal(err)
		}
		b.expect(t, "lead t-0 leader 1 epoch 0 new true config map[]", "t-0 shown true")
		b.stop()
	})
}

// 10,000 partitions: how long a broker takes from its registration until it has the image and its orders,
// and how long one more topic takes then.
func BenchmarkStart(b *testing.B) {
	store := memory.New(memory.Options{})
	defer store.Close()
	seed := func() *stage {
		s := &stage{fail: map[P.TopicPartition]error{}}
		s.View = New(Options{Self: 1, ClusterID: "c"})
		return s
	}
	one := startSolo(b, store, seed())
	topics := make([]controller.NewTopic, 1000)
	for i := range topics {
		topics[i] = controller.NewTopic{Name: fmt.Sprint("topic-", i), Partitions: 10, ReplicationFactor: 1}
	}
	for _, r := range one.controller.CreateTopics(context.Background(), topics, false) {
		if r.Err != nil {
			b.Fatal(r.Err)
		}
	}
	one.stop()
	b.ReportAllocs()
	for b.Loop() {
		one = startSolo(b, store, seed())
		if n := one.Image().PartitionCount(); n != 10_000 {
			b.Fatal(n, "partitions")
		}
		b.StopTimer()
		one.stop()
		b.StartTimer()
	}
}

func BenchmarkCreateTopic(b *testing.B) {
	store := memory.New(memory.Options{})
	defer store.Close()
	s := &stage{fail: map[P.TopicPartition]error{}}
	s.View = New(Options{Self: 1, ClusterID: "c"})
	one := startSolo(b, store, s)
	defer one.stop()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		topic := controller.NewTopic{Name: fmt.Sprint("topic-", i), Partitions: 1, ReplicationFactor: 1}
		r := one.controller.CreateTopics(context.Background(), []controller.NewTopic{topic}, false)[0]
		if r.Err != nil {
			b.Fatal(r.Err)
		}
		if err := one.Wait(context.Background(), func(i *metadata.Image) bool { return i.TopicByID(r.ID) != nil }); err != nil {
			b.Fatal(err)
		}
	}
}
