package floor

import (
	"io"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/perf"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func connect(t *testing.T, address string) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.AllowIdempotentProduceCancellation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// The client checks the CRC of every batch and the order of offsets.
func TestWhatIsAppendedIsRead(t *testing.T) {
	l := listen(t)
	go Serve(l, t.TempDir())
	c := connect(t, l.Addr().String())
	admin := kadm.NewClient(c)
	if _, err := admin.CreateTopic(t.Context(), 3, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	load := perf.Load{Topic: "t", Records: 20_000, Size: 100, Key: func(i int64) []byte { return []byte{byte(i)} }}
	if m, err := perf.Produce(t.Context(), load, c); err != nil || m.Records != 20_000 {
		t.Fatalf("%+v, %v", m, err)
	}
	m, err := perf.Consume(t.Context(), "t", connect(t, l.Addr().String()))
	if err != nil || m.Records != 20_000 || m.Bytes != 20_000*101 {
		t.Fatalf("%+v, %v", m, err)
	}
	stream := perf.Stream{Topic: "t", Rate: 2000, Records: 100, Size: 10}
	if e, err := perf.EndToEnd(t.Context(), stream, c, connect(t, l.Addr().String())); err != nil || e.Lost != 0 || e.Received.Records != 100 {
		t.Fatalf("%+v, %v", e, err)
	}
	if _, err := admin.DeleteTopic(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
}

func TestDiscard(t *testing.T) {
	l := listen(t)
	go Serve(l, "")
	c := connect(t, l.Addr().String())
	if _, err := kadm.NewClient(c).CreateTopic(t.Context(), 1, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	if m, err := perf.Produce(t.Context(), perf.Load{Topic: "t", Records: 1000, Size: 1000}, c); err != nil || m.Records != 1000 {
		t.Fatalf("%+v, %v", m, err)
	}
	ends, err := kadm.NewClient(c).ListEndOffsets(t.Context(), "t")
	if end, _ := ends.Lookup("t", 0); err != nil || end.Offset != 1000 {
		t.Errorf("%v, %v", ends, err)
	}
}

func TestEcho(t *testing.T) {
	l := listen(t)
	go Echo(l)
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "again"); err != nil {
		t.Fatal(err)
	}
	back := make([]byte, 5)
	if _, err := io.ReadFull(conn, back); err != nil || string(back) != "again" {
		t.Errorf("%q, %v", back, err)
	}
}
