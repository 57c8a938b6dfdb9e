package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// OpKind is what IncrementalAlterConfigs does to one property, with the numbers of the request (KIP-339).
type OpKind int8

// The operations.
const (
	OpSet      OpKind = 0
	OpDelete   OpKind = 1
	OpAppend   OpKind = 2
	OpSubtract OpKind = 3
)

// Op changes one property.
//
//	OpSet        the value, whatever was there
//	OpDelete     back to what is inherited; a value is ignored (KAFKA-13490)
//	OpAppend     adds those elements that a list lacks: again is no change
//	OpSubtract   takes elements out of a list; those that are not there are no error
//
// Appending to what is no list is INVALID_CONFIG; two operations on one property in a request are
// INVALID_REQUEST.
type Op struct {
	// Name is the property.
	Name string
	// Kind is the operation.
	Kind OpKind
	// Value is what is set, appended or taken out; OpDelete ignores it.
	Value *string
}

// ApplyOps is what a resource's own properties become by the operations; current stays as it is. It checks
// what the request says, not the values that come out: that is for [Broker.ValidateTopic],
// [Broker.ValidateDynamic] and [Broker.ValidateGroup]. Append and subtract start from the property's own
// value, and where there is none from the default in the table, as Kafka does. AlterConfigs, which replaces
// everything, is a set of every property over nothing.
func ApplyOps(scope Scope, current map[string]string, ops []Op) (map[string]string, error) {
	if err := checkOps(ops); err != nil {
		return nil, err
	}
	next := maps.Clone(current)
	if next == nil {
		next = map[string]string{}
	}
	for _, op := range ops {
		switch op.Kind {
		case OpSet:
			next[op.Name] = *op.Value
		case OpDelete:
			delete(next, op.Name)
		case OpAppend, OpSubtract:
			text, err := changeList(scope, next, op)
			if err != nil {
				return nil, err
			}
			next[op.Name] = text
		default:
			return nil, protocol.Errorf(protocol.InvalidRequest, "Unknown operations type %d", op.Kind)
		}
	}
	return next, nil
}

// checkOps refuses what is wrong with the request itself.
func checkOps(ops []Op) error {
	seen := make(map[string]bool, len(ops))
	var nulls []string
	for _, op := range ops {
		if seen[op.Name] {
			return protocol.Errorf(protocol.InvalidRequest, "Error due to duplicate config keys")
		}
		seen[op.Name] = true
		if op.Value == nil && op.Kind != OpDelete {
			nulls = append(nulls, op.Name)
		}
	}
	if len(nulls) > 0 {
		return protocol.Errorf(protocol.InvalidRequest, "Null value not supported for : %s", strings.Join(nulls, ", "))
	}
	return nil
}

// changeList appends elements that are not there yet, or takes out those that are. Elements are compared as
// they are written, with their spaces.
func changeList(scope Scope, current map[string]string, op Op) (string, error) {
	k := lookup(scope, op.Name)
	if k == nil || k.Type != List {
		return "", notAList(scope, op)
	}
	text, ok := current[op.Name]
	if !ok && k.Default != nil {
		text = *k.Default
	}
	list := javaSplit(text)
	for _, element := range javaSplit(*op.Value) {
		i := slices.Index(list, element)
		switch {
		case op.Kind == OpAppend && i < 0:
			list = append(list, element)
		case op.Kind == OpSubtract && i >= 0:
			list = slices.Delete(list, i, i+1)
		}
	}
	return strings.Join(list, ","), nil
}

func notAList(scope Scope, op Op) error {
	if scope == ScopeBroker {
		verb := map[OpKind]string{OpAppend: "append", OpSubtract: "subtract"}[op.Kind]
		return protocol.Errorf(protocol.InvalidConfig, "Config value %s is not allowed for config key: %s", verb, op.Name)
	}
	verb := map[OpKind]string{OpAppend: "APPEND", OpSubtract: "SUBTRACT"}[op.Kind]
	return protocol.Errorf(protocol.InvalidConfig, "Can't %s to key %s because its type is not LIST.", verb, op.Name)
}

// javaSplit cuts at commas and, as Java's String.split, forgets empty elements at the end.
func javaSplit(text string) []string {
	parts := strings.Split(text, ",")
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return parts
}

// ValidateTopic checks a topic's own properties with Kafka's words and codes, as CreateTopics and the Alter
// requests do: unknown names, then each value, then values against each other and against the broker's.
func (b *Broker) ValidateTopic(overrides map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		if lookup(ScopeTopic, name) == nil {
			return protocol.Errorf(protocol.InvalidConfig, "Unknown topic config name: %s", name)
		}
	}
	values := topicValues{broker: b, own: map[string]Value{}}
	for i := range table().topic {
		k := &table().topic[i]
		text, ok := overrides[k.Name]
		if !ok {
			continue
		}
		value, err := k.Parse(text)
		if err != nil {
			return err
		}
		values.own[k.Name] = value
	}
	minLag, maxLag := values.get("min.compaction.lag.ms").number, values.get("max.compaction.lag.ms").number
	if minLag > maxLag {
		return protocol.Errorf(protocol.InvalidConfig, "conflict topic config setting min.compaction.lag.ms (%d) > max.compaction.lag.ms (%d)", minLag, maxLag)
	}
	if values.get("remote.storage.enable").flag {
		return protocol.Errorf(protocol.InvalidConfig, "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.")
	}
	return nil
}

// ValidateGroup checks a group's own properties with Kafka's words and codes: unknown names, each value, and
// the bounds that the broker sets for groups.
func (b *Broker) ValidateGroup(overrides map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		k := lookup(ScopeGroup, name)
		if k == nil {
			return protocol.Errorf(protocol.InvalidConfig, "Unknown group config name: %s", name)
		}
		value, err := k.Parse(overrides[name])
		if err != nil {
			return err
		}
		if err := b.checkGroupBounds(name, value); err != nil {
			return err
		}
	}
	for _, kind := range []string{"consumer.", "share.", "streams."} {
		heartbeat, session := kind+"heartbeat.interval.ms", kind+"session.timeout.ms"
		if b.groupValue(heartbeat, overrides).number >= b.groupValue(session, overrides).number {
			return protocol.Errorf(protocol.InvalidConfig, "%s must be greater than %s", session, heartbeat)
		}
	}
	return nil
}

// checkGroupBounds holds a value against the broker's minimum and maximum, where there are such properties.
func (b *Broker) checkGroupBounds(name string, value Value) error {
	for _, chain := range ordered {
		i := slices.Index(chain, "group."+name)
		if i < 0 {
			continue
		}
		low, hasLow := b.bound(chain, i-1)
		high, hasHigh := b.bound(chain, i+1)
		switch {
		case hasLow && hasHigh && (value.number < low || value.number > high):
			return protocol.Errorf(protocol.InvalidConfig, "%s must be in the range %d to %d inclusive.", name, low, high)
		case hasHigh && value.number > high:
			return protocol.Errorf(protocol.InvalidConfig, "%s must be less than or equal to %d", name, high)
		case hasLow && value.number < low:
			return protocol.Errorf(protocol.InvalidConfig, "%s must be greater than or equal to %d", name, low)
		}
	}
	if assignors := b.List("group.streams.assignors"); name == "streams.assignor.name" && !slices.Contains(assignors, value.text) {
		return protocol.Errorf(protocol.InvalidConfig, "streams.assignor.name '%s' is not a registered task assignor. Registered assignors are: [%s].", value.text, strings.Join(assignors, ", "))
	}
	if name == "errors.deadletterqueue.topic.name" && strings.HasPrefix(value.text, "__") {
		return protocol.Errorf(protocol.InvalidConfig, "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'")
	}
	return nil
}

func (b *Broker) bound(chain []string, i int) (int64, bool) {
	if i < 0 || i >= len(chain) {
		return 0, false
	}
	return b.Long(chain[i]), true
}
