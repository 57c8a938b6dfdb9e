package partition

import (
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

func TestAloneEveryAppendIsCommitted(t *testing.T) {
	l := Lead(1, 5, []protocol.BrokerID{1}, 10, 7)
	if w := l.Advance(1); w != 10 {
		t.Fatalf("watermark %d after the start, want 10: nobody else has to have it", w)
	}
	if w := l.Appended(12, 1); w != 12 || l.Watermark() != 12 {
		t.Fatalf("watermark %d, want 12", w)
	}
	if l.EpochStart != 10 {
		t.Fatalf("epoch start %d, want 10", l.EpochStart)
	}
}

func TestTooFewInSyncReplicas(t *testing.T) {
	l := Lead(1, 0, []protocol.BrokerID{1}, 0, 0)
	if err := l.Admit(true, 2); protocol.CodeOf(err) != protocol.NotEnoughReplicas {
		t.Fatalf("acks=all: %v, want NOT_ENOUGH_REPLICAS", err)
	}
	if err := l.Admit(false, 2); err != nil {
		t.Fatalf("acks=1 does not ask for replicas: %v", err)
	}
	if w := l.Appended(3, 2); w != 0 {
		t.Fatalf("watermark %d below min.insync.replicas, want 0", w)
	}
}

func TestOtherMembersHoldTheWatermark(t *testing.T) {
	l := Lead(1, 0, []protocol.BrokerID{1, 2}, 4, 4)
	if w := l.Appended(9, 1); w != 4 {
		t.Fatalf("watermark %d although broker 2 is in sync and unheard of, want 4", w)
	}
	l.SetInSync([]protocol.BrokerID{1})
	if w := l.Advance(1); w != 9 {
		t.Fatalf("watermark %d after broker 2 left the set, want 9", w)
	}
}

func TestLogEndNeverFalls(t *testing.T) {
	l := Lead(1, 0, []protocol.BrokerID{1}, 4, 4)
	defer func() {
		if recover() == nil {
			t.Fatal("a falling log end offset went unnoticed")
		}
	}()
	l.Appended(3, 1)
}
