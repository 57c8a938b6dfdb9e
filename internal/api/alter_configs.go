package api

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// alteration is what a request wants of one resource.
//
// Both requests become one of these, so that there is one way in which properties change: checked as a whole,
// written, and awaited in this broker's image.
type alteration struct {
	kind    int8
	name    string
	ops     []config.Op
	replace bool // AlterConfigs: what is not named goes
}

// alterConfigs replaces all properties that were set on a resource (versions 0 to 2).
//
// It is the older of the two, and dangerous: a client that reads, changes one and writes back takes all others
// to their defaults that it did not read. Old tools (kafka-configs before 2.3) do just that.
func (a *API) alterConfigs(ctx context.Context, r *Request, q *kmsg.AlterConfigsRequest) *kmsg.AlterConfigsResponse {
	response := respondTo(r, kmsg.NewPtrAlterConfigsResponse())
	if answer, ok := a.forward(ctx, r, q, a.Config().Duration("request.timeout.ms")).(*kmsg.AlterConfigsResponse); ok {
		for i := range answer.Resources {
			one := &answer.Resources[i]
			a.awaitConfig(ctx, int8(one.ResourceType), one.ResourceName, q.ValidateOnly, &one.ErrorCode)
		}
		return answer
	}
	wanted := make([]alteration, len(q.Resources))
	for i, resource := range q.Resources {
		wanted[i] = alteration{kind: int8(resource.ResourceType), name: resource.ResourceName, replace: true}
		for _, c := range resource.Configs {
			wanted[i].ops = append(wanted[i].ops, config.Op{Name: c.Name, Kind: config.OpSet, Value: c.Value})
		}
	}
	for i, err := range a.alterAll(ctx, r, wanted, q.ValidateOnly) {
		resource := kmsg.NewAlterConfigsResponseResource()
		resource.ResourceType, resource.ResourceName = q.Resources[i].ResourceType, q.Resources[i].ResourceName
		resource.ErrorCode, resource.ErrorMessage = int16(protocol.CodeOf(err)), protocol.MessageOf(err)
		response.Resources = append(response.Resources, resource)
	}
	return response
}

// incrementalAlterConfigs changes single properties of a resource (versions 0 and 1, KIP-339).
func (a *API) incrementalAlterConfigs(ctx context.Context, r *Request, q *kmsg.IncrementalAlterConfigsRequest) *kmsg.IncrementalAlterConfigsResponse {
	response := respondTo(r, kmsg.NewPtrIncrementalAlterConfigsResponse())
	if answer, ok := a.forward(ctx, r, q, a.Config().Duration("request.timeout.ms")).(*kmsg.IncrementalAlterConfigsResponse); ok {
		for i := range answer.Resources {
			one := &answer.Resources[i]
			a.awaitConfig(ctx, int8(one.ResourceType), one.ResourceName, q.ValidateOnly, &one.ErrorCode)
		}
		return answer
	}
	wanted := make([]alteration, len(q.Resources))
	for i, resource := range q.Resources {
		wanted[i] = alteration{kind: int8(resource.ResourceType), name: resource.ResourceName}
		for _, c := range resource.Configs {
			wanted[i].ops = append(wanted[i].ops, config.Op{Name: c.Name, Kind: config.OpKind(c.Op), Value: c.Value})
		}
	}
	for i, err := range a.alterAll(ctx, r, wanted, q.ValidateOnly) {
		resource := kmsg.NewIncrementalAlterConfigsResponseResource()
		resource.ResourceType, resource.ResourceName = q.Resources[i].ResourceType, q.Resources[i].ResourceName
		resource.ErrorCode, resource.ErrorMessage = int16(protocol.CodeOf(err)), protocol.MessageOf(err)
		response.Resources = append(response.Resources, resource)
	}
	return response
}

// awaitConfig reads what the controller has written, so that this broker's image shows it.
func (a *API) awaitConfig(ctx context.Context, kind int8, name string, validateOnly bool, code *int16) {
	entity, err := a.entityOf(kind, name)
	if *code != 0 || validateOnly || err != nil {
		return
	}
	if err := a.View.Refresh(ctx, entity); err != nil {
		*code = int16(protocol.CodeOf(err))
	}
}

// alterAll changes each resource by itself: one that fails does not keep the others from it. Changes are
// answered when this broker's image shows them.
func (a *API) alterAll(ctx context.Context, r *Request, wanted []alteration, validateOnly bool) []error {
	errs := make([]error, len(wanted))
	var changes []controller.ConfigChange
	var places []int
	for i, w := range wanted {
		entity, err := a.entityOf(w.kind, w.name)
		if id, ok := numberOf(w.name); r.forwarded && w.kind == brokerResource && ok {
			entity, err = metadata.BrokerEntity(id), nil // that of the broker which sends the request on
		}
		if err != nil {
			errs[i] = err
			continue
		}
		changes = append(changes, controller.ConfigChange{Entity: entity, Ops: w.ops, Replace: w.replace})
		places = append(places, i)
	}
	for i, err := range a.Controller.AlterConfigs(ctx, changes, validateOnly) {
		if err == nil && !validateOnly {
			err = a.View.Refresh(ctx, changes[i].Entity)
		}
		errs[places[i]] = err
	}
	return errs
}

// numberOf reads a broker's id.
func numberOf(name string) (protocol.BrokerID, bool) {
	n, err := strconv.ParseInt(name, 10, 32)
	return protocol.BrokerID(n), err == nil && n >= 0
}
