package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/peer"
)

// leaderAndISR, stopReplica and updateMetadata take the controller's pushes, in its epoch and its order.
// Where brokers share a store they come over the inter-broker listener, otherwise over the broker's connection
// to itself only.

func (a *API) leaderAndISR(_ *Request, q *kmsg.LeaderAndISRRequest) *kmsg.LeaderAndISRResponse {
	return a.View.LeaderAndISR(q)
}

func (a *API) stopReplica(_ *Request, q *peer.StopReplica) *kmsg.StopReplicaResponse {
	return a.View.StopReplica(q)
}

func (a *API) updateMetadata(_ *Request, q *kmsg.UpdateMetadataRequest) *kmsg.UpdateMetadataResponse {
	return a.View.UpdateMetadata(q)
}
