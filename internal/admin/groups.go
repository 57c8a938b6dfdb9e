package admin

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// GroupListing is one group as its coordinator lists it.
type GroupListing struct {
	Name string
	// ProtocolType is "consumer" for consumers, "connect" for Connect, and empty for plain offsets.
	ProtocolType string
	// State is as Kafka writes it, such as Stable; empty before Kafka 2.6.
	State string
	// Type is classic, consumer, share or streams; empty before Kafka 3.8.
	Type        string
	Coordinator int32
}

// GroupFilter restricts a listing; empty lists restrict nothing.
type GroupFilter struct{ States, Types []string }

// Groups lists the groups of all coordinators, sorted by name.
func (c *Client) Groups(ctx context.Context, filter GroupFilter) ([]GroupListing, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	r := kmsg.NewPtrListGroupsRequest()
	r.StatesFilter, r.TypesFilter = filter.States, filter.Types
	var groups []GroupListing
	for _, shard := range c.kafka.RequestSharded(ctx, r) {
		if shard.Err != nil {
			return nil, c.Explain(shard.Err)
		}
		response := shard.Resp.(*kmsg.ListGroupsResponse)
		if err := codeError(response.ErrorCode, nil); err != nil {
			return nil, err
		}
		for _, g := range response.Groups {
			groups = append(groups, GroupListing{g.Group, g.ProtocolType, g.GroupState, g.GroupType, shard.Meta.NodeID})
		}
	}
	slices.SortFunc(groups, func(a, b GroupListing) int { return cmp.Compare(a.Name, b.Name) })
	return groups, nil
}

// Broker is one broker as others see it.
type Broker struct {
	ID   int32
	Host string
	Port int32
	// Rack is nil where the broker has none.
	Rack *string
}

// Address is host:port.
func (b Broker) Address() string { return net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))) }

// Group is one group with its members.
type Group struct {
	Name string
	// Type is classic or consumer (KIP-848).
	Type string
	// State is Dead where there is no such group.
	State        string
	ProtocolType string
	Assignor     string
	// Epoch and AssignmentEpoch are -1 for classic groups.
	Epoch, AssignmentEpoch int32
	Coordinator            Broker
	Members                []Member
	// Err is GROUP_ID_NOT_FOUND where there is no such group and the broker says so.
	Err error
}

// Member is one member of a group.
type Member struct {
	ID string
	// InstanceID is nil for dynamic members.
	InstanceID *string
	ClientID   string
	// Host is as the coordinator writes it: /127.0.0.1.
	Host string
	// Assigned are the partitions that it has, Target those that it is to have, which only the consumer
	// protocol tells.
	Assigned, Target []TopicPartition
	// Epoch is -1 in classic groups.
	Epoch int32
}

// DescribeGroups are the groups in the order of their names.
//
//	DescribeGroups          knows classic groups; from version 6 on GROUP_ID_NOT_FOUND for others
//	ConsumerGroupDescribe   is asked about those, where there are any (KIP-848)
//
// Share and streams groups stay not found.
func (c *Client) DescribeGroups(ctx context.Context, names ...string) ([]Group, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	// The request for classic groups is asked first, as every broker has it and most groups are classic.
	found, err := c.classicGroups(ctx, names)
	if err != nil {
		return nil, err
	}
	var others []string
	for _, name := range names {
		if errors.Is(found[name].Err, kerr.GroupIDNotFound) {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		c.consumerGroups(ctx, others, found)
	}
	groups := make([]Group, 0, len(names))
	for _, name := range names {
		groups = append(groups, found[name])
	}
	return groups, nil
}

// classicGroups describes groups by the request that every broker has.
func (c *Client) classicGroups(ctx context.Context, names []string) (map[string]Group, error) {
	r := kmsg.NewPtrDescribeGroupsRequest()
	r.Groups = names
	found := map[string]Group{}
	for _, shard := range c.kafka.RequestSharded(ctx, r) {
		if shard.Err != nil {
			return nil, c.Explain(shard.Err)
		}
		for _, g := range shard.Resp.(*kmsg.DescribeGroupsResponse).Groups {
			group := Group{
				Name: g.Group, Type: "classic", State: g.State, ProtocolType: g.ProtocolType, Assignor: g.Protocol,
				Epoch: -1, AssignmentEpoch: -1, Coordinator: brokerOf(shard.Meta), Err: codeError(g.ErrorCode, g.ErrorMessage),
			}
			for _, m := range g.Members {
				group.Members = append(group.Members, Member{
					ID: m.MemberID, InstanceID: m.InstanceID, ClientID: m.ClientID, Host: m.ClientHost, Epoch: -1,
					Assigned: classicAssignment(g.ProtocolType, m.MemberAssignment),
				})
			}
			found[g.Group] = group
		}
	}
	return found, nil
}

func brokerOf(b kgo.BrokerMetadata) Broker {
	return Broker{ID: b.NodeID, Host: b.Host, Port: b.Port, Rack: b.Rack}
}

// classicAssignment is what a member's opaque bytes assign, where they are a consumer's.
func classicAssignment(protocolType string, raw []byte) []TopicPartition {
	if protocolType != "consumer" || len(raw) == 0 {
		return nil
	}
	var assignment kmsg.ConsumerMemberAssignment
	if assignment.ReadFrom(raw) != nil {
		return nil
	}
	var assigned []TopicPartition
	for _, t := range assignment.Topics {
		for _, p := range t.Partitions {
			assigned = append(assigned, TopicPartition{t.Topic, p})
		}
	}
	slices.SortFunc(assigned, TopicPartition.Compare)
	return assigned
}

// consumerGroups describes groups of the consumer protocol (KIP-848) that the classic request does not
// know. A broker without that protocol leaves the classic answer.
func (c *Client) consumerGroups(ctx context.Context, names []string, found map[string]Group) {
	r := kmsg.NewPtrConsumerGroupDescribeRequest()
	r.Groups = names
	for _, shard := range c.kafka.RequestSharded(ctx, r) {
		if shard.Err != nil {
			continue
		}
		for i := range shard.Resp.(*kmsg.ConsumerGroupDescribeResponse).Groups {
			g := &shard.Resp.(*kmsg.ConsumerGroupDescribeResponse).Groups[i]
			if g.ErrorCode == kerr.GroupIDNotFound.Code {
				continue
			}
			found[g.Group] = consumerGroup(g, brokerOf(shard.Meta))
		}
	}
}

func consumerGroup(g *kmsg.ConsumerGroupDescribeResponseGroup, coordinator Broker) Group {
	group := Group{
		Name: g.Group, Type: "consumer", State: g.State, ProtocolType: "consumer", Assignor: g.AssignorName,
		Epoch: g.Epoch, AssignmentEpoch: g.AssignmentEpoch, Coordinator: coordinator, Err: codeError(g.ErrorCode, g.ErrorMessage),
	}
	for i := range g.Members {
		m := &g.Members[i]
		group.Members = append(group.Members, Member{
			ID: m.MemberID, InstanceID: m.InstanceID, ClientID: m.ClientID, Host: m.ClientHost, Epoch: m.MemberEpoch,
			Assigned: assignmentOf(m.Assignment.TopicPartitions), Target: assignmentOf(m.TargetAssignment.TopicPartitions),
		})
	}
	return group
}

func assignmentOf(topics []kmsg.AssignmentTopicPartition) []TopicPartition {
	var assigned []TopicPartition
	for _, t := range topics {
		for _, p := range t.Partitions {
			assigned = append(assigned, TopicPartition{t.Topic, p})
		}
	}
	slices.SortFunc(assigned, TopicPartition.Compare)
	return assigned
}
