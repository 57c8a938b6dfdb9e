package api

import (
	"bytes"
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/server"
)

// handler is the first phase of a request of one API key.
type handler func(a *API, ctx context.Context, r *Request, body []byte) server.Reply

// route is one row of the table of API keys.
//
// Ranges reach up to those of Kafka 4.4, and down to those of 3.9 but for what would need older message formats or
// offsets in ZooKeeper: clients of both are served at once. A version is raised for all keys that name topics by id
// together: clients that see ids in one and not in another fail in the middle (franz-go 1.21 did).
type route struct {
	key kmsg.Key
	// min and max are the versions that are served.
	min, max int16
	// advertised is the lowest version that ApiVersions lists, where it differs from min.
	advertised int16
	// internal APIs are for brokers: they are answered on the broker's own connection and, in a cluster, on the
	// listener that brokers use among each other.
	internal bool
	// forwarded APIs are answered by the controller only, also inside an Envelope.
	forwarded bool
	handle    handler
}

func (r *route) serves(version int16) bool { return version >= r.min && version <= r.max }

// routes finds the route of a key by its number.
type routes []*route

func (rs routes) find(key int16) *route {
	if key < 0 || int(key) >= len(rs) {
		return nil
	}
	return rs[key]
}

// newRoutes is the table of API keys: what is not in it does not exist here.
func newRoutes() routes {
	var rs routes
	for _, r := range table() {
		for int(r.key) >= len(rs) {
			rs = append(rs, nil)
		}
		rs[r.key] = &r
	}
	return rs
}

// A key that is not here is not listed, and closes the connection. Nothing stands here that answers without
// doing the thing.
func table() []route {
	return []route{
		// Kafka advertises Produce from 0 on and refuses 0 to 2: librdkafka takes the number for whether
		// compression is supported.
		{key: kmsg.Produce, min: 3, max: 13, advertised: 0, handle: (*API).produce},
		{key: kmsg.Fetch, min: 4, max: 18, advertised: 4, handle: (*API).fetch},
		served(kmsg.ListOffsets, 1, 11, now((*API).listOffsets)),
		served(kmsg.Metadata, 0, 13, (*API).metadata),
		served(kmsg.OffsetCommit, 2, 10, begun((*API).offsetCommit)),
		served(kmsg.OffsetFetch, 1, 10, later((*API).offsetFetch)),
		served(kmsg.FindCoordinator, 0, 6, later((*API).findCoordinator)),
		served(kmsg.JoinGroup, 0, 9, begun((*API).joinGroup)),
		served(kmsg.Heartbeat, 0, 4, begun((*API).heartbeat)),
		served(kmsg.LeaveGroup, 0, 5, begun((*API).leaveGroup)),
		served(kmsg.SyncGroup, 0, 5, begun((*API).syncGroup)),
		served(kmsg.DescribeGroups, 0, 6, later((*API).describeGroups)),
		served(kmsg.ListGroups, 0, 5, later((*API).listGroups)),
		served(kmsg.ApiVersions, 0, 5, now((*API).apiVersions)),
		forwarded(kmsg.CreateTopics, 0, 7, later((*API).createTopics)),
		forwarded(kmsg.DeleteTopics, 0, 6, later((*API).deleteTopics)),
		served(kmsg.DeleteRecords, 0, 2, later((*API).deleteRecords)),
		served(kmsg.InitProducerID, 0, 5, later((*API).initProducerID)),
		served(kmsg.OffsetForLeaderEpoch, 0, 4, now((*API).offsetForLeaderEpoch)),
		served(kmsg.DescribeConfigs, 0, 4, now((*API).describeConfigs)),
		forwarded(kmsg.AlterConfigs, 0, 2, later((*API).alterConfigs)),
		served(kmsg.AlterReplicaLogDirs, 0, 2, later((*API).alterReplicaLogDirs)),
		served(kmsg.DescribeLogDirs, 0, 5, now((*API).describeLogDirs)),
		forwarded(kmsg.ElectLeaders, 0, 2, later((*API).electLeaders)),
		forwarded(kmsg.IncrementalAlterConfigs, 0, 1, later((*API).incrementalAlterConfigs)),
		served(kmsg.ListConfigResources, 0, 1, now((*API).listConfigResources)),
		forwarded(kmsg.AlterPartitionAssignments, 0, 1, later((*API).alterPartitionReassignments)),
		forwarded(kmsg.ListPartitionReassignments, 0, 0, later((*API).listPartitionReassignments)),
		forwarded(kmsg.CreatePartitions, 0, 3, later((*API).createPartitions)),
		served(kmsg.DeleteGroups, 0, 3, later((*API).deleteGroups)),
		served(kmsg.OffsetDelete, 0, 0, later((*API).offsetDelete)),
		served(kmsg.DescribeCluster, 0, 2, now((*API).describeCluster)),
		served(kmsg.DescribeProducers, 0, 0, now((*API).describeProducers)),
		served(kmsg.DescribeTopicPartitions, 0, 0, now((*API).describeTopicPartitions)),
		between(kmsg.LeaderAndISR, 7, now((*API).leaderAndISR)),
		between(kmsg.StopReplica, 4, now((*API).stopReplica)),
		between(kmsg.UpdateMetadata, 8, now((*API).updateMetadata)),
		between(kmsg.ControlledShutdown, 3, later((*API).controlledShutdown)),
		between(kmsg.AlterPartition, 3, later((*API).alterPartition)),
		between(kmsg.Envelope, 0, begun((*API).envelope)),
		between(kmsg.AllocateProducerIDs, 0, later((*API).allocateProducerIDs)),
	}
}

// served is a row without exceptions.
func served(key kmsg.Key, low, high int16, h handler) route {
	return route{key: key, min: low, max: high, advertised: low, handle: h}
}

// forwarded is a row for what only the controller answers.
func forwarded(key kmsg.Key, low, high int16, h handler) route {
	return route{key: key, min: low, max: high, advertised: low, forwarded: true, handle: h}
}

// between is a row for what brokers ask each other, from version 0 on.
func between(key kmsg.Key, high int16, h handler) route {
	return route{key: key, max: high, internal: true, handle: h}
}

// decodable is a pointer to one of kmsg's request types.
type decodable[Q any] interface {
	*Q
	kmsg.Request
}

// now makes a handler of a function that answers at once.
func now[Q any, P decodable[Q], R kmsg.Response](f func(*API, *Request, P) R) handler {
	return func(a *API, _ context.Context, r *Request, body []byte) server.Reply {
		q, err := decode[Q, P](r, body)
		if err != nil {
			return a.malformed(r, err)
		}
		return server.Reply{Response: encode(r, f(a, r, q))}
	}
}

// later makes a handler of a function that may wait. The connection's next request begins behind it. The
// body is copied, since the functions keep parts of it, such as the metadata of group members.
func later[Q any, P decodable[Q], R kmsg.Response](f func(*API, context.Context, *Request, P) R) handler {
	return func(a *API, _ context.Context, r *Request, body []byte) server.Reply {
		q, err := decode[Q, P](r, bytes.Clone(body))
		if err != nil {
			return a.malformed(r, err)
		}
		return server.Reply{Hold: true, Wait: func(ctx context.Context) (response *server.Response) {
			defer a.recovered(r, &response)
			return encode(r, f(a, ctx, r, q))
		}}
	}
}

// begun makes a handler of a function that takes the request's place in the order of the connection and
// returns the part that waits. Requests behind it begin while it waits, so that its end is noticed where the
// peer goes away.
func begun[Q any, P decodable[Q], R kmsg.Response](f func(*API, context.Context, *Request, P) func(context.Context) R) handler {
	return func(a *API, ctx context.Context, r *Request, body []byte) server.Reply {
		q, err := decode[Q, P](r, bytes.Clone(body))
		if err != nil {
			return a.malformed(r, err)
		}
		wait := f(a, ctx, r, q)
		return server.Reply{Wait: func(ctx context.Context) (response *server.Response) {
			defer a.recovered(r, &response)
			return encode(r, wait(ctx))
		}}
	}
}

func decode[Q any, P decodable[Q]](r *Request, body []byte) (P, error) {
	q := P(new(Q))
	q.SetVersion(r.Version)
	return q, q.ReadFrom(body)
}

func (a *API) malformed(r *Request, err error) server.Reply {
	return a.refuse(r.Conn, "a request does not decode", "api", kmsg.NameForKey(r.Key), "version", r.Version, "error", err)
}
