package replica

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

func TestLeadAppendRead(t *testing.T) {
	s := newStage(t)
	if _, err := s.Partition(tp("t")); protocol.CodeOf(err) != protocol.UnknownTopicOrPartition {
		t.Fatalf("before any order: %v, want UNKNOWN_TOPIC_OR_PARTITION", err)
	}
	p := s.lead("t", 3)
	if last := s.write(p, 5, AcksAll); last != 4 {
		t.Fatalf("last offset %d, want 4", last)
	}
	if b := p.Bounds(); b != (Bounds{LastStable: 5, HighWatermark: 5, End: 5}) {
		t.Errorf("bounds %+v", b)
	}
	if epoch := p.Log().EpochAt(0); epoch != 3 {
		t.Errorf("the batch has leader epoch %d, want 3", epoch)
	}
	slice, err := p.Read(2, 1<<20, 5, false)
	s.must(err)
	defer slice.Release()
	if slice.Length == 0 {
		t.Error("nothing read at offset 2 of 5")
	}
	_, err = p.Read(6, 1, 5, false)
	wantCode(t, "read behind the end", err, protocol.OffsetOutOfRange)
}

func TestCheckLeader(t *testing.T) {
	s := newStage(t)
	p := s.lead("t", 3)
	for client, want := range map[protocol.LeaderEpoch]protocol.Code{
		protocol.NoLeaderEpoch: protocol.None, 3: protocol.None, 2: protocol.FencedLeaderEpoch, 4: protocol.UnknownLeaderEpoch,
	} {
		if err := p.CheckLeader(client); protocol.CodeOf(err) != want {
			t.Errorf("client in epoch %d: %v, want %v", client, err, want.Name())
		}
	}
	s.tell(s.order("t", metadata.Follow, 4))
	wantCode(t, "a follower", p.CheckLeader(3), protocol.NotLeaderOrFollower)
	_, _, err := p.Append(context.Background(), s.validated(p, 1), AcksLeader)
	wantCode(t, "append to a follower", err, protocol.NotLeaderOrFollower)
}

func TestOlderEpochsChangeNothing(t *testing.T) {
	s := newStage(t)
	p := s.lead("t", 5)
	failed := s.tell(s.order("t", metadata.Lead, 4))
	wantCode(t, "an older epoch", failed[tp("t")], protocol.FencedLeaderEpoch)
	if epoch, _ := p.Leader(); epoch != 5 {
		t.Errorf("leads in epoch %d after an older order, want 5", epoch)
	}
	s.write(p, 1, AcksAll)
}

// A broker never appends in an epoch that its log held when the process started: what it had appended in it
// may be lost, and the same offsets would get other records.
func TestEpochOfTheLogIsNotLedAgain(t *testing.T) {
	s := newStage(t)
	s.write(s.lead("t", 5), 2, AcksAll)
	s.stop()
	s.start()
	failed := s.tell(s.order("t", metadata.Lead, 5))
	if failed[tp("t")] == nil {
		t.Fatal("the leader of an epoch that the log holds already")
	}
	p, err := s.Partition(tp("t"))
	s.must(err)
	wantCode(t, "a replica that could not lead", p.CheckLeader(protocol.NoLeaderEpoch), protocol.KafkaStorageError)
	if last := s.write(s.lead("t", 6), 1, AcksAll); last != 2 {
		t.Errorf("offset %d in the next epoch, want 2", last)
	}
}

// A store that was restored from an old backup names epochs below those of the logs. Whoever follows in one could
// cut what was committed since.
func TestEpochsBelowTheLogsAreRefused(t *testing.T) {
	for _, role := range []metadata.Role{metadata.Lead, metadata.Follow} {
		s := newStage(t)
		s.write(s.lead("t", 5), 2, AcksAll)
		s.stop()
		s.start()
		order := s.order("t", role, 4, self, 2)
		if role == metadata.Follow {
			order.State.Leader = 2
		}
		err := s.tell(order)[tp("t")]
		if err == nil || !strings.Contains(err.Error(), "leader epoch 4 of t-0 is below 5, which its log holds") {
			t.Errorf("%v in an older epoch: %v", role, err)
		}
		p, err := s.Partition(tp("t"))
		s.must(err)
		wantCode(t, "a replica that was refused", p.CheckLeader(protocol.NoLeaderEpoch), protocol.KafkaStorageError)
		if last := s.write(s.lead("t", 6), 1, AcksAll); last != 2 {
			t.Errorf("offset %d in a newer epoch, want 2", last)
		}
	}
}

func TestNewEpochOfTheSameLeader(t *testing.T) {
	s := newStage(t)
	p := s.lead("t", 1)
	s.write(p, 2, AcksAll)
	if s.lead("t", 2) != p {
		t.Fatal("another partition after a new epoch")
	}
	epoch, end := p.Log().EndOffsetForEpoch(1)
	if epoch != 1 || end != 2 {
		t.Errorf("epoch 1 ends at %d (%d), want 2", end, epoch)
	}
	if epoch, end = p.Log().EndOffsetForEpoch(2); epoch != 2 || end != 2 {
		t.Errorf("epoch 2 ends at %d (%d) before its first record, want 2", end, epoch)
	}
}

func TestInSyncSetWithinAnEpoch(t *testing.T) {
	s := newStage(t)
	p := s.lead("t", 1, 1, 2)
	s.write(p, 3, AcksAll)
	if w := p.Bounds().HighWatermark; w != 0 {
		t.Fatalf("watermark %d while broker 2 is in sync and has nothing, want 0", w)
	}
	s.lead("t", 1, 1)
	if w := p.Bounds().HighWatermark; w != 3 {
		t.Errorf("watermark %d after broker 2 left, want 3", w)
	}
}

// The log of an internal topic comes with its first record: fifty partitions of __consumer_offsets cost
// nothing until a group uses them.
func TestInternalTopicHasNoLogBeforeItsFirstRecord(t *testing.T) {
	s := newStage(t)
	p := s.lead(protocol.GroupMetadataTopic, 2)
	if p.Log() != nil || len(s.dirs.All()) != 0 {
		t.Fatal("a log before the first record")
	}
	if b := p.Bounds(); b != (Bounds{}) {
		t.Errorf("bounds without a log: %+v", b)
	}
	slice, err := p.Read(0, 1<<20, 0, true)
	if err != nil || slice.Length != 0 {
		t.Errorf("read without a log: %d bytes, %v", slice.Length, err)
	}
	_, err = p.Read(1, 1<<20, 0, true)
	wantCode(t, "read behind the end without a log", err, protocol.OffsetOutOfRange)
	s.write(p, 2, AcksAll)
	if p.Log() == nil || p.Bounds().HighWatermark != 2 {
		t.Errorf("log %v, bounds %+v after the first batch", p.Log(), p.Bounds())
	}
	s.stop()
	s.start()
	p = s.lead(protocol.GroupMetadataTopic, 3)
	if p.Log() == nil || p.Bounds().End != 2 {
		t.Errorf("log %v, bounds %+v after a restart", p.Log(), p.Bounds())
	}
}

func TestCoordinatorAppendsInItsLeadershipOnly(t *testing.T) {
	s := newStage(t)
	p := s.lead(protocol.GroupMetadataTopic, 2)
	coordinator := NewCoordinatorLog(p, s.now)
	batch := s.validated(p, 1).Batch
	last, err := coordinator.Append(context.Background(), batch, 2)
	if err != nil || last != 0 {
		t.Fatalf("offset %d, %v", last, err)
	}
	if _, err := coordinator.Append(context.Background(), batch, 1); protocol.CodeOf(err) != protocol.NotLeaderOrFollower {
		t.Errorf("in an older epoch: %v, want NOT_LEADER_OR_FOLLOWER", err)
	}
	s.lead(protocol.GroupMetadataTopic, 3)
	if last, err := coordinator.Append(context.Background(), batch, 2); err != nil || last != 1 || !coordinator.LedSince(2) {
		t.Errorf("after the next epoch: offset %d, %v, led since 2: %v", last, err, coordinator.LedSince(2))
	}
	s.lead(protocol.GroupMetadataTopic, 5) // somebody else may have led in epoch 4
	if _, err := coordinator.Append(context.Background(), batch, 3); protocol.CodeOf(err) != protocol.NotLeaderOrFollower || coordinator.LedSince(3) {
		t.Errorf("after a break: %v, want NOT_LEADER_OR_FOLLOWER; led since 3: %v", err, coordinator.LedSince(3))
	}
	if start, end := coordinator.Bounds(); start != 0 || end != 2 || coordinator.HighWatermark() != 2 {
		t.Errorf("bounds %d to %d, watermark %d", start, end, coordinator.HighWatermark())
	}
	read, err := coordinator.Read(0, 1)
	if err != nil || len(read) != len(batch) {
		t.Errorf("read %d bytes, %v; want the batch of %d", len(read), err, len(batch))
	}
	if read, err = coordinator.Read(2, 1<<20); err != nil || read != nil {
		t.Errorf("read %d bytes at the end, %v", len(read), err)
	}
}

func TestTooFewReplicasInSync(t *testing.T) {
	s := newStage(t)
	s.set(metadata.TopicEntity("t"), map[string]string{"min.insync.replicas": "2"})
	p := s.lead("t", 1)
	_, _, err := p.Append(context.Background(), s.validated(p, 1), AcksAll)
	wantCode(t, "acks=all", err, protocol.NotEnoughReplicas)
	s.write(p, 1, AcksLeader)
	if w := p.Bounds().HighWatermark; w != 0 {
		t.Errorf("watermark %d below min.insync.replicas, want 0", w)
	}
	s.set(metadata.TopicEntity("t"), nil)
	if w := p.Bounds().HighWatermark; w != 1 {
		t.Errorf("watermark %d after the property went, want 1", w)
	}
}

// A bug under the partition's lock means that what is known of the partition is wrong: nothing may be
// appended behind it.
func TestPanicPoisonsThePartition(t *testing.T) {
	s := newStage(t)
	p := s.lead("t", 1, 1, 2)
	last := s.write(p, 1, AcksLeader)
	waits := make(chan error, 1)
	go func() { waits <- p.Wait(context.Background(), 1, last+1) }()
	p.leader.Appended(1000, 0) // the machine now believes what is not so
	batch := s.validated(p, 1)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach the request")
			}
		}()
		_, _, _ = p.Append(context.Background(), batch, AcksLeader)
	}()
	wantCode(t, "a wait for an earlier append", <-waits, protocol.NotLeaderOrFollower)
	_, _, err := p.Append(context.Background(), batch, AcksLeader)
	wantCode(t, "an append afterwards", err, protocol.KafkaStorageError)
	wantCode(t, "a fetch afterwards", p.CheckLeader(1), protocol.KafkaStorageError)
}

func TestSwappedLogKnowsTheEpoch(t *testing.T) {
	s := newStage(t)
	p := s.lead("t", 1)
	s.write(p, 2, AcksAll)
	s.lead("t", 2) // nothing is written in it
	from := p.Log()
	other := map[string]string{"/a": "/b", "/b": "/a"}
	dir, _ := s.dirs.DirOf(tp("t"))
	s.must(s.dirs.Move(tp("t"), other[dir]))
	ctx, cancel := context.WithCancel(context.Background())
	running := make(chan struct{})
	go func() { defer close(running); s.dirs.Run(ctx) }()
	<-s.dirs.CaughtUp()
	s.must(p.SwapLog(func() (*log.Log, error) { return s.dirs.Swap(tp("t")) }))
	cancel()
	<-running
	if p.Log() == from {
		t.Fatal("the log is the same")
	}
	if epoch, end := p.Log().EndOffsetForEpoch(2); epoch != 2 || end != 2 {
		t.Errorf("the copy says that epoch 2 ends at %d (%d), want 2", end, epoch)
	}
	if last := s.write(p, 1, AcksAll); last != 2 || p.Bounds().HighWatermark != 3 {
		t.Errorf("offset %d, bounds %+v after the move", last, p.Bounds())
	}
}

// A reader may have the old log in hand when the partition moves to another directory.
func TestReadDuringASwap(t *testing.T) {
	s := newStage(t)
	p := s.lead("t", 1)
	s.write(p, 2, AcksAll)
	other := s.lead("other", 1)
	s.write(other, 2, AcksAll)
	s.must(s.dirs.Delete(tp("t"))) // the files of the log that the partition still has go
	p.log.Load().CloseUnclean()
	read := make(chan error, 1)
	s.must(p.SwapLog(func() (*log.Log, error) {
		go func() {
			slice, err := p.Read(0, 1<<20, 2, true)
			slice.Release()
			read <- err
		}()
		return other.Log(), nil
	}))
	s.must(<-read)
}

func TestDeletion(t *testing.T) {
	s := newStage(t)
	p := s.lead("t", 1)
	s.write(p, 1, AcksAll)
	slice, err := p.Read(0, 1<<20, 1, true)
	s.must(err)
	if failed := s.tell(s.order("t", metadata.Delete, 0)); len(failed) > 0 {
		t.Fatal(failed)
	}
	wantCode(t, "a request that had found it", p.CheckLeader(1), protocol.UnknownTopicOrPartition)
	_, err = s.Partition(tp("t"))
	wantCode(t, "a new request", err, protocol.UnknownTopicOrPartition)
	if s.dirs.Get(tp("t")) != nil {
		t.Error("the log is still there")
	}
	s.must(slice.ReadInto(make([]byte, slice.Length))) // a send that is under way goes on
	slice.Release()
	_, err = p.Read(0, 1<<20, 1, true)
	wantCode(t, "a read afterwards", err, protocol.UnknownTopicOrPartition)
	if last := s.write(s.lead("t", 0), 1, AcksAll); last != 0 {
		t.Errorf("offset %d in a new topic of the name, want 0", last)
	}
}

// Stop keeps the log, and the partition may come back.
func TestStopKeepsTheLog(t *testing.T) {
	s := newStage(t)
	s.write(s.lead("t", 1), 3, AcksAll)
	s.tell(s.order("t", metadata.Stop, 0))
	_, err := s.Partition(tp("t"))
	wantCode(t, "a stopped replica", err, protocol.UnknownTopicOrPartition)
	if end := s.lead("t", 2).Bounds().End; end != 3 {
		t.Errorf("log end %d after the replica came back, want 3", end)
	}
}

// One topic id, one log: records of an earlier topic of the same name never show up in a new one.
func TestAnotherTopicIDStartsEmpty(t *testing.T) {
	s := newStage(t)
	old := s.lead("t", 7)
	s.write(old, 3, AcksAll)
	s.ids["t"] = protocol.NewTopicID()
	p := s.lead("t", 0)
	if p == old || p.Bounds().End != 0 || p.TopicID() != s.id("t") {
		t.Errorf("the new topic ends at %d", p.Bounds().End)
	}
	wantCode(t, "a request that holds the old one", old.CheckLeader(protocol.NoLeaderEpoch), protocol.UnknownTopicOrPartition)
	s.write(p, 1, AcksAll)
}

func TestDirectoryThatCannotMakeALog(t *testing.T) {
	s := newStage(t)
	s.files.SetLimit(1)
	failed := s.tell(s.order("t", metadata.Lead, 1))
	wantCode(t, "the order", failed[tp("t")], protocol.KafkaStorageError)
	p, err := s.Partition(tp("t"))
	s.must(err)
	wantCode(t, "a request", p.CheckLeader(protocol.NoLeaderEpoch), protocol.KafkaStorageError)
	s.files.SetLimit(0)
	s.write(s.lead("t", 1), 1, AcksAll) // the controller says it again
}

// No order about a partition in a directory that has failed is carried out, also where the log would not be made by an
// order: the controller takes the replica for one that works otherwise.
func TestOrdersAboutAFailedDirectory(t *testing.T) {
	for _, topic := range []string{"t", protocol.GroupMetadataTopic} {
		s := newStage(t)
		s.write(s.lead(topic, 1), 1, AcksLeader)
		s.dirs.Report(tp(topic), syscall.EIO)
		follow := s.order(topic, metadata.Follow, 2)
		follow.State.Leader = protocol.NoBroker
		for _, order := range []metadata.ReplicaChange{follow, s.order(topic, metadata.Lead, 3)} {
			if err := s.tell(order)[tp(topic)]; protocol.CodeOf(err) != protocol.KafkaStorageError {
				t.Errorf("%s, order %v: %v, want KAFKA_STORAGE_ERROR", topic, order.Role, err)
			}
		}
	}
}

func TestSettings(t *testing.T) {
	s := newStage(t)
	s.set(metadata.TopicEntity("t"), map[string]string{"retention.ms": "5", "max.message.bytes": "100"})
	p, other := s.lead("t", 1), s.lead("other", 1)
	if got := p.Settings().MaxMessageBytes; got != 100 || p.Log().Config().MaxMessageBytes != 100 {
		t.Errorf("max.message.bytes %d, in the log %d, want 100", got, p.Log().Config().MaxMessageBytes)
	}
	s.set(metadata.TopicEntity("t"), map[string]string{"max.message.bytes": "200"})
	if got := p.Log().Config().MaxMessageBytes; got != 200 || p.Settings().MaxMessageBytes != 200 {
		t.Errorf("max.message.bytes %d after a change, want 200", got)
	}
	if got := other.Settings().MaxMessageBytes; got < 1<<20 {
		t.Errorf("another topic's max.message.bytes is %d", got)
	}
	s.set(metadata.TopicEntity("t"), map[string]string{"max.message.bytes": "many"})
	if got := p.Settings().MaxMessageBytes; got != 200 {
		t.Errorf("max.message.bytes %d after a change that is not valid, want the old 200", got)
	}
}

// Whatever the store holds, a topic stays usable.
func TestPropertiesThatAreNotValid(t *testing.T) {
	s := newStage(t)
	s.set(metadata.TopicEntity("t"), map[string]string{"retention.ms": "soon", "max.message.bytes": "100"})
	p := s.lead("t", 1)
	if got := p.Settings(); got.MaxMessageBytes != 100 || got.RetentionAge <= 0 {
		t.Errorf("settings %+v, want the valid one taken and the default for the other", got)
	}
}
