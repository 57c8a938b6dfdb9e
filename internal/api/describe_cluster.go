package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// brokerEndpoints is the only type of endpoints that there is: the controller has no listener of its own.
const brokerEndpoints = 1

// describeCluster tells of the brokers (versions 0 to 2; endpoint types from 1 on, fenced brokers in 2, of
// which there are none: a broker that is not registered is not in the image). As in Metadata, each broker is
// shown by the address of the client's own listener.
func (a *API) describeCluster(r *Request, q *kmsg.DescribeClusterRequest) *kmsg.DescribeClusterResponse {
	response := respondTo(r, kmsg.NewPtrDescribeClusterResponse())
	response.EndpointType = brokerEndpoints
	if r.Version >= 1 && q.EndpointType != brokerEndpoints {
		err := protocol.Errorf(protocol.MismatchedEndpointType, "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER")
		if q.EndpointType != 2 {
			err = protocol.Errorf(protocol.UnsupportedEndpointType, "Unsupported endpoint type %d", q.EndpointType)
		}
		response.ErrorCode, response.ErrorMessage = int16(protocol.CodeOf(err)), protocol.MessageOf(err)
		return response
	}
	image := a.View.Image()
	response.ClusterID, response.ControllerID = image.ClusterID, int32(image.Controller)
	response.ClusterAuthorizedOperations = operations(q.IncludeClusterAuthorizedOperations, clusterOperations)
	for _, b := range image.Brokers() {
		if e, ok := b.Endpoint(r.Conn.Listener); ok {
			broker := kmsg.NewDescribeClusterResponseBroker()
			broker.NodeID, broker.Host, broker.Port, broker.Rack = int32(b.ID), e.Host, e.Port, b.Rack
			response.Brokers = append(response.Brokers, broker)
		}
	}
	return response
}
