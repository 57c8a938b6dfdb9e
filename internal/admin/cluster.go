package admin

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Cluster is what any broker says of the whole.
type Cluster struct {
	ID string
	// Controller is -1 where there is none.
	Controller int32
	// Brokers are sorted by id.
	Brokers []Broker
}

// Cluster asks any broker for the cluster, without its topics.
//
// It is a Metadata request for an empty list of topics, which is not the same as none (null), which means all.
func (c *Client) Cluster(ctx context.Context) (Cluster, error) {
	metadata, err := c.metadata(ctx, []string{})
	if err != nil {
		return Cluster{}, err
	}
	return clusterOf(metadata), nil
}

func clusterOf(metadata *kmsg.MetadataResponse) Cluster {
	cluster := Cluster{Controller: metadata.ControllerID}
	if metadata.ClusterID != nil {
		cluster.ID = *metadata.ClusterID
	}
	for _, b := range metadata.Brokers {
		cluster.Brokers = append(cluster.Brokers, Broker{b.NodeID, b.Host, b.Port, b.Rack})
	}
	slices.SortFunc(cluster.Brokers, func(a, b Broker) int { return cmp.Compare(a.ID, b.ID) })
	return cluster
}

// Health is the cluster with all its topics, and what is wrong with them.
type Health struct {
	Cluster
	Topics, Partitions int
	// Leaderless, UnderReplicated and Offline are partitions without a leader, with fewer in-sync replicas
	// than replicas, and with replicas on failed disks or brokers; a partition may be in all of them.
	Leaderless, UnderReplicated, Offline []TopicPartition
}

// OK reports whether nothing is wrong.
func (h Health) OK() bool {
	return h.Controller >= 0 && len(h.Leaderless)+len(h.UnderReplicated)+len(h.Offline) == 0
}

// Health looks at every partition.
//
// One Metadata request, answered from one broker's memory. It may be a moment behind the controller: whoever
// wants to be sure that a trouble stays asks twice.
func (c *Client) Health(ctx context.Context) (Health, error) {
	metadata, err := c.metadata(ctx, nil)
	if err != nil {
		return Health{}, err
	}
	health := Health{Cluster: clusterOf(metadata), Topics: len(metadata.Topics)}
	for i := range metadata.Topics {
		t := topicOf(&metadata.Topics[i])
		for _, p := range t.Partitions {
			at := TopicPartition{t.Name, p.Number}
			health.Partitions++
			if p.Leader < 0 {
				health.Leaderless = append(health.Leaderless, at)
			}
			if len(p.ISR) < len(p.Replicas) {
				health.UnderReplicated = append(health.UnderReplicated, at)
			}
			if len(p.Offline) > 0 {
				health.Offline = append(health.Offline, at)
			}
		}
	}
	for _, list := range [][]TopicPartition{health.Leaderless, health.UnderReplicated, health.Offline} {
		slices.SortFunc(list, TopicPartition.Compare)
	}
	return health, nil
}

// APIVersions are the request kinds that one broker takes.
type APIVersions struct {
	Broker Broker
	// Versions are sorted by key.
	Versions []APIVersion
	// Err says why there are none.
	Err error
}

// APIVersion is one kind of request with the versions that a broker takes.
type APIVersion struct{ Key, Min, Max int16 }

// APIVersions asks every broker what it takes.
func (c *Client) APIVersions(ctx context.Context) ([]APIVersions, error) {
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.limit(ctx)
	defer cancel()
	all := make([]APIVersions, 0, len(cluster.Brokers))
	for _, b := range cluster.Brokers {
		one := APIVersions{Broker: b}
		response, err := c.kafka.Broker(int(b.ID)).Request(ctx, c.apiVersionsRequest())
		if err != nil {
			one.Err = c.Explain(err)
		} else {
			for _, key := range response.(*kmsg.ApiVersionsResponse).ApiKeys {
				one.Versions = append(one.Versions, APIVersion{key.ApiKey, key.MinVersion, key.MaxVersion})
			}
			slices.SortFunc(one.Versions, func(a, b APIVersion) int { return cmp.Compare(a.Key, b.Key) })
		}
		all = append(all, one)
	}
	return all, nil
}

func (c *Client) apiVersionsRequest() *kmsg.ApiVersionsRequest {
	r := kmsg.NewPtrApiVersionsRequest()
	r.ClientSoftwareName, r.ClientSoftwareVersion = "barnabas", c.version
	return r
}

// Unregister forgets a broker that is gone for good, in clusters that keep brokers registered (KRaft); others say
// by their versions that they have no such request, and it returns false.
func (c *Client) Unregister(ctx context.Context, broker int32) (bool, error) {
	r := kmsg.NewPtrUnregisterBrokerRequest()
	r.BrokerID = broker
	all, err := c.APIVersions(ctx)
	if err != nil {
		return false, err
	}
	known := slices.ContainsFunc(all, func(one APIVersions) bool {
		return slices.ContainsFunc(one.Versions, func(v APIVersion) bool { return v.Key == r.Key() })
	})
	if !known {
		return false, nil
	}
	response, err := request[*kmsg.UnregisterBrokerResponse](ctx, c, r)
	if err != nil {
		return true, err
	}
	return true, codeError(response.ErrorCode, response.ErrorMessage)
}
