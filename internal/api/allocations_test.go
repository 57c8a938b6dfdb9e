//go:build !race

package api

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

func TestFetchFramePartsAreUsedAgain(t *testing.T) {
	r := &Request{RequestHeader: wire.RequestHeader{Key: int16(kmsg.Fetch), Version: 12}, pools: newPools()}
	results := []fetchResult{{part: &fetchPart{fetchKey: fetchKey{topic: "t"}}}}
	allocs := testing.AllocsPerRun(100, func() { frameFetch(r, protocol.None, 0, false, results).Release() })
	if allocs > 0 {
		t.Errorf("%v allocations for a frame, want none", allocs)
	}
}
