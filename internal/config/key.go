package config

import (
	"slices"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Type is the type of a property, with the numbers that DescribeConfigs responses carry (version 3 and up).
type Type int8

// The types of Kafka's ConfigDef. Unknown is the type of a property that is not in the table.
const (
	Unknown  Type = 0
	Boolean  Type = 1
	String   Type = 2
	Int      Type = 3
	Short    Type = 4
	Long     Type = 5
	Double   Type = 6
	List     Type = 7
	Class    Type = 8
	Password Type = 9
)

// String is Kafka's name of the type.
func (t Type) String() string {
	names := [...]string{"UNKNOWN", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"}
	if int(t) >= len(names) || t < 0 {
		return names[Unknown]
	}
	return names[t]
}

// Dynamic says whether a broker property can change while the broker runs, and for whom.
type Dynamic int8

// The update modes of broker properties.
const (
	// ReadOnly properties change with a restart.
	ReadOnly Dynamic = iota
	// PerBroker properties may be set for one broker only.
	PerBroker
	// ClusterWide properties may be set for one broker or as the default of all.
	ClusterWide
)

// String is the name that Kafka's documentation uses.
func (d Dynamic) String() string { return [...]string{"read-only", "per-broker", "cluster-wide"}[d] }

// Scope says what a property belongs to.
type Scope int8

// The scopes that have properties.
const (
	ScopeBroker Scope = iota
	ScopeTopic
	ScopeGroup
)

// Key is one property of the table.
//
// Since and Until make one table of two versions of Kafka: a key of either loads, and DescribeConfigs lists a
// key that has an Until only where somebody has set it, as a broker of 4.4 would not know it.
type Key struct {
	// Name is Kafka's name.
	Name string
	// Type decides how text is read.
	Type Type
	// Default is the text of the default; nil where there is none.
	Default *string
	// Rule restricts the values further than the type does.
	Rule Rule
	// Dynamic is the update mode of a broker property. Topic and group properties always change live.
	Dynamic Dynamic
	// Scope says what the property belongs to.
	Scope Scope
	// Internal marks properties that Kafka keeps for its own tests: described only where they are set.
	Internal bool
	// Since is the first major version of Kafka that knows the key; empty where 3.9 knows it already. A key
	// of ours has "Barnabas".
	Since string
	// Until is the last major version of Kafka that knows the key; empty where 4.4 still does.
	Until string
	// Synonyms are the broker properties that a topic or group property falls back to, in order.
	Synonyms []string
	// Doc is one sentence or two about what the property does.
	Doc string
}

// Sensitive reports whether the value is a secret, which is never shown.
func (k Key) Sensitive() bool { return k.Type == Password }

// shown reports whether DescribeConfigs lists the key although nobody has set it.
func (k Key) shown() bool { return !k.Internal && k.Until == "" }

// Parse reads and checks text as Kafka's ConfigDef does. The error is an INVALID_CONFIG that names the
// property, the value and what is wrong with it.
func (k Key) Parse(text string) (Value, error) {
	value, err := k.read(text)
	if err != nil {
		return Value{}, err
	}
	if k.Scope == ScopeTopic && k.Type == List {
		value.list = distinct(value.list) // a broker's list refuses repetitions, a topic's forgets them
	}
	return value, k.Rule.check(k.Name, value)
}

func distinct(list []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(s string) bool {
		again := seen[s]
		seen[s] = true
		return again
	})
}

// fallback is the parsed default.
func (k Key) fallback() Value {
	if k.Default == nil {
		return Value{typ: k.Type, null: true}
	}
	value, err := k.read(*k.Default)
	if err != nil {
		panic("BUG: default of " + k.Name + ": " + err.Error())
	}
	return value
}

// invalid is Kafka's ConfigException as an error for clients and for the start.
func invalid(name, value, reason string) error {
	return protocol.Errorf(protocol.InvalidConfig, "Invalid value %s for configuration %s: %s", value, name, reason)
}
