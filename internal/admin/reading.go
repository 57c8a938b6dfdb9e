package admin

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A partition's last offsets may have no records, as compaction takes tombstones away, so that a reading cannot
// wait for the record before its end. It is over as well when brokers have nothing more: a broker holds back an
// answer without bytes for as long as it may, and one that it did not hold back had something in it, be it
// batches without a record, which compaction leaves behind, too.

// boundedWait is how long a broker may hold back an empty answer where the reading has an end.
const boundedWait = 250 * time.Millisecond

// heldBack is how much slower than its quickest answer one is that a broker held back.
const heldBack = boundedWait * 4 / 5

// quietAnswers is how many answers that were held back, one after another from the same broker, say that it has
// no more records: one alone may have been slow. The client asks a broker again only when its last answer has
// been taken, so none but the last of them can have any.
const quietAnswers = 3

// Range is what to read of a partition.
type Range struct {
	// From is the first offset.
	From int64
	// To is the offset to stop before; negative to read on forever.
	To int64
	// Leader is the broker that leads the partition.
	Leader int32
}

// Ranges are what to read of some partitions.
type Ranges map[TopicPartition]Range

func (r Range) empty() bool { return r.To >= 0 && r.From >= r.To }

// Reading is one pass over some partitions. It is a hook of the client that reads.
//
// It is used by one Read at a time; its hooks are called by the client's goroutines, which is what its lock is
// for.
type Reading struct {
	ranges Ranges

	// group and topics are set where a group says which partitions are read.
	group  string
	topics []string

	mu      sync.Mutex
	pending Ranges
	answers map[int32]int           // that were held back, since the last that was not
	fastest map[int32]time.Duration // the quickest answer of any kind: how far away the broker is
	quiet   func()
	// joined says that the group has spoken, and assigned what it said.
	joined   bool
	assigned map[TopicPartition]bool
}

// NewReading plans a pass. Either all ranges have an end, or none has.
func NewReading(ranges Ranges) *Reading {
	pending := maps.Clone(ranges)
	maps.DeleteFunc(pending, func(_ TopicPartition, r Range) bool { return r.empty() })
	return &Reading{ranges: ranges, pending: pending, answers: map[int32]int{}, fastest: map[int32]time.Duration{}}
}

// NewMemberReading plans a pass as a member of a group, up to the ends of the partitions that the group
// gives to this member. Where it begins, the group's offsets say.
func NewMemberReading(group string, topics []string, ranges Ranges) *Reading {
	return &Reading{
		ranges: ranges, group: group, topics: topics,
		pending: maps.Clone(ranges), answers: map[int32]int{}, fastest: map[int32]time.Duration{}, assigned: map[TopicPartition]bool{},
	}
}

// Options are the options that the reading's client must be made with.
func (r *Reading) Options() []kgo.Opt {
	if r.group != "" {
		return append(MemberOptions(r.group, r.topics), kgo.KeepControlRecords(), kgo.WithHooks(r), kgo.FetchMaxWait(boundedWait),
			kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, given map[string][]int32) { r.assign(given, true) }),
			kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, taken map[string][]int32) { r.assign(taken, false) }),
			kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, taken map[string][]int32) { r.assign(taken, false) }))
	}
	partitions := map[string]map[int32]kgo.Offset{}
	bounded := false
	for at, span := range r.pending {
		if partitions[at.Topic] == nil {
			partitions[at.Topic] = map[int32]kgo.Offset{}
		}
		partitions[at.Topic][at.Partition] = kgo.NewOffset().At(span.From)
		bounded = bounded || span.To >= 0
	}
	// Markers are kept because they may be what stands before the end.
	options := []kgo.Opt{kgo.ConsumePartitions(partitions), kgo.KeepControlRecords(), kgo.WithHooks(r)}
	if bounded {
		options = append(options, kgo.FetchMaxWait(boundedWait))
	}
	return options
}

// OnBrokerRead counts the answers to fetches that say that there is nothing.
//
// An answer that came at once says nothing: it may be one with records, or about other partitions. One that was
// held back for the whole wait says that the leader had nothing for us, and several in a row that it has
// nothing any more. How long a round trip takes is learned from the quickest answer of each broker.
func (r *Reading) OnBrokerRead(broker kgo.BrokerMetadata, key int16, _ int, wait, reading time.Duration, err error) {
	const fetch = 1
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	took := wait + reading
	if fastest, ok := r.fastest[broker.NodeID]; !ok || took < fastest {
		r.fastest[broker.NodeID] = took
	}
	switch {
	case key != fetch:
		return
	case took < r.fastest[broker.NodeID]+heldBack:
		r.answers[broker.NodeID] = 0
		return
	}
	r.answers[broker.NodeID]++
	if r.quiet != nil && r.over() {
		r.quiet()
	}
}

// assign notes partitions that the group gives or takes.
//
// Answers from before count no more: they were about other partitions.
func (r *Reading) assign(partitions map[string][]int32, given bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.joined = r.joined || given
	for topic, numbers := range partitions {
		for _, number := range numbers {
			r.assigned[TopicPartition{topic, number}] = given
		}
	}
	clear(r.answers)
	if r.quiet != nil && r.over() {
		r.quiet()
	}
}

// over reports whether no partition will give a record before its end any more.
func (r *Reading) over() bool {
	if r.group != "" && !r.joined {
		return false
	}
	for at, span := range r.pending {
		if r.group != "" && !r.assigned[at] {
			continue
		}
		if span.To < 0 || r.answers[span.Leader] < quietAnswers {
			return false
		}
	}
	return true
}

// whenOver calls quiet once the reading is over, until stop is called.
func (r *Reading) whenOver(quiet func()) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.quiet = quiet
	if r.over() {
		quiet()
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.quiet = nil
	}
}

// took notes that records have come, so that earlier answers say nothing.
func (r *Reading) took(reached []TopicPartition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.answers)
	for _, at := range reached {
		delete(r.pending, at)
	}
}

func (r *Reading) done() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over()
}
