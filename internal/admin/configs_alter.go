package admin

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ConfigOp changes one property of a resource.
type ConfigOp struct {
	Name string
	// Kind is set, delete, append or subtract.
	Kind kmsg.IncrementalAlterConfigOp
	// Value is nil for a deletion.
	Value *string
}

// AlterConfigs changes properties of one resource, all or none of them.
//
// IncrementalAlterConfigs (KIP-339) leaves alone what is not named; AlterConfigs would take everything else
// back to its default, and two admins at once would undo each other's changes.
func (c *Client) AlterConfigs(ctx context.Context, kind kmsg.ConfigResourceType, name string, ops []ConfigOp, validateOnly bool) error {
	r := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r.ValidateOnly = validateOnly
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kind, name
	for _, op := range ops {
		config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		config.Name, config.Op, config.Value = op.Name, op.Kind, op.Value
		resource.Configs = append(resource.Configs, config)
	}
	r.Resources = append(r.Resources, resource)
	response, err := request[*kmsg.IncrementalAlterConfigsResponse](ctx, c, r)
	if err != nil {
		return err
	}
	for _, answer := range response.Resources {
		if err := codeError(answer.ErrorCode, answer.ErrorMessage); err != nil {
			return err
		}
	}
	return nil
}

// CreatePartitions gives topics more partitions, so many in all. The results are in the order of the names.
func (c *Client) CreatePartitions(ctx context.Context, total int32, assignment [][]int32, names []string) ([]Result, error) {
	r := kmsg.NewPtrCreatePartitionsRequest()
	r.TimeoutMillis = int32(c.timeout.Milliseconds())
	for _, name := range names {
		t := kmsg.NewCreatePartitionsRequestTopic()
		t.Topic, t.Count = name, total
		for _, replicas := range assignment {
			a := kmsg.NewCreatePartitionsRequestTopicAssignment()
			a.Replicas = replicas
			t.Assignment = append(t.Assignment, a)
		}
		r.Topics = append(r.Topics, t)
	}
	response, err := request[*kmsg.CreatePartitionsResponse](ctx, c, r)
	if err != nil {
		return nil, err
	}
	outcome := map[string]error{}
	for _, t := range response.Topics {
		outcome[t.Topic] = codeError(t.ErrorCode, t.ErrorMessage)
	}
	return resultsOf(names, outcome), nil
}
