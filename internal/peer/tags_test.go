package peer

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kmsg"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Waits come through an answer as they were, and a value that is cut off anywhere gives what is whole of it.
func TestWaits(t *testing.T) {
	want := []Wait{{P.TopicPartition{Topic: "orders", Partition: 7}, 30 * time.Second}, {P.TopicPartition{Topic: "t", Partition: 0}, 0}}
	sent := kmsg.NewPtrListPartitionReassignmentsResponse()
	SetWaits(&sent.UnknownTags, want)
	got := kmsg.NewPtrListPartitionReassignmentsResponse()
	if err := got.ReadFrom(sent.AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, Waits(&got.UnknownTags)); diff != "" {
		t.Error(diff)
	}
	got.UnknownTags.Each(func(_ uint32, value []byte) {
		whole := len(value) - 1 - 16 // the second one
		for length := range value {
			var tags kmsg.Tags
			tags.Set(WaitsTag, value[:length])
			if n := len(Waits(&tags)); n != map[bool]int{false: 0, true: 1}[length >= whole] {
				t.Errorf("%d waits in %d bytes", n, length)
			}
		}
	})
	request := kmsg.NewPtrListPartitionReassignmentsRequest()
	if AsksForWaits(&request.UnknownTags) {
		t.Error("nobody has asked")
	}
	AskForWaits(&request.UnknownTags)
	heard := kmsg.NewPtrListPartitionReassignmentsRequest()
	if err := heard.ReadFrom(request.AppendTo(nil)); err != nil || !AsksForWaits(&heard.UnknownTags) {
		t.Errorf("not heard, %v", err)
	}
}
