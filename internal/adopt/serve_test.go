package adopt_test

import (
	"context"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas"
	"github.com/barnabas-mq/barnabas/internal/adopt"
	"github.com/barnabas-mq/barnabas/internal/kraft"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// Every directory that a real broker left, stopped or killed, serves what that broker would have served.
func TestServesWhatKafkaWrote(t *testing.T) {
	for version := range goldenModes {
		for _, state := range []string{"clean", "unclean"} {
			t.Run(version+"/"+state, func(t *testing.T) { testServes(t, unpackGolden(t, version, state)) })
		}
	}
}

func testServes(t *testing.T, g golden) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	options := adopt.Options{Dirs: []string{g.data()}}
	if g.version == "3.9.2" {
		options.ZooKeeperTree = g.tree(t)
	}
	before := contents(t, g.data())
	a, err := adopt.Open(ctx, options)
	must(t, err)
	plan := a.Plan()
	must(t, a.CarryOut(ctx))
	must(t, a.Close())
	onlyOurs(t, before, contents(t, g.data()))

	b, err := barnabas.Start(ctx, barnabas.Options{DataDir: g.data(), Properties: map[string]string{
		"log.cleaner.enable": "false", "offsets.retention.minutes": "2147483647", "group.max.session.timeout.ms": "1800000",
		"log.initial.task.delay.ms": "3600000", // the records are old: retention would delete them while they are compared
	}})
	must(t, err)
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			must(t, b.Stop(context.WithoutCancel(ctx)))
		}
	}
	defer stop()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Address()))
	must(t, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	compareOffsets(ctx, t, g, admin)
	compareRecords(ctx, t, g, b.Address(), "expected-read_uncommitted.jsonl", kgo.ReadUncommitted())
	compareRecords(ctx, t, g, b.Address(), "expected-read_committed.jsonl", kgo.ReadCommitted())
	compareGroups(ctx, t, g, admin)
	compareConfigs(ctx, t, g, admin)
	compareEpochs(ctx, t, g, plan, admin)
	compareProducerIDs(ctx, t, plan, client)
	stop()

	again, err := adopt.Open(ctx, options)
	must(t, err)
	if !again.Plan().Done {
		t.Errorf("a second adoption has something to do: %+v", again.Plan())
	}
	must(t, again.Close())
}

// onlyOurs checks that all of Kafka's files are as they were, and what has come is ours.
func onlyOurs(t *testing.T, before, after map[string]string) {
	t.Helper()
	for path, sum := range before {
		if after[path] != sum {
			t.Errorf("%s has changed", path)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok && !strings.HasPrefix(filepath.Base(path), ".barnabas-") && filepath.Base(path) != ".lock" {
			t.Errorf("%s was made", path)
		}
	}
}

func compareOffsets(ctx context.Context, t *testing.T, g golden, admin *kadm.Client) {
	t.Helper()
	starts, err := admin.ListStartOffsets(ctx)
	must(t, err)
	ends, err := admin.ListEndOffsets(ctx)
	must(t, err)
	stable, err := admin.ListCommittedOffsets(ctx)
	must(t, err)
	got := map[partition]bounds{}
	starts.Each(func(o kadm.ListedOffset) {
		end, _ := ends.Lookup(o.Topic, o.Partition)
		last, _ := stable.Lookup(o.Topic, o.Partition)
		got[partition{o.Topic, o.Partition}] = bounds{o.Offset, end.Offset, last.Offset}
	})
	want := g.bounds(t)
	maps.DeleteFunc(want, func(p partition, _ bounds) bool { return strings.HasPrefix(p.Topic, "__") })
	maps.DeleteFunc(got, func(p partition, _ bounds) bool { return strings.HasPrefix(p.Topic, "__") })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("offsets: %s", diff)
	}
}

// compareRecords reads all partitions, internal ones too, and holds them to what Kafka read. Records that
// this broker has written into its own topics meanwhile lie behind those and are left out.
func compareRecords(ctx context.Context, t *testing.T, g golden, address, name string, isolation kgo.IsolationLevel) {
	t.Helper()
	want := g.expected(t, name)
	from := map[string]map[int32]kgo.Offset{}
	missing := 0
	limit := map[partition]int64{}
	for p, b := range g.bounds(t) {
		if from[p.Topic] == nil {
			from[p.Topic] = map[int32]kgo.Offset{}
		}
		from[p.Topic][p.Partition] = kgo.NewOffset().AtStart()
		missing += len(want[p])
		limit[p] = b.HighWatermark
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumePartitions(from), kgo.FetchIsolationLevel(isolation), kgo.FetchMaxWait(100*time.Millisecond))
	must(t, err)
	defer client.Close()
	got := map[partition][]consumed{}
	for missing > 0 && ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		for _, e := range fetches.Errors() {
			t.Fatalf("%s-%d: %v", e.Topic, e.Partition, e.Err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if p := (partition{r.Topic, r.Partition}); r.Offset < limit[p] {
				got[p] = append(got[p], describe(r))
				missing--
			}
		})
	}
	for p := range limit {
		if diff := cmp.Diff(want[p], got[p], cmp.AllowUnexported(consumed{})); diff != "" {
			t.Errorf("%s: %v: %s", name, p, diff)
		}
	}
}

func compareGroups(ctx context.Context, t *testing.T, g golden, admin *kadm.Client) {
	t.Helper()
	for group, want := range g.committed(t) {
		fetched, err := admin.FetchOffsets(ctx, group)
		must(t, err)
		got := map[partition]committed{}
		fetched.Each(func(o kadm.OffsetResponse) {
			got[partition{o.Topic, o.Partition}] = committed{o.At, &o.LeaderEpoch, o.Metadata}
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("group %s: %s", group, diff)
		}
	}
}

// compareConfigs holds what topics have of their own to what the old cluster said.
func compareConfigs(ctx context.Context, t *testing.T, g golden, admin *kadm.Client) {
	t.Helper()
	want := map[string]map[string]string{}
	if g.version == "3.9.2" {
		for line := range strings.Lines(string(treeDump(t))) {
			if _, rest, ok := strings.Cut(line, "/config/topics/"); ok {
				name, _, _ := strings.Cut(rest, `"`)
				_, data, _ := strings.Cut(rest, `"data": "`)
				data, _, _ = strings.Cut(data, `", "dataLength`)
				values, err := znode.DecodeConfig(metadata.TopicEntity(name), []byte(strings.ReplaceAll(data, `\"`, `"`)))
				must(t, err)
				want[name] = values
			}
		}
	} else {
		image, err := kraft.Read(vfs.OS(), filepath.Join(g.data(), "__cluster_metadata-0"))
		must(t, err)
		for _, name := range image.Names() {
			want[name] = map[string]string{}
			maps.Copy(want[name], image.Configs[kraft.Resource{Type: kraft.TopicResource, Name: name}])
		}
	}
	if len(want) < 20 {
		t.Fatalf("only %d topics are expected", len(want))
	}
	described, err := admin.DescribeTopicConfigs(ctx, sortedKeys(want)...)
	must(t, err)
	got := map[string]map[string]string{}
	for _, topic := range described {
		must(t, topic.Err)
		got[topic.Name] = map[string]string{}
		for _, c := range topic.Configs {
			if c.Source == kmsg.ConfigSourceDynamicTopicConfig {
				got[topic.Name][c.Key] = c.MaybeValue()
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("topic configs: %s", diff)
	}
}

// compareEpochs checks that leaders lead in epochs above those of all records and of the plan.
func compareEpochs(ctx context.Context, t *testing.T, g golden, plan *adopt.Plan, admin *kadm.Client) {
	t.Helper()
	topics, err := admin.Metadata(ctx)
	must(t, err)
	records := g.expected(t, "expected-read_uncommitted.jsonl")
	for _, planned := range plan.Topics {
		topic := topics.Topics[planned.Name]
		if protocol.TopicID(topic.ID) != planned.ID || len(topic.Partitions) != len(planned.Partitions) {
			t.Errorf("%s has id %s and %d partitions, want %s and %d", planned.Name, topic.ID, len(topic.Partitions), planned.ID, len(planned.Partitions))
		}
		for number, p := range planned.Partitions {
			leads := topic.Partitions[int32(number)].LeaderEpoch
			highest := int32(-1)
			for _, r := range records[partition{planned.Name, int32(number)}] {
				highest = max(highest, *r.LeaderEpoch)
			}
			if leads <= int32(p.LeaderEpoch) || int32(p.LeaderEpoch) <= highest {
				t.Errorf("%s-%d is led in epoch %d, planned %d, highest in a record %d", planned.Name, number, leads, p.LeaderEpoch, highest)
			}
		}
	}
}

// compareProducerIDs checks that ids begin where the plan says.
func compareProducerIDs(ctx context.Context, t *testing.T, plan *adopt.Plan, client *kgo.Client) {
	t.Helper()
	request := kmsg.NewPtrInitProducerIDRequest()
	request.ProducerID, request.ProducerEpoch = -1, -1
	response, err := request.RequestWith(ctx, client)
	must(t, err)
	if response.ErrorCode != 0 || response.ProducerID != int64(plan.ProducerIDs) || response.ProducerID < 1000 {
		t.Errorf("producer id %d, error %d, planned %d", response.ProducerID, response.ErrorCode, plan.ProducerIDs)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	return keys
}
