package admin

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// away is how long a broker's answers are on their way.
const away = 300 * time.Millisecond

// answered makes the reading see answers of a broker that it held back.
func answered(r *Reading, broker int32, times int) {
	r.OnBrokerRead(kgo.BrokerMetadata{NodeID: broker}, 18, 100, away, 0, nil)
	for range times {
		r.OnBrokerRead(kgo.BrokerMetadata{NodeID: broker}, 1, 100, away+boundedWait, 0, nil)
	}
}

// TestAnswersWithoutRecords has a broker that is far away and sends batches without a record at once, as they are
// at the beginning of a compacted partition: the records come behind them.
func TestAnswersWithoutRecords(t *testing.T) {
	r := NewReading(Ranges{{"t", 0}: {0, 10, 1}})
	answered(r, 1, quietAnswers-1)
	for range 10 {
		r.OnBrokerRead(kgo.BrokerMetadata{NodeID: 1}, 1, 100, away, 10*time.Millisecond, nil)
	}
	answered(r, 1, quietAnswers-1)
	if r.done() {
		t.Fatal("over after answers that had something in them")
	}
	answered(r, 1, 1)
	if !r.done() {
		t.Fatal("not over after answers without anything")
	}
}

// TestReadingEndsWhenBrokersAreQuiet has two leaders: only when both have answered often enough without a
// record is there nothing left, and a record starts the count again.
func TestReadingEndsWhenBrokersAreQuiet(t *testing.T) {
	a, b := TopicPartition{"t", 0}, TopicPartition{"t", 1}
	r := NewReading(Ranges{a: {0, 10, 1}, b: {0, 10, 2}, {"t", 2}: {5, 5, 1}})
	answered(r, 1, quietAnswers)
	if r.done() {
		t.Fatal("over while broker 2 has not answered")
	}
	answered(r, 2, quietAnswers-1)
	r.OnBrokerRead(kgo.BrokerMetadata{NodeID: 2}, 3, 100, 0, 0, nil)
	if r.done() {
		t.Fatal("an answer to another kind of request has counted")
	}
	r.took([]TopicPartition{a})
	if r.done() {
		t.Fatal("over though a record has just come")
	}
	over := make(chan struct{})
	stop := r.whenOver(func() { close(over) })
	defer stop()
	answered(r, 2, quietAnswers)
	select {
	case <-over:
	case <-time.After(10 * time.Second):
		t.Fatal("not over")
	}
}

func TestUnboundedReadingNeverEnds(t *testing.T) {
	r := NewReading(Ranges{{"t", 0}: {0, -1, 1}})
	answered(r, 1, 100)
	if r.done() {
		t.Fatal("over")
	}
}

// TestMemberReadsWhatItIsGiven waits for the group, and then only for the partitions that it gives.
func TestMemberReadsWhatItIsGiven(t *testing.T) {
	mine, other := TopicPartition{"t", 0}, TopicPartition{"t", 1}
	r := NewMemberReading("g", []string{"t"}, Ranges{mine: {0, 10, 1}, other: {0, 10, 2}})
	answered(r, 1, quietAnswers)
	if r.done() {
		t.Fatal("over before the group has spoken")
	}
	r.assign(map[string][]int32{"t": {0}}, true)
	if r.done() {
		t.Fatal("over with a partition that has just been given")
	}
	r.took([]TopicPartition{mine})
	if !r.done() {
		t.Fatal("not over, though the own partition has reached its end")
	}
	r.assign(map[string][]int32{"t": {1}}, true)
	if r.done() {
		t.Fatal("over though the group has given another partition")
	}
	r.assign(map[string][]int32{"t": {1}}, false)
	if !r.done() {
		t.Fatal("not over though the partition was taken again")
	}
}
