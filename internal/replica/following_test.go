package replica

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/partition"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// couple is two or three brokers with a replica of one topic each.
type couple struct {
	t      *testing.T
	stages []*stage
}

func newCouple(t *testing.T, n int) *couple {
	c := &couple{t: t}
	ids := map[string]protocol.TopicID{}
	for id := range n {
		c.stages = append(c.stages, newStageOf(t, protocol.BrokerID(id+1), ids))
	}
	return c
}

// elect makes broker leader lead in epoch, and the others follow it.
func (c *couple) elect(leader protocol.BrokerID, epoch protocol.LeaderEpoch, inSync ...protocol.BrokerID) {
	c.t.Helper()
	state := &metadata.Partition{Leader: leader, LeaderEpoch: epoch, ISR: inSync}
	for _, s := range c.stages {
		state.Replicas = append(state.Replicas, s.self)
	}
	c.order(state)
}

// order tells all brokers of a state.
func (c *couple) order(state *metadata.Partition) {
	c.t.Helper()
	for _, s := range c.stages {
		role := metadata.Follow
		if s.self == state.Leader {
			role = metadata.Lead
		}
		for _, err := range s.tell(metadata.ReplicaChange{TopicPartition: tp("t"), TopicID: s.id("t"), Role: role, State: state}) {
			c.t.Fatal(err)
		}
	}
}

// at is a broker's replica.
func (c *couple) at(broker protocol.BrokerID) *Partition {
	c.t.Helper()
	p, err := c.stages[broker-1].Partition(tp("t"))
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// write appends n records at a broker.
func (c *couple) write(broker protocol.BrokerID, n int) {
	c.t.Helper()
	c.stages[broker-1].write(c.at(broker), n, AcksLeader)
}

// fetch lets one broker fetch once from another, as the Fetch request does it.
func (c *couple) fetch(follower, leader protocol.BrokerID) partition.Step {
	c.t.Helper()
	from, to := c.at(leader), c.at(follower)
	epoch, leads := from.Leader()
	if !leads {
		c.t.Fatalf("broker %d does not lead", leader)
	}
	at, ok := to.position(epoch)
	if !ok {
		c.t.Fatalf("broker %d does not follow in epoch %d", follower, epoch)
	}
	b := from.Bounds()
	got := &fetched{watermark: b.HighWatermark, start: b.Start}
	known, end := from.Log().EndOffsetForEpoch(at.last)
	if at.last >= 0 && (known < at.last || end < at.offset) {
		got.diverging = &partition.EpochEnd{Epoch: known, End: end}
		return to.replicate(epoch, at, got)
	}
	slice, err := from.Read(at.offset, 1<<20, b.End, true)
	if err != nil {
		got.code = protocol.CodeOf(err)
		return to.replicate(epoch, at, got)
	}
	got.batches = make([]byte, slice.Length)
	if slice.Length > 0 {
		if err := slice.ReadInto(got.batches); err != nil {
			c.t.Fatal(err)
		}
		slice.Release()
	}
	if err := from.Followed(context.Background(), partition.Fetch{Replica: follower, Epoch: 1, Offset: at.offset, Start: at.start}, epoch); err != nil {
		c.t.Fatal(err)
	}
	return to.replicate(epoch, at, got)
}

// wantStep checks what a follower is to do next.
func (c *couple) wantStep(what string, got partition.Step, want partition.Kind) {
	c.t.Helper()
	if got.Kind != want {
		c.t.Errorf("%s: %v %v, want %v", what, got.Kind, got.Err, want)
	}
}

// wantBounds checks the high watermark and the log end of a replica.
func (c *couple) wantBounds(broker protocol.BrokerID, watermark, end protocol.Offset) {
	c.t.Helper()
	if b := c.at(broker).Bounds(); b.HighWatermark != watermark || b.End != end {
		c.t.Errorf("broker %d: watermark %d of %d, want %d of %d", broker, b.HighWatermark, b.End, watermark, end)
	}
}

// contents are the records of a replica.
func (c *couple) contents(broker protocol.BrokerID) string {
	c.t.Helper()
	l := c.at(broker).Log()
	var out strings.Builder
	for at := l.StartOffset(); at < l.EndOffset(); {
		slice, err := l.Read(at, 1<<20, l.EndOffset(), true)
		if err != nil || slice.Length == 0 {
			c.t.Fatalf("%d bytes, %v", slice.Length, err)
		}
		batches := make([]byte, slice.Length)
		if err := slice.ReadInto(batches); err != nil {
			c.t.Fatal(err)
		}
		slice.Release()
		fmt.Fprintf(&out, "%x\n", batches)
		at = l.EndOffset()
	}
	return out.String()
}

func TestFollowerGetsWhatTheLeaderHas(t *testing.T) {
	c := newCouple(t, 2)
	c.elect(1, 3, 1, 2)
	c.write(1, 5)
	c.wantBounds(1, 0, 5)
	c.wantStep("records", c.fetch(2, 1), partition.Append)
	c.wantBounds(2, 0, 5)
	c.wantBounds(1, 0, 5) // who fetches from 0 has nothing yet
	c.wantStep("the next fetch", c.fetch(2, 1), partition.Append)
	c.wantBounds(1, 5, 5)
	c.wantBounds(2, 0, 5)
	c.wantStep("and the next", c.fetch(2, 1), partition.Append)
	c.wantBounds(2, 5, 5)
	if epoch := c.at(2).Log().EpochAt(0); epoch != 3 {
		t.Errorf("epoch %d at the follower, want 3", epoch)
	}
}

// What was only at the old leader goes when it follows the new one (KIP-101), and what was committed stays.
func TestFormerLeaderCutsWhatIsNotCommitted(t *testing.T) {
	c := newCouple(t, 2)
	c.elect(1, 1, 1, 2)
	c.write(1, 3)
	for range 3 {
		c.fetch(2, 1)
	}
	c.write(1, 4) // nobody fetches these
	c.elect(2, 2, 1, 2)
	c.write(2, 1)
	c.wantBounds(1, 3, 7)
	c.wantStep("a cut", c.fetch(1, 2), partition.Append)
	c.wantBounds(1, 3, 3)
	c.fetch(1, 2)
	c.fetch(1, 2)
	c.wantBounds(2, 4, 4)
	if c.contents(1) != c.contents(2) {
		t.Error("the logs differ")
	}
}

// Two changes of leadership between which only one replica wrote (KIP-279): the follower cuts step by step.
func TestFollowerCutsStepByStep(t *testing.T) {
	c := newCouple(t, 2)
	c.elect(1, 1, 1, 2)
	c.write(1, 2)
	c.fetch(2, 1)
	c.write(1, 2) // epoch 1 at 1 alone
	c.elect(2, 2, 1, 2)
	c.write(2, 3) // epoch 2 at 2 alone
	c.elect(1, 3, 1, 2)
	c.write(1, 1) // epoch 3 at 1
	for range 5 {
		c.fetch(2, 1)
	}
	if c.contents(1) != c.contents(2) {
		t.Errorf("the logs differ:\n%s\n%s", c.contents(1), c.contents(2))
	}
	c.wantBounds(1, 5, 5)
}

// Elections without a record leave epochs behind in memory only (BR-123).
func TestElectionsWithoutRecords(t *testing.T) {
	c := newCouple(t, 2)
	c.elect(1, 1, 1, 2)
	c.write(1, 2)
	c.fetch(2, 1)
	for epoch := protocol.LeaderEpoch(2); epoch < 8; epoch++ {
		c.elect(protocol.BrokerID(epoch%2+1), epoch, 1, 2)
	}
	c.write(2, 2) // epoch 7 is broker 2's
	for range 4 {
		c.wantStep("a fetch", c.fetch(1, 2), partition.Append)
	}
	c.wantBounds(2, 4, 4)
	if c.contents(1) != c.contents(2) {
		t.Error("the logs differ")
	}
}

// A follower does not give up what it knows to be committed, unless it is told that the leader was elected
// without having it.
func TestCommittedRecordsAreNotCut(t *testing.T) {
	c := newCouple(t, 2)
	c.elect(1, 1, 1, 2)
	c.write(1, 2)
	for range 3 {
		c.fetch(2, 1)
	}
	c.wantBounds(2, 2, 2)
	s := c.stages[0]
	s.must(s.dirs.TruncateTo(tp("t"), 0)) // the disk of broker 1 has lost everything
	state := &metadata.Partition{Leader: 1, LeaderEpoch: 2, Replicas: []protocol.BrokerID{1, 2}, ISR: []protocol.BrokerID{1}}
	c.order(state)
	c.wantStep("a leader that lacks committed records", c.fetch(2, 1), partition.Halt)
	c.wantBounds(2, 2, 2)
	wantCode(t, "a consumer", c.at(2).CheckReplica(protocol.NoLeaderEpoch), protocol.KafkaStorageError)
	unclean := *state
	unclean.LeaderEpoch, unclean.Recovering = 3, true
	c.order(&unclean)
	c.wantStep("an unclean election", c.fetch(2, 1), partition.Append)
	c.wantBounds(2, 0, 0)
}

// Bytes that were damaged on their way are not appended, and neither are epochs that the leader cannot have.
func TestFollowerChecksWhatItGets(t *testing.T) {
	c := newCouple(t, 2)
	c.elect(1, 4, 1, 2)
	batch := c.stages[0].validated(c.at(1), 2).Batch
	batch.SetLeaderEpoch(4)
	p := c.at(2)
	give := func(edit func(b []byte)) partition.Step {
		copied := append([]byte(nil), batch...)
		edit(copied)
		at, _ := p.position(4)
		return p.replicate(4, at, &fetched{batches: copied})
	}
	c.wantStep("a flipped bit", give(func(b []byte) { b[len(b)-1] ^= 1 }), partition.Later)
	c.wantStep("a later epoch", give(func(b []byte) { b[15] = 5 }), partition.Later)
	c.wantBounds(2, 0, 0)
	c.wantStep("whole", give(func([]byte) {}), partition.Append)
	c.wantBounds(2, 0, 2)
	c.wantStep("again", p.replicate(4, position{offset: 0}, &fetched{batches: batch}), partition.Append)
	c.wantBounds(2, 0, 2)
	c.wantStep("an epoch that is over", p.replicate(3, position{offset: 2}, &fetched{}), partition.Later)
}

// A follower whose records are gone from the leader begins anew where the leader's log begins.
func TestFollowerBeginsWhereTheLeaderDoes(t *testing.T) {
	c := newCouple(t, 2)
	c.elect(1, 1, 1)
	for range 4 {
		c.write(1, 3)
	}
	leader := c.at(1)
	c.stages[0].must(leader.Log().AdvanceStart(7))
	c.wantStep("before the start", c.fetch(2, 1), partition.AskBounds)
	c.wantStep("the bounds", c.at(2).outOfRange(1, 7, 12), partition.Append)
	c.wantBounds(2, 7, 7)
	c.wantStep("records from within a batch", c.fetch(2, 1), partition.Append)
	if b := c.at(2).Bounds(); b.Start != 7 || b.End != 12 {
		t.Errorf("the follower has %d to %d, want 7 to 12", b.Start, b.End)
	}
	c.stages[0].must(leader.Log().AdvanceStart(9))
	c.fetch(2, 1)
	if b := c.at(2).Bounds(); b.Start != 9 {
		t.Errorf("the follower's log begins at %d after the leader's moved to 9", b.Start)
	}
}

// Consumers read from a follower what is committed there; within its log, but not committed, there is nothing.
func TestReadingFromAFollower(t *testing.T) {
	c := newCouple(t, 2)
	c.elect(1, 3, 1, 2)
	c.write(1, 2)
	for range 3 {
		c.fetch(2, 1)
	}
	c.write(1, 2)
	c.fetch(2, 1)
	p := c.at(2)
	wantCode(t, "this epoch", p.CheckReplica(3), protocol.None)
	wantCode(t, "an older epoch", p.CheckReplica(2), protocol.FencedLeaderEpoch)
	wantCode(t, "a newer epoch", p.CheckReplica(4), protocol.UnknownLeaderEpoch)
	wantCode(t, "who wants the leader", p.CheckLeader(3), protocol.NotLeaderOrFollower)
	b := p.Bounds()
	slice, err := p.Read(3, 1<<20, b.Limit(false), true)
	if err != nil || slice.Length != 0 || b.HighWatermark != 2 || b.End != 4 {
		t.Errorf("%d bytes at offset 3, %v, bounds %+v", slice.Length, err, b)
	}
	_, err = p.Read(5, 1<<20, b.Limit(false), true)
	wantCode(t, "behind the end", err, protocol.OffsetOutOfRange)
}

// A full disk passes: the follower tries again, and goes on when there is space.
func TestFollowerOnAFullDisk(t *testing.T) {
	c := newCouple(t, 2)
	c.elect(1, 1, 1, 2)
	c.write(1, 1)
	c.fetch(2, 1)
	c.write(1, 500)
	disk := c.stages[1].files
	disk.SetLimit(disk.Used())
	c.wantStep("no space", c.fetch(2, 1), partition.Later)
	c.wantBounds(2, 0, 1)
	disk.SetLimit(1 << 30)
	c.wantStep("space", c.fetch(2, 1), partition.Append)
	c.wantBounds(2, 1, 501)
	if c.contents(1) != c.contents(2) {
		t.Error("the logs differ")
	}
}

// Who deletes records is answered when they are gone from all that may lead next.
func TestDeletedRecordsGoEverywhere(t *testing.T) {
	c := newCouple(t, 2)
	c.elect(1, 1, 1, 2)
	c.write(1, 4)
	for range 3 {
		c.fetch(2, 1)
	}
	p := c.at(1)
	epoch, err := p.DeleteBefore(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.WaitDeleted(t.Context(), epoch, 3) }()
	c.fetch(2, 1) // learns of it
	if b := c.at(2).Bounds(); b.Start != 3 {
		t.Errorf("the follower's log begins at %d, want 3", b.Start)
	}
	if low := p.leader.LowWatermark(3); low != 0 {
		t.Errorf("low watermark %d before the follower has said so, want 0", low)
	}
	c.fetch(2, 1) // says so
	if err := <-done; err != nil {
		t.Error(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if epoch, err = p.DeleteBefore(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "a follower that says nothing", p.WaitDeleted(over, epoch, 4), protocol.CodeOf(context.Canceled))
}
