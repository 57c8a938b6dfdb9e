package config

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// index finds keys by name. It is made once and never changes.
//
// A key's name is unique within its scope, not beyond: retention.ms is a topic's, log.retention.ms a broker's.
// Pointers into the slices stay good, as the slices never grow again.
type index struct {
	broker, topic, group             []Key
	brokerName, topicName, groupName map[string]*Key
	// families are the broker properties that stand for one value in several units, by their first name.
	families map[string][]string
}

// table is the index of all keys; it is constant.
var table = sync.OnceValue(func() *index {
	t := &index{families: map[string][]string{}}
	t.broker = slices.Concat(metadataKeys, zookeeperKeys, networkKeys, cleanerKeys, logKeys, remoteKeys,
		replicationKeys, groupCoordinatorKeys, shareKeys, transactionKeys, saslKeys, securityKeys, quotaKeys, barnabasKeys)
	slices.SortFunc(t.broker, func(a, b Key) int { return strings.Compare(a.Name, b.Name) })
	t.topic = slices.Clone(topicKeys)
	t.group = slices.Clone(groupKeys)
	t.brokerName = byName(t.broker, ScopeBroker)
	t.topicName = byName(t.topic, ScopeTopic)
	t.groupName = byName(t.group, ScopeGroup)
	for _, k := range t.topic {
		if len(k.Synonyms) > 1 {
			t.families[k.Synonyms[0]] = k.Synonyms
		}
	}
	return t
})

func byName(keys []Key, scope Scope) map[string]*Key {
	m := make(map[string]*Key, len(keys))
	for i := range keys {
		keys[i].Scope = scope
		m[keys[i].Name] = &keys[i]
	}
	return m
}

// BrokerKeys are all broker properties, sorted by name.
func BrokerKeys() []Key { return slices.Clone(table().broker) }

// TopicKeys are all topic properties, in the order in which Kafka checks them.
func TopicKeys() []Key { return slices.Clone(table().topic) }

// GroupKeys are all group properties, sorted by name.
func GroupKeys() []Key { return slices.Clone(table().group) }

// Lookup finds a property. For brokers it also takes a listener's own value of one, such as
// listener.name.internal.ssl.client.auth, and returns the key without the prefix.
func Lookup(scope Scope, name string) (Key, bool) {
	if k := lookup(scope, name); k != nil {
		return *k, true
	}
	return Key{}, false
}

// log.retention.ms                                    the table
// listener.name.internal.ssl.client.auth              ssl.client.auth, of one listener
// listener.name.internal.plain.sasl.jaas.config       sasl.jaas.config, of one mechanism of one listener
func lookup(scope Scope, name string) *Key {
	switch scope {
	case ScopeTopic:
		return table().topicName[name]
	case ScopeGroup:
		return table().groupName[name]
	}
	if k := table().brokerName[name]; k != nil {
		return k
	}
	if base, ok := listenerBase(name); ok {
		return table().brokerName[base]
	}
	return nil
}

// listenerPrefix is listener.name.<listener>. before a property that one listener has for itself.
var listenerPrefix = regexp.MustCompile(`^listener\.name\.[^.]*\.(.*)$`)

// listenerMechanism are the properties that a listener may have for each SASL mechanism, whose name then
// stands before the property: listener.name.internal.scram-sha-256.sasl.jaas.config.
var listenerMechanism = []string{
	"sasl.jaas.config", "sasl.login.callback.handler.class", "sasl.login.class",
	"sasl.server.callback.handler.class", "connections.max.reauth.ms",
}

// listenerBase cuts the listener, and the mechanism where there is one, off a property's name.
func listenerBase(name string) (string, bool) {
	m := listenerPrefix.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	for _, suffix := range listenerMechanism {
		if strings.HasSuffix(m[1], suffix) {
			return suffix, true
		}
	}
	return m[1], true
}

// brokerSynonyms are the names that can give a broker property its value, the strongest first.
func brokerSynonyms(name string) []string {
	for first, family := range table().families {
		// The scheduler's interval is only a default of log.flush.interval.ms, not another name of it.
		if slices.Contains(family, name) && (name == first || first != "log.flush.interval.ms") {
			return family
		}
	}
	if base, ok := listenerBase(name); ok {
		return []string{name, base}
	}
	return []string{name}
}
