package group

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// DescribeGroups answers DescribeGroups 0 to 6, in the order of the request. Authorized operations (3) are the
// caller's to fill in. Version 4 has instance ids; from 6 on a group that is not there is GROUP_ID_NOT_FOUND
// with a sentence, before that it is Dead (KIP-1043).
func (c *Coordinator) DescribeGroups(ctx context.Context, request *kmsg.DescribeGroupsRequest) *kmsg.DescribeGroupsResponse {
	response := &kmsg.DescribeGroupsResponse{
		Version: request.Version, Groups: make([]kmsg.DescribeGroupsResponseGroup, len(request.Groups)),
	}
	for partition, places := range c.byPartition(request.Groups) {
		err := c.runtime.Read(ctx, partition, func(m *Machine, _ shard.Now) error {
			for _, i := range places {
				response.Groups[i] = m.DescribeGroup(request.Groups[i], request.Version)
			}
			return nil
		})
		if err == nil {
			continue
		}
		for _, i := range places {
			refused := kmsg.NewDescribeGroupsResponseGroup()
			refused.Group, refused.ErrorCode = request.Groups[i], int16(coordinatorCode(err))
			response.Groups[i] = refused
		}
	}
	return response
}

// ListGroups answers ListGroups 0 to 5 with the groups that this broker coordinates: states and a filter of
// them from version 4 on (KIP-518), types and a filter of them from 5 on (KIP-848). While one partition is
// being loaded, the list would be short, so that there is none.
func (c *Coordinator) ListGroups(ctx context.Context, request *kmsg.ListGroupsRequest) *kmsg.ListGroupsResponse {
	response := &kmsg.ListGroupsResponse{Version: request.Version}
	for _, partition := range c.runtime.Led() {
		err := c.runtime.Read(ctx, partition, func(m *Machine, _ shard.Now) error {
			response.Groups = append(response.Groups, m.ListGroups(request.StatesFilter, request.TypesFilter)...)
			return nil
		})
		// A partition that is lost just now is another broker's to list.
		if code := coordinatorCode(err); code != protocol.None && code != protocol.NotCoordinator {
			return &kmsg.ListGroupsResponse{Version: request.Version, ErrorCode: int16(code)}
		}
	}
	return response
}

// DeleteGroups answers DeleteGroups 0 to 3, in the order of the request; from version 3 on each error has a
// sentence.
func (c *Coordinator) DeleteGroups(ctx context.Context, request *kmsg.DeleteGroupsRequest) *kmsg.DeleteGroupsResponse {
	groups := distinct(request.Groups)
	response := &kmsg.DeleteGroupsResponse{Version: request.Version, Groups: make([]kmsg.DeleteGroupsResponseGroup, len(groups))}
	for partition, places := range c.byPartition(groups) {
		ids := make([]string, len(places))
		for n, i := range places {
			ids[n] = groups[i]
		}
		var results []kmsg.DeleteGroupsResponseGroup
		err := c.runtime.Write(ctx, partition, func(m *Machine, _ shard.Now) (decision shard.Decision, err error) {
			results, decision = m.DeleteGroups(ids)
			return decision, nil
		})
		for n, i := range places {
			if err == nil {
				response.Groups[i] = results[n]
				continue
			}
			code := coordinatorCode(err)
			response.Groups[i] = kmsg.DeleteGroupsResponseGroup{Group: ids[n], ErrorCode: int16(code), ErrorMessage: ptr(code.Description())}
		}
	}
	return response
}

// distinct drops repetitions, and keeps the order.
func distinct(names []string) []string {
	var kept []string
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			kept = append(kept, name)
		}
		seen[name] = true
	}
	return kept
}

// OffsetDelete answers OffsetDelete 0. That the topics exist is the caller's to check.
func (c *Coordinator) OffsetDelete(ctx context.Context, request *kmsg.OffsetDeleteRequest) *kmsg.OffsetDeleteResponse {
	if request.Group == "" {
		return &kmsg.OffsetDeleteResponse{Version: request.Version, ErrorCode: int16(protocol.InvalidGroupID)}
	}
	var response *kmsg.OffsetDeleteResponse
	err := c.runtime.Write(ctx, c.PartitionFor(request.Group), func(m *Machine, _ shard.Now) (decision shard.Decision, err error) {
		response, decision, err = m.OffsetDelete(request)
		return decision, err
	})
	if err != nil {
		return &kmsg.OffsetDeleteResponse{Version: request.Version, ErrorCode: int16(coordinatorCode(err))}
	}
	response.Version = request.Version
	return response
}
