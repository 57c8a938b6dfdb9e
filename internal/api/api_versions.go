package api

import (
	"regexp"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/server"
)

// softwareName is what a client's name and version may look like (KIP-511).
var softwareName = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

// apiVersions lists what is served (versions 0 to 5).
//
// From version 3 on the client says what software it is; from version 5 on (KIP-1242) which cluster and
// which broker it means, and learns with REBOOTSTRAP_REQUIRED that it has reached another one.
//
//	0  the list                       3  flexible; software name and version; features as tags
//	1  throttle time                  4  features whose minimum is 0 (KAFKA-17011)
//	2  quotas first, then muting      5  cluster and node id (KIP-1242)
//
// The header of the answer is always that of version 0, without tags: a client that does not know yet what we
// speak must be able to read it.
func (a *API) apiVersions(r *Request, q *kmsg.ApiVersionsRequest) *kmsg.ApiVersionsResponse {
	response := respondTo(r, kmsg.NewPtrApiVersionsResponse())
	if r.Version >= 3 {
		if !softwareName.MatchString(q.ClientSoftwareName) || !softwareName.MatchString(q.ClientSoftwareVersion) {
			response.ErrorCode = int16(protocol.InvalidRequest)
			return response
		}
		r.Conn.SetClientSoftware(q.ClientSoftwareName, q.ClientSoftwareVersion)
	}
	if r.Version >= 5 {
		if err := a.checkMeant(q); err != nil {
			response.ErrorCode = int16(protocol.CodeOf(err))
			return response
		}
	}
	for _, route := range a.routes {
		if route != nil && (!route.internal || a.Clustered) {
			key := kmsg.NewApiVersionsResponseApiKey()
			key.ApiKey, key.MinVersion, key.MaxVersion = int16(route.key), route.advertised, route.max
			response.ApiKeys = append(response.ApiKeys, key)
		}
	}
	response.FinalizedFeaturesEpoch = 0
	return response
}

// checkMeant reports whether the client expects another cluster or broker behind this address. It has to
// name both or neither.
func (a *API) checkMeant(q *kmsg.ApiVersionsRequest) error {
	switch {
	case (q.ClusterID == nil) != (q.NodeID == -1):
		return protocol.InvalidRequest
	case q.ClusterID != nil && (*q.ClusterID != a.ClusterID || protocol.BrokerID(q.NodeID) != a.Self):
		return protocol.RebootstrapRequired
	}
	return nil
}

// apiVersionsTooNew answers a version that is not served in the form of version 0, with the range of
// ApiVersions itself, so that the client can ask again (KIP-511).
//
// Exactly one entry, and the connection stays: franz-go and Java ask again on it, at our highest version.
func (a *API) apiVersionsTooNew(r *Request) server.Reply {
	response := kmsg.NewPtrApiVersionsResponse()
	response.ErrorCode = int16(protocol.UnsupportedVersion)
	key := kmsg.NewApiVersionsResponseApiKey()
	route := a.routes.find(int16(kmsg.ApiVersions))
	key.ApiKey, key.MinVersion, key.MaxVersion = int16(route.key), route.min, route.max
	response.ApiKeys = append(response.ApiKeys, key)
	old := *r
	old.Version = 0
	return server.Reply{Response: encode(&old, response)}
}
