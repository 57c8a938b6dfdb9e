package api

import (
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// listConfigResources lists what has properties (versions 0 and 1). Version 0 only knows client metrics
// subscriptions, of which there are none.
//
// Version 0 went by the name of ListClientMetricsResources (KIP-714).
func (a *API) listConfigResources(r *Request, q *kmsg.ListConfigResourcesRequest) *kmsg.ListConfigResourcesResponse {
	response := respondTo(r, kmsg.NewPtrListConfigResourcesResponse())
	if r.Version == 0 {
		return response
	}
	known := []int8{topicResource, brokerResource, brokerLoggerResource, clientMetricsResource, groupResource}
	kinds := q.ResourceTypes
	if len(kinds) == 0 {
		kinds = known
	}
	for _, kind := range kinds {
		if !slices.Contains(known, kind) {
			response.ErrorCode, response.ConfigResources = int16(protocol.UnsupportedVersion), nil
			return response
		}
		for _, name := range a.resourcesOf(kind) {
			resource := kmsg.NewListConfigResourcesResponseConfigResource()
			resource.Type, resource.Name = kind, name
			response.ConfigResources = append(response.ConfigResources, resource)
		}
	}
	return response
}

// resourcesOf lists the names of one kind of resources that have properties. Topics and brokers always have
// some, by default; groups only those that somebody has set.
func (a *API) resourcesOf(kind int8) []string {
	switch kind {
	case topicResource:
		return a.View.Image().Topics()
	case brokerResource:
		var names []string
		for _, b := range a.View.Image().Brokers() {
			names = append(names, strconv.Itoa(int(b.ID)))
		}
		return names
	case brokerLoggerResource:
		return []string{strconv.Itoa(int(a.Self))}
	case groupResource:
		return a.View.Configured(metadata.GroupEntities)
	}
	return nil
}
