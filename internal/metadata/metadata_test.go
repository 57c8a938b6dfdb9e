package metadata

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func state(leader P.BrokerID, epoch P.LeaderEpoch) *Partition {
	return &Partition{Leader: leader, LeaderEpoch: epoch, Replicas: []P.BrokerID{1, 2}, ISR: []P.BrokerID{1, 2}}
}

func tp(topic string, partition int32) P.TopicPartition {
	return P.TopicPartition{Topic: topic, Partition: partition}
}

func TestImageKeepsItsOldSelf(t *testing.T) {
	id := P.TopicID{1}
	first, _ := Empty().With(
		PutTopic{Name: "b", ID: id, Partitions: []*Partition{state(1, 0), state(2, 0)}},
		PutTopic{Name: "a", ID: P.TopicID{2}, Partitions: []*Partition{state(1, 0)}},
	)
	second, d := first.With(
		PutPartition{TopicPartition: tp("b", 1), TopicID: id, State: state(1, 5)},
		PutPartition{TopicPartition: tp("b", 3), TopicID: id, State: state(1, 0)},
		DropTopic{"a"},
	)
	if got := first.Partition(tp("b", 1)); got.LeaderEpoch != 0 || len(first.Topic("b").Partitions) != 2 {
		t.Errorf("the old image has changed: %+v", got)
	}
	if got := second.TopicByID(id).Partition(1); got.LeaderEpoch != 5 {
		t.Errorf("by id the new image still gives epoch %d", got.LeaderEpoch)
	}
	if second.Partition(tp("b", 2)) != nil || second.Topic("b").Partitions[2].Known() {
		t.Error("a partition that nobody told of is known")
	}
	if !slices.Equal(second.Topics(), []string{"b"}) || second.PartitionCount() != 4 || second.TopicByID(P.TopicID{2}) != nil {
		t.Errorf("topics %v with %d partitions", second.Topics(), second.PartitionCount())
	}
	if got := describe(d); got != "-a a-0:gone b-1:changed b-3:new" {
		t.Error(got)
	}
	if first.Topic("b").Partitions[0] != second.Topic("b").Partitions[0] {
		t.Error("an untouched partition was copied")
	}
}

// describe writes a delta's topics, partitions, configs and brokers in one line.
func describe(d Delta) string {
	var words []any
	for _, topic := range d.Created {
		words = append(words, "+"+topic.Name)
	}
	for _, topic := range d.Deleted {
		words = append(words, "-"+topic.Name)
	}
	for _, c := range d.Partitions {
		what := "changed"
		if c.Old == nil {
			what = "new"
		} else if c.New == nil {
			what = "gone"
		}
		words = append(words, c.String()+":"+what)
	}
	for _, c := range d.Configs {
		words = append(words, string(c))
	}
	for _, b := range d.Brokers {
		words = append(words, fmt.Sprint("broker ", b))
	}
	text := fmt.Sprintln(words...)
	return text[:len(text)-1]
}

func TestTopicMadeAgain(t *testing.T) {
	before, _ := Empty().With(PutTopic{Name: "t", ID: P.TopicID{1}, Partitions: []*Partition{state(1, 3)}})
	after, d := before.With(PutPartition{TopicPartition: tp("t", 0), TopicID: P.TopicID{9}, State: state(1, 0)})
	if got := describe(d); got != "+t -t t-0:gone t-0:new" {
		t.Error(got)
	}
	if d.Partitions[0].TopicID != (P.TopicID{1}) || d.Partitions[1].TopicID != (P.TopicID{9}) {
		t.Errorf("ids %v", d.Partitions)
	}
	if after.TopicByID(P.TopicID{1}) != nil || after.TopicByID(P.TopicID{9}) == nil {
		t.Error("the old id still finds the topic")
	}
}

func TestTopicLearnsItsID(t *testing.T) {
	before, _ := Empty().With(PutTopic{Name: "t", Partitions: []*Partition{state(1, 3), state(2, 3)}})
	after, d := before.With(PutPartition{TopicPartition: tp("t", 0), TopicID: P.TopicID{9}, State: state(1, 4)})
	if got := describe(d); got != "t-0:changed" || after.TopicByID(P.TopicID{9}) != after.Topic("t") {
		t.Error(got)
	}
	same, _ := after.With(PutPartition{TopicPartition: tp("t", 1), State: state(1, 9)})
	if same.Topic("t").ID != (P.TopicID{9}) {
		t.Error("a sender without ids took the id away")
	}
}

func TestConfigMeetsTopic(t *testing.T) {
	early, d := Empty().With(SetConfig{TopicEntity("t"), map[string]string{"k": "v"}})
	if got := describe(d); got != "topics/t" {
		t.Error(got)
	}
	image, _ := early.With(PutTopic{Name: "t", ID: P.TopicID{1}, Partitions: []*Partition{state(1, 0)}})
	if image.Topic("t").Config["k"] != "v" {
		t.Error("a config that came before its topic is lost")
	}
	image, _ = image.With(SetConfig{TopicEntity("t"), nil})
	if image.Topic("t").Config != nil || image.TopicConfig("t") != nil {
		t.Error("an emptied config is still there")
	}
	if image.BrokerConfig(P.NoBroker) != nil || BrokerEntity(P.NoBroker) != "brokers/<default>" || BrokerEntity(7) != "brokers/7" {
		t.Error("broker entities are misnamed")
	}
}

func TestBrokers(t *testing.T) {
	rack := "r"
	image, d := Empty().With(PutBroker{&Broker{ID: 2}}, PutBroker{&Broker{ID: 1, Rack: &rack}}, PutBroker{&Broker{ID: 3}}, DropBroker{9})
	if got := describe(d); got != "broker 1 broker 2 broker 3" {
		t.Error(got)
	}
	same, d := image.With(PutBroker{&Broker{ID: 1, Rack: &rack}})
	if same != image || !d.Empty() {
		t.Error("the same broker again made a new image")
	}
	next, d := image.With(DropBroker{1}, PutBroker{&Broker{ID: 3, Epoch: 9}})
	if got := describe(d); got != "broker 1 broker 3" || next.Alive(1) || !image.Alive(1) {
		t.Error(got)
	}
	if ids := next.Brokers(); len(ids) != 2 || ids[0].ID != 2 || ids[1].Epoch != 9 {
		t.Errorf("%v", ids)
	}
}

func TestDroppingTheLastPartitionDropsTheTopic(t *testing.T) {
	image, _ := Empty().With(PutTopic{Name: "t", ID: P.TopicID{1}, Partitions: []*Partition{state(1, 0), state(1, 0)}})
	image, _ = image.With(DropPartition{TopicPartition: tp("t", 0)}, DropPartition{TopicPartition: tp("u", 0)}, DropPartition{tp("t", 1), P.TopicID{7}})
	if image.Topic("t") == nil {
		t.Fatal("the topic went with one of two partitions")
	}
	image, d := image.With(DropPartition{tp("t", 1), P.TopicID{1}})
	if image.Topic("t") != nil || len(image.Topics()) != 0 || image.PartitionCount() != 0 || describe(d) != "-t t-1:gone" {
		t.Error(describe(d))
	}
}

// A random history leads to the image that a plain map would, and its delta is the one that comparing the
// two images finds.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model, image := map[string]map[int32]P.LeaderEpoch{}, Empty()
		ids, made := map[string]P.TopicID{}, byte(0)
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			var changes []Change
			for range rapid.IntRange(1, 4).Draw(t, "changes") {
				name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "topic")
				p := rapid.Int32Range(0, 3).Draw(t, "partition")
				epoch := P.LeaderEpoch(rapid.Int32Range(0, 2).Draw(t, "epoch"))
				switch rapid.IntRange(0, 3).Draw(t, "kind") {
				case 0:
					delete(model, name)
					changes = append(changes, DropTopic{name})
				case 1:
					delete(model[name], p)
					if len(model[name]) == 0 {
						delete(model, name)
					}
					changes = append(changes, DropPartition{TopicPartition: tp(name, p)})
				default:
					if model[name] == nil {
						model[name] = map[int32]P.LeaderEpoch{}
						made++
						ids[name] = P.TopicID{made}
					}
					model[name][p] = epoch
					changes = append(changes, PutPartition{tp(name, p), ids[name], state(1, epoch)})
				}
			}
			next, d := image.With(changes...)
			check(t, model, next)
			if got, want := describe(d), describe(Diff(image, next)); got != want {
				t.Fatalf("With said %q, Diff %q", got, want)
			}
			image = next
		}
	})
}

func check(t *rapid.T, model map[string]map[int32]P.LeaderEpoch, image *Image) {
	if diff := cmp.Diff(slices.Sorted(maps.Keys(model)), slices.Clone(image.Topics())); diff != "" && len(model) > 0 {
		t.Fatal(diff)
	}
	total := 0
	for name, want := range model {
		got := map[int32]P.LeaderEpoch{}
		topic := image.Topic(name)
		total += len(topic.Partitions)
		for i, p := range topic.Partitions {
			if p.Known() {
				got[int32(i)] = p.LeaderEpoch
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || image.TopicByID(topic.ID) != topic {
			t.Fatal(diff)
		}
	}
	if image.PartitionCount() != total {
		t.Fatalf("%d partitions, want %d", image.PartitionCount(), total)
	}
}

func large(topics, partitions int) *Image {
	changes := make([]Change, topics)
	for i := range changes {
		states := make([]*Partition, partitions)
		for p := range states {
			states[p] = state(1, 0)
		}
		changes[i] = PutTopic{Name: fmt.Sprint("topic-", i), ID: P.TopicID{byte(i), byte(i >> 8)}, Partitions: states}
	}
	image, _ := Empty().With(changes...)
	return image
}

func TestTopicInFrame(t *testing.T) {
	image := large(600, 1) // more than a table has shards
	for i := range 601 {
		name := fmt.Sprint("topic-", i)
		if got, want := image.TopicInFrame([]byte(name)), image.Topic(name); got != want || (got == nil) != (i == 600) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func BenchmarkOneOf100000Partitions(b *testing.B) {
	image := large(1000, 100)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		name := "topic-" + fmt.Sprint(i%1000)
		image, _ = image.With(PutPartition{tp(name, 7), image.Topic(name).ID, state(2, P.LeaderEpoch(i))})
	}
}

func BenchmarkLookup(b *testing.B) {
	image := large(1000, 10)
	b.ReportAllocs()
	for b.Loop() {
		_ = image.Partition(tp("topic-17", 3))
	}
}
