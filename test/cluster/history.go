package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// topicPartition is a partition, as the clients name it.
type topicPartition struct {
	topic     string
	partition int32
}

// String is TOPIC-PARTITION.
func (tp topicPartition) String() string { return fmt.Sprintf("%s-%d", tp.topic, tp.partition) }

// identity is what a record says of itself: its first twelve bytes. Sequences begin at 1.
type identity struct {
	producer uint32
	sequence uint64
}

// none is the identity of no record.
var none identity

// mark is a high watermark that a leader of that epoch has named.
type mark struct {
	epoch int32
	high  int64
}

// gap is a time in which nothing was acknowledged.
type gap struct {
	partition topicPartition
	length    time.Duration
	end       time.Time
}

// account is what is known of one partition.
type account struct {
	acked, read []identity // by offset
	// submitted is when the newest of the acknowledged records was handed to its client, last when the last
	// acknowledgement came, and gap the longest time between two.
	submitted, last time.Time
	gap             gap
	// committed is the highest offset whose commit the group was told to have succeeded.
	committed int64
	marks     []mark
}

// history is what the clients of a run were told, by anybody at any time. What contradicts itself is noted at
// once: the first contradiction is the end of the run.
type history struct {
	mu       sync.Mutex
	accounts map[topicPartition]*account
	// refused were answered with an error that says that nothing was written.
	refused map[identity]bool
	broken  chan error // one slot

	// How much was done, by what came of it.
	acks, refusals, unknowns, reads, commits, marks, trees int
	// ended is how many members of the group ended because a broker was behind them.
	ended int
}

func newHistory() *history {
	return &history{accounts: map[topicPartition]*account{}, refused: map[identity]bool{}, broken: make(chan error, 1)}
}

// contradict notes what must not be.
func (h *history) contradict(format string, args ...any) {
	select {
	case h.broken <- fmt.Errorf(format, args...):
	default:
	}
}

// of is the account of a partition. The lock is held.
func (h *history) of(tp topicPartition) *account {
	a := h.accounts[tp]
	if a == nil {
		a = &account{}
		h.accounts[tp] = a
	}
	return a
}

// at is what a slice by offset holds.
func at(all []identity, offset int64) identity {
	if offset < int64(len(all)) {
		return all[offset]
	}
	return none
}

// put sets what a slice by offset holds.
func put(all []identity, offset int64, id identity) []identity {
	if more := int(offset) + 1 - len(all); more > 0 {
		all = append(all, make([]identity, more)...)
	}
	all[offset] = id
	return all
}

// acknowledged notes that a record stands at an offset.
func (h *history) acknowledged(tp topicPartition, offset int64, id identity, submitted time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.of(tp)
	if other := at(a.acked, offset); other != none && other != id {
		h.contradict("%v: %+v and %+v were both acknowledged at offset %d", tp, other, id, offset)
	}
	if other := at(a.read, offset); other != none && other != id {
		h.contradict("%v: %+v was acknowledged at offset %d, where %+v had been read", tp, id, offset, other)
	}
	a.acked = put(a.acked, offset, id)
	if submitted.After(a.submitted) {
		a.submitted = submitted
	}
	now := time.Now()
	if length := now.Sub(a.last); !a.last.IsZero() && length > a.gap.length {
		a.gap = gap{tp, length, now}
	}
	a.last = now
	h.acks++
}

// longestGap is for how long at most nothing was acknowledged in some partition of a topic: for so long it could not be
// written, whatever the reason.
func (h *history) longestGap(topic string) (longest gap) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for tp, a := range h.accounts {
		if tp.topic == topic && a.gap.length > longest.length {
			longest = a.gap
		}
	}
	return longest
}

// failed notes that a record was not written, or that nobody can tell.
func (h *history) failed(id identity, certain bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if certain {
		h.refused[id] = true
		h.refusals++
	} else {
		h.unknowns++
	}
}

// consumed notes what a consumer was given. It returns how far the partition has been read without a gap.
func (h *history) consumed(tp topicPartition, offset int64, id identity) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.of(tp)
	if other := at(a.read, offset); other != none && other != id {
		h.contradict("%v: offset %d was read as %+v and as %+v", tp, offset, other, id)
	}
	if other := at(a.acked, offset); other != none && other != id {
		h.contradict("%v: %+v was read at offset %d, where %+v had been acknowledged", tp, id, offset, other)
	}
	if offset > int64(len(a.read)) {
		h.contradict("%v: a consumer is at offset %d, and nobody has read %d", tp, offset, len(a.read))
	}
	a.read = put(a.read, offset, id)
	h.reads++
}

// commit notes an acknowledged commit of the group.
func (h *history) commit(tp topicPartition, offset int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.of(tp)
	a.committed = max(a.committed, offset)
	h.commits++
}

// committed is the highest acknowledged commit so far.
func (h *history) committed(tp topicPartition) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of(tp).committed
}

// high notes a high watermark. Answers are noted in the order of their requests, each of which was sent when the
// one before had been answered: no later answer of an epoch, or of a higher one, may be lower. A leader that does
// not know yet that another one leads may name an old one, in its old epoch.
func (h *history) high(tp topicPartition, m mark) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.of(tp)
	for _, before := range a.marks {
		if before.epoch <= m.epoch && before.high > m.high {
			h.contradict("%v: the high watermark is %d in epoch %d after it was %d in epoch %d", tp, m.high, m.epoch, before.high, before.epoch)
		}
	}
	a.marks = slices.DeleteFunc(a.marks, func(before mark) bool { return before.epoch == m.epoch && before.high <= m.high })
	a.marks = append(a.marks, m)
	h.marks++
}

// behind counts a member that ended because a broker was behind it.
func (h *history) behind() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended++
}

// observed counts a look at ZooKeeper's tree that has seen something.
func (h *history) observed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trees++
}

// servedSince names a partition of a topic of which nothing has been acknowledged that was handed to a client
// after since.
func (h *history) servedSince(topic string, partitions int, since time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for partition := range int32(partitions) {
		tp := topicPartition{topic, partition}
		if !h.of(tp).submitted.After(since) {
			return fmt.Errorf("nothing was acknowledged in %v", tp)
		}
	}
	return nil
}

// unservedSince fails where something of a topic was acknowledged that was handed to a client after since.
func (h *history) unservedSince(topic string, since time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for tp, a := range h.accounts {
		if tp.topic == topic && a.submitted.After(since) {
			return fmt.Errorf("%v: something was acknowledged that was produced %v after nobody could acknowledge any more", tp, a.submitted.Sub(since))
		}
	}
	return nil
}

// leastRecords is how many records must have been acknowledged in each round, and leastReads read, on average: a run
// with less proves nothing.
const (
	leastRecords = 200
	leastReads   = 100
)

// enough fails where too little was done to prove anything. watched says that somebody was to look at the tree.
func (h *history) enough(rounds int, watched bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.acks < leastRecords*rounds || h.reads < leastReads*rounds {
		return fmt.Errorf("%d records acknowledged and %d read in %d rounds prove nothing", h.acks, h.reads, rounds)
	}
	if h.marks == 0 {
		return errors.New("nobody has seen a high watermark, which proves nothing of them")
	}
	if watched && h.trees == 0 {
		return errors.New("nobody has seen ZooKeeper's tree, which proves nothing of epochs and in-sync sets")
	}
	return nil
}

// summary is one line about how much was done.
func (h *history) summary() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	text := fmt.Sprintf("%d records acknowledged, %d refused, %d of unknown outcome; %d read, %d commits; %d watermarks, %d looks at the tree",
		h.acks, h.refusals, h.unknowns, h.reads, h.commits, h.marks, h.trees)
	if h.ended > 0 {
		text += fmt.Sprintf("; %d members ended by a broker that was behind", h.ended)
	}
	return text
}
