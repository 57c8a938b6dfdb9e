package metrics

import (
	"context"
	"flag"
	"fmt"
	"io"
	"iter"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/barnabas-mq/barnabas/internal/server"
)

var rewrite = flag.Bool("rewrite", false, "write testdata from what the test sees")

// example is a broker with a little of everything.
func example() Options {
	return Options{
		Version: "1.2.3", ClusterID: "abc", BrokerID: 7,
		Server: func() server.Stats {
			return server.Stats{InFlightBytes: 11, FreeBufferBytes: 12, Listeners: []server.ListenerStats{{
				Listener: "PLAINTEXT", Connections: 3, Accepted: 10, Requests: 20, InFlight: 1, BytesIn: 30, BytesOut: 40,
				SendfileBytes: 5, Throttled: 1500 * time.Millisecond,
				Refused: map[string]int64{"max-connections": 2}, Closed: map[string]int64{"idle": 1, "peer": 6},
			}}}
		},
		Topics: func() iter.Seq[Topic] {
			return slices.Values([]Topic{
				{Name: "orders", BytesIn: 1000, RecordsIn: 10, BytesOut: 500, RecordsOut: -1, FailedProduces: 1, FailedFetches: 2},
				{Name: "audit", BytesIn: 24, RecordsIn: 2, BytesOut: 0, RecordsOut: 3},
			})
		},
		Partitions: func() iter.Seq[Partition] {
			return slices.Values([]Partition{
				{Topic: "orders", Partition: 0, Size: 700, Start: 1, HighWatermark: 8, End: 9, Leads: true, Preferred: true,
					Leader: 7, Replicas: 3, InSync: 2, MinInSync: 2},
				{Topic: "orders", Partition: 1, Size: 300, HighWatermark: 2, End: 2, Leads: true, Leader: 7, Replicas: 3,
					InSync: 1, MinInSync: 2},
				{Topic: "audit", Partition: 0, Leader: 8, Offline: true},
			})
		},
		Directories: func() iter.Seq[Directory] {
			return slices.Values([]Directory{{Path: "/a", Online: true, Total: 100, Free: 60}, {Path: "/b"}})
		},
		Groups: func(context.Context) iter.Seq[Group] {
			return slices.Values([]Group{
				{Name: "billing", State: "Stable", Members: 2, Offsets: []GroupOffset{
					{Topic: "orders", Partition: 0, Committed: 5, Lag: 3, Behind: 90 * time.Second},
					{Topic: "orders", Partition: 1, Committed: 2, Lag: 0, Behind: 0},
					{Topic: "elsewhere", Partition: 4, Committed: 9, Lag: -1, Behind: -1},
				}},
				{Name: "idle", State: "Empty"},
			})
		},
		Cluster: func() Cluster {
			return Cluster{Brokers: []Broker{{7, "a:9092"}, {8, "b:9092"}}, Controller: true, ControllerEpoch: 9,
				Topics: 2, Partitions: 3, Offline: 1, Astray: 2, Moving: 4, Awaited: 6, Elections: 5, Unclean: 1}
		},
		Replication: func() Replication { return Replication{Shrinks: 4, Expands: 2, Refused: 1, MaxLag: 12} },
		Store: func() Store {
			return Store{Connected: true, Remaining: 5 * time.Second, Disconnects: 3, Expirations: 1, Requests: 10, Latency: 20 * time.Millisecond}
		},
	}
}

// scraped is what a scrape shows, without what the runtime says of itself.
func scraped(t *testing.T, r *Registry) string {
	t.Helper()
	response := httptest.NewRecorder()
	r.Handler().ServeHTTP(response, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(response.Result().Body)
	if err != nil || response.Code != 200 {
		t.Fatalf("status %d, %v: %s", response.Code, err, body)
	}
	var kept []string
	for line := range strings.Lines(string(body)) {
		name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE ")
		if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") && !strings.HasPrefix(name, "promhttp_") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func newRegistry(t testing.TB, o Options) *Registry {
	t.Helper()
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestScrape compares a whole scrape with testdata: names are an interface, and a change of one shows in
// a diff. Run with -rewrite after a wanted change.
func TestScrape(t *testing.T) {
	for name, partitionNames := range map[string]bool{"scrape": false, "scrape-partitions": true} {
		t.Run(name, func(t *testing.T) {
			o := example()
			o.PartitionNames = partitionNames
			r := newRegistry(t, o)
			r.Observe(0, 9, 200*time.Microsecond, 200*time.Microsecond)
			r.Observe(1, 17, 100*time.Microsecond, 400*time.Millisecond)
			r.Observe(1, 4, time.Millisecond, 2*time.Millisecond)
			r.Observe(-5, -1, time.Millisecond, time.Millisecond)
			got, file := strings.ReplaceAll(scraped(t, r), goVersion(), "GO"), "testdata/"+name+".txt"
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestNative holds the native names to Prometheus' conventions; Kafka's cannot follow them.
func TestNative(t *testing.T) {
	r := newRegistry(t, example())
	r.Observe(0, 9, time.Millisecond, time.Millisecond)
	var native []string
	families, err := r.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "barnabas_") {
			native = append(native, f.GetName())
		}
	}
	problems, err := testutil.GatherAndLint(r.Gatherer(), native...)
	if err != nil || len(native) < 30 {
		t.Fatalf("%d names, %v", len(native), err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestBare has no sources at all.
func TestBare(t *testing.T) {
	got := scraped(t, newRegistry(t, Options{}))
	if !strings.Contains(got, "barnabas_build_info") || strings.Contains(got, "kafka_") {
		t.Errorf("%s", got)
	}
}

// TestSeriesLimit shows the same things at every scrape, whatever their order, and counts the rest.
func TestSeriesLimit(t *testing.T) {
	topics := []Topic{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	r := newRegistry(t, Options{SeriesLimit: 2, Topics: func() iter.Seq[Topic] { return slices.Values(topics) }})
	shown := func() string {
		var names []string
		for line := range strings.Lines(scraped(t, r)) {
			if name, ok := strings.CutPrefix(line, `barnabas_topic_in_bytes_total{topic="`); ok {
				names = append(names, name[:1])
			}
		}
		slices.Sort(names)
		return strings.Join(names, "")
	}
	if got := shown(); got != "ab" {
		t.Errorf("%s shown", got)
	}
	slices.Reverse(topics)
	if got := shown(); got != "ab" {
		t.Errorf("%s shown in another order", got)
	}
	if got := testutil.ToFloat64(r.dropped.WithLabelValues("topic")); got != 4 {
		t.Errorf("%v dropped", got)
	}
	topics = slices.DeleteFunc(topics, func(t Topic) bool { return t.Name == "a" })
	for range scrapesAtOnce + 1 {
		_ = shown() // until a's place is free
	}
	if got := shown(); got != "bd" && got != "bc" {
		t.Errorf("%s shown after one has gone", got)
	}
}

// TestPanic loses the metrics of one source and no others.
func TestPanic(t *testing.T) {
	o := example()
	var told []string
	o.Groups = func(context.Context) iter.Seq[Group] { panic("ouch") }
	o.Panicked = func(source string, cause any, stack []byte) {
		told = append(told, fmt.Sprint(source, cause, len(stack) > 0))
	}
	got := scraped(t, newRegistry(t, o))
	if !strings.Contains(got, "barnabas_topic_in_bytes_total") || strings.Contains(got, "barnabas_group") {
		t.Errorf("%s", got)
	}
	if want := []string{"groupsouchtrue"}; !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
}

// TestSeveral has two brokers in a process.
func TestSeveral(t *testing.T) {
	a, b := newRegistry(t, example()), newRegistry(t, example())
	a.Observe(3, 12, time.Millisecond, time.Millisecond)
	if got := scraped(t, b); strings.Contains(got, "Metadata") {
		t.Errorf("%s", got)
	}
}

// TestLag is BR-088 and its neighbours.
func TestLag(t *testing.T) {
	for _, c := range []struct{ committed, start, watermark, want int64 }{
		{100, 0, 150, 50}, {150, 0, 150, 0}, {100, 1_000_000, 1_000_000, 0}, {100, 120, 150, 30}, {200, 0, 150, 0},
	} {
		if got := Lag(c.committed, c.start, c.watermark); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestObserveAllocations(t *testing.T) {
	r := newRegistry(t, Options{})
	r.Observe(1, 4, 0, 0)
	if n := testing.AllocsPerRun(100, func() { r.Observe(1, 4, time.Millisecond, time.Second) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	r := newRegistry(b, Options{})
	b.ReportAllocs()
	for b.Loop() {
		r.Observe(1, 4, time.Millisecond, time.Second)
	}
}

// BenchmarkScrape has 10,000 partitions and 10,000 offsets of groups.
func BenchmarkScrape(b *testing.B) {
	o := example()
	partitions := make([]Partition, 10_000)
	group := Group{Name: "g", Offsets: make([]GroupOffset, 10_000)}
	for i := range partitions {
		partitions[i] = Partition{Topic: fmt.Sprint("topic-", i/10), Partition: int32(i % 10), Leads: true}
		group.Offsets[i] = GroupOffset{Topic: partitions[i].Topic, Partition: partitions[i].Partition}
	}
	o.Partitions = func() iter.Seq[Partition] { return slices.Values(partitions) }
	o.Groups = func(context.Context) iter.Seq[Group] { return slices.Values([]Group{group}) }
	r := newRegistry(b, o)
	b.ReportAllocs()
	for b.Loop() {
		r.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil))
	}
}
