package peer

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// StopReplica is a StopReplica request whose bytes are Kafka's. From version 4 on Kafka writes whether the
// controller is one of KRaft before the controller's epoch:
//
//	controller id 4 | is KRaft 1 | controller epoch 4 | broker epoch 8 | …
//
// kmsg has the two the other way round, so that a broker of Kafka's would read another epoch. Whoever reads
// or writes a StopReplica on a connection uses this type instead.
type StopReplica struct{ kmsg.StopReplicaRequest }

var _ kmsg.Request = (*StopReplica)(nil)

// NewStopReplica makes an empty request, to be filled or read into.
func NewStopReplica(version int16) *StopReplica {
	r := &StopReplica{kmsg.NewStopReplicaRequest()}
	r.Version = version
	return r
}

// Where the two fields lie: behind the controller's id.
const (
	swapFrom = 4
	swapTo   = swapFrom + 5
	// swappedSince is the first version that has both.
	swappedSince = 4
)

// AppendTo appends the request as Kafka writes it.
func (r *StopReplica) AppendTo(dst []byte) []byte {
	begin := len(dst)
	dst = r.StopReplicaRequest.AppendTo(dst)
	if r.Version >= swappedSince {
		b := dst[begin+swapFrom : begin+swapTo]
		kraft := b[4]
		copy(b[1:], b[:4])
		b[0] = kraft
	}
	return dst
}

// ReadFrom reads the request as Kafka writes it.
func (r *StopReplica) ReadFrom(src []byte) error {
	if r.Version >= swappedSince && len(src) >= swapTo {
		src = slices.Clone(src)
		b := src[swapFrom:swapTo]
		kraft := b[0]
		copy(b, b[1:])
		b[4] = kraft
	}
	return r.StopReplicaRequest.ReadFrom(src)
}

// UnsafeReadFrom is ReadFrom: nothing is gained by aliasing so small a request.
func (r *StopReplica) UnsafeReadFrom(src []byte) error { return r.ReadFrom(src) }
