package perf_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas"
	"github.com/barnabas-mq/barnabas/internal/perf"
)

// start runs a broker in memory that has topic t with partitions, and returns what makes clients of it.
func start(t *testing.T, partitions int32) func(...kgo.Opt) *kgo.Client {
	t.Helper()
	b, err := barnabas.Start(t.Context(), barnabas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Stop(context.WithoutCancel(t.Context())) })
	connect := func(options ...kgo.Opt) *kgo.Client {
		c, err := kgo.NewClient(append(options, kgo.SeedBrokers(b.Address()), kgo.AllowIdempotentProduceCancellation(), kgo.UnknownTopicRetries(0))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	if _, err := kadm.NewClient(connect()).CreateTopic(t.Context(), partitions, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	return connect
}

func TestEverythingThatIsWrittenIsRead(t *testing.T) {
	connect := start(t, 3)
	acknowledged, each := 0, 0
	load := perf.Load{
		Topic: "t", Records: 2501, Size: 10, Patience: time.Minute, Key: func(i int64) []byte { return []byte{byte(i)} },
		Acknowledged: func(took time.Duration, size int) {
			if acknowledged++; took <= 0 || size != 10 {
				t.Errorf("%d bytes in %s", size, took)
			}
		},
		Each: func(*perf.Measured) { each++ },
	}
	wrote, err := perf.Produce(t.Context(), load, connect(), connect())
	if err != nil || wrote.Records != 2501 || wrote.Bytes != 2501*11 || acknowledged != 2501 || each != 2 || wrote.Max() <= 0 {
		t.Errorf("%+v, %d and %d calls, %v", wrote, acknowledged, each, err)
	}
	load.Acknowledged, load.Each = nil, nil
	if sampled, err := perf.Produce(t.Context(), load, connect()); err != nil || sampled.Records != 2501 || sampled.Quantile(0.5) <= 0 {
		t.Errorf("%+v, %v", sampled, err)
	}
	for _, clients := range [][]*kgo.Client{{connect()}, {connect(), connect()}} {
		read, err := perf.Consume(t.Context(), "t", clients...)
		if err != nil || read.Records != 2*2501 || read.Bytes != 2*2501*11 || read.Elapsed <= 0 {
			t.Errorf("%+v, %v", read, err)
		}
	}
}

func TestTheRateIsKept(t *testing.T) {
	connect := start(t, 1)
	wrote, err := perf.Produce(t.Context(), perf.Load{Topic: "t", Records: 100, Size: 1, Rate: 1000, Intended: true}, connect())
	if err != nil || wrote.Records != 100 || wrote.Elapsed < 99*time.Millisecond {
		t.Errorf("%+v, %v", wrote, err)
	}
}

func TestAFailureEndsTheLoad(t *testing.T) {
	connect := start(t, 1)
	if _, err := perf.Produce(t.Context(), perf.Load{Topic: "nothing", Records: 1, Size: 1}, connect()); err == nil {
		t.Error("a topic that does not exist was written to")
	}
	failed := 0
	load := perf.Load{Topic: "nothing", Records: 3, Size: 1, Failed: func(error) { failed++ }}
	if m, err := perf.Produce(t.Context(), load, connect()); err != nil || m.Records != 0 || failed != 3 {
		t.Errorf("%+v, %v, %d failed", m, err, failed)
	}
}

// A client tries a broker that is not there for ever: patience ends that.
func TestPatience(t *testing.T) {
	nowhere, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"), kgo.AllowIdempotentProduceCancellation())
	if err != nil {
		t.Fatal(err)
	}
	defer nowhere.Close()
	_, err = perf.Produce(t.Context(), perf.Load{Topic: "t", Records: 1, Size: 1, Patience: 50 * time.Millisecond}, nowhere)
	if err == nil || !strings.Contains(err.Error(), "no record has been acknowledged for 50ms") {
		t.Errorf("%v", err)
	}
}

func TestALoadEndsWithItsContext(t *testing.T) {
	connect := start(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	m, err := perf.Produce(ctx, perf.Load{Topic: "t", Records: 1 << 40, Size: 1, Each: func(*perf.Measured) { cancel() }}, connect())
	if err != nil || m.Records < 1000 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestEndToEnd(t *testing.T) {
	connect := start(t, 2)
	for range 2 { // the second must not see what the first has written
		l, err := perf.EndToEnd(t.Context(), perf.Stream{Topic: "t", Rate: 2000, Records: 200, Warmup: 50, Size: 20}, connect(), connect())
		if err != nil || l.Acknowledged.Records != 200 || l.Received.Records != 200 || l.Failed != 0 || l.Lost != 0 || l.Late < 0 {
			t.Fatalf("%+v, %v", l, err)
		}
		if l.Received.Quantile(0.5) <= 0 || l.Acknowledged.Quantile(0.5) <= 0 || l.Received.Bytes != 4000 {
			t.Errorf("%v and %v ms, %d bytes", l.Received.Quantile(0.5), l.Acknowledged.Quantile(0.5), l.Received.Bytes)
		}
	}
	if _, err := perf.EndToEnd(t.Context(), perf.Stream{Topic: "t", Rate: 1, Records: 1, Size: 7}, connect(), connect()); err == nil {
		t.Error("a value has no room for its time")
	}
	_, err := perf.EndToEnd(t.Context(), perf.Stream{Topic: "nothing", Rate: 1000, Records: 1, Size: 8}, connect(), connect())
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestPace(t *testing.T) {
	p := perf.NewPace(100)
	defer p.End()
	first := p.Await(t.Context(), 0)
	if due := p.Await(t.Context(), 2); due.Sub(first) != 20*time.Millisecond || time.Now().Before(due) {
		t.Errorf("due %s after the first", due.Sub(first))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if due := p.Await(ctx, 1e9); time.Now().After(due) { // does not wait
		t.Error("it waited for four months")
	}
	if p.Late() < 0 {
		t.Errorf("late by %s", p.Late())
	}
	if p.Forget(); p.Late() != 0 {
		t.Errorf("late by %s after nothing", p.Late())
	}
}

func TestValues(t *testing.T) {
	for name, values := range map[string]func(int, uint64) func(int64) []byte{"letters": perf.Letters, "noise": perf.Noise, "json": perf.JSON} {
		a, b := values(300, 1), values(300, 1)
		for _, i := range []int64{0, 1, 12345, 1 << 40} {
			if len(a(i)) != 300 || string(a(i)) != string(b(i)) {
				t.Errorf("%s: value %d has %d bytes", name, i, len(a(i)))
			}
		}
		if string(a(0)) == string(a(1)) {
			t.Errorf("%s: all values are the same", name)
		}
	}
}
