package config

import (
	"maps"
	"slices"
	"strings"
)

// Source says where a described value comes from, with the numbers of DescribeConfigs responses.
type Source int8

// The sources.
const (
	SourceDynamicTopic         Source = 1
	SourceDynamicBroker        Source = 2
	SourceDynamicDefaultBroker Source = 3
	SourceStaticBroker         Source = 4
	SourceDefault              Source = 5
	SourceDynamicBrokerLogger  Source = 6
	SourceGroup                Source = 8
)

// Synonym is a property and value that the described one would fall back to, itself included.
//
// They are the chain in which the value was looked for, strongest first, so that an admin sees what a deletion
// would bring back (KIP-226). librdkafka's and Terraform's clients read, change and write it.
type Synonym struct {
	// Name is the property, often one of the broker.
	Name string
	// Value is its text; nil where it is secret.
	Value *string
	// Source is the layer that has it.
	Source Source
}

// Entry is one property of a resource as DescribeConfigs shows it.
type Entry struct {
	// Name is the property.
	Name string
	// Value is the effective text; nil for null and for secrets.
	Value *string
	// Source is the layer of the effective value.
	Source Source
	// ReadOnly says that the property cannot change while the broker runs.
	ReadOnly bool
	// Sensitive says that the value is secret. A property that is not in the table counts as secret.
	Sensitive bool
	// Type is the property's type, [Unknown] where it is not in the table.
	Type Type
	// Doc is the documentation.
	Doc string
	// Synonyms are the layers that have the property, the effective one first.
	Synonyms []Synonym
}

// filter keeps the entries that were asked for: all of them where names is empty, as in Kafka.
func filter(entries []Entry, names []string) []Entry {
	if len(names) > 0 {
		entries = slices.DeleteFunc(entries, func(e Entry) bool { return !slices.Contains(names, e.Name) })
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries
}

// DescribeTopic are the properties of a topic that has these of its own. What only an older version of Kafka
// knows, and what is meant for tests, is listed where it is set.
func (b *Broker) DescribeTopic(overrides map[string]string, names []string) []Entry {
	var entries []Entry
	for i := range table().topic {
		k := &table().topic[i]
		text, own := overrides[k.Name]
		if !own && !k.shown() {
			continue
		}
		value := b.topicDefault(k)
		var synonyms []Synonym
		if own {
			if parsed, err := looseTopic(*k).Parse(text); err == nil {
				value = parsed
			}
			synonyms = append(synonyms, Synonym{k.Name, value.pointer(), SourceDynamicTopic})
		}
		if len(k.Synonyms) > 0 {
			synonyms = append(synonyms, b.synonyms(k.Synonyms[0], k.Sensitive())...)
		}
		entries = append(entries, entry(k, value, synonyms))
	}
	return filter(append(entries, unknownEntries(overrides, ScopeTopic, SourceDynamicTopic)...), names)
}

// DescribeGroup are the properties of a group that has these of its own.
func (b *Broker) DescribeGroup(overrides map[string]string, names []string) []Entry {
	var entries []Entry
	for i := range table().group {
		k := &table().group[i]
		_, own := overrides[k.Name]
		broker := k.Name // a property without a fallback stands for itself
		if len(k.Synonyms) > 0 {
			broker = k.Synonyms[0]
		}
		if !own && !k.shown() && !b.has(broker) {
			continue
		}
		value := b.groupValue(k.Name, overrides)
		var synonyms []Synonym
		if own {
			synonyms = append(synonyms, Synonym{k.Name, value.pointer(), SourceGroup})
		}
		if len(k.Synonyms) > 0 {
			synonyms = append(synonyms, b.synonyms(broker, false)...)
		} else if fallback := k.fallback(); !fallback.null {
			synonyms = append(synonyms, Synonym{k.Name, fallback.pointer(), SourceDefault})
		}
		entries = append(entries, entry(k, value, synonyms))
	}
	return filter(append(entries, unknownEntries(overrides, ScopeGroup, SourceGroup)...), names)
}

// groupValue is the effective value of a group property.
func (b *Broker) groupValue(name string, overrides map[string]string) Value {
	k := table().groupName[name]
	if text, ok := overrides[name]; ok {
		if value, err := k.Parse(text); err == nil {
			return value
		}
	}
	if len(k.Synonyms) == 0 {
		return k.fallback()
	}
	value := b.values[k.Synonyms[0]]
	if k.Type == String && value.typ == List { // the assignor is the first of the broker's assignors
		return Value{typ: String, null: len(value.list) == 0, text: strings.Join(value.list[:min(1, len(value.list))], "")}
	}
	return value
}

// DescribeBroker are the properties of this broker.
func (b *Broker) DescribeBroker(names []string) []Entry {
	var entries []Entry
	for i := range table().broker {
		if k := &table().broker[i]; k.shown() || b.has(k.Name) {
			e := entry(k, b.values[k.Name], b.synonyms(k.Name, k.Sensitive()))
			e.ReadOnly = k.Dynamic == ReadOnly
			entries = append(entries, e)
		}
	}
	for _, name := range b.otherNames() {
		entries = append(entries, b.otherEntry(name, b.textOf(name)))
	}
	return filter(entries, names)
}

// DescribeBrokerDefault are the dynamic defaults of all brokers, which DescribeConfigs shows for the broker
// without a name.
func (b *Broker) DescribeBrokerDefault(names []string) []Entry {
	var entries []Entry
	for _, name := range slices.Sorted(maps.Keys(b.clusterDefault)) {
		e := b.otherEntry(name, b.clusterDefault[name])
		e.Synonyms = slices.DeleteFunc(e.Synonyms, func(s Synonym) bool { return s.Source != SourceDynamicDefaultBroker })
		e.Source = SourceDynamicDefaultBroker
		entries = append(entries, e)
	}
	return filter(entries, names)
}

// otherEntry describes a broker property by its text, whether the table has it or not.
func (b *Broker) otherEntry(name, text string) Entry {
	k, ok := Lookup(ScopeBroker, name)
	secret := !ok || k.Sensitive()
	e := Entry{Name: name, Sensitive: secret, Type: k.Type, Doc: k.Doc, Synonyms: b.synonyms(name, secret)}
	_, exact := b.values[name]
	e.ReadOnly = !exact || k.Dynamic == ReadOnly
	if !secret {
		e.Value = new(text)
	}
	e.Source = sourceOf(e.Synonyms)
	return e
}

// entry joins what is known about a property of the table.
func entry(k *Key, value Value, synonyms []Synonym) Entry {
	e := Entry{Name: k.Name, Sensitive: k.Sensitive(), Type: k.Type, Doc: k.Doc, Synonyms: synonyms, Source: sourceOf(synonyms)}
	if !e.Sensitive {
		e.Value = value.pointer()
	}
	return e
}

func sourceOf(synonyms []Synonym) Source {
	if len(synonyms) == 0 {
		return SourceDefault
	}
	return synonyms[0].Source
}

// unknownEntries are a resource's own properties that the table does not have: named, but secret.
func unknownEntries(overrides map[string]string, scope Scope, source Source) []Entry {
	var entries []Entry
	for name := range overrides {
		if lookup(scope, name) == nil {
			entries = append(entries, Entry{Name: name, Sensitive: true, Source: source, Synonyms: []Synonym{{name, nil, source}}})
		}
	}
	return entries
}

// synonyms are the layers that have a broker property or another member of its family, the strongest first.
// Those before the first that has the property by its own name are left out, as Kafka does: where nobody has
// set log.retention.ms, the default of log.retention.hours is not shown for it.
func (b *Broker) synonyms(name string, secret bool) []Synonym {
	var all []Synonym
	family := brokerSynonyms(name)
	layer := func(source Source, textOf func(string) (string, bool)) {
		for _, member := range family {
			text, ok := textOf(member)
			if !ok {
				continue
			}
			s := Synonym{Name: member, Source: source}
			if !secret {
				s.Value = &text
			}
			all = append(all, s)
		}
	}
	layer(SourceDynamicBroker, func(n string) (string, bool) { text, ok := b.perBroker[n]; return text, ok })
	layer(SourceDynamicDefaultBroker, func(n string) (string, bool) { text, ok := b.clusterDefault[n]; return text, ok })
	layer(SourceStaticBroker, func(n string) (string, bool) { s, ok := b.static[n]; return s.text, ok })
	layer(SourceDefault, b.defaultText)
	i := slices.IndexFunc(all, func(s Synonym) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return all[i:]
}

// defaultText is the default of a broker property as this broker was started.
func (b *Broker) defaultText(name string) (string, bool) {
	if text, ok := b.implied[name]; ok {
		return text, true
	}
	k := table().brokerName[name]
	if k == nil || k.Default == nil {
		return "", false
	}
	return *k.Default, true
}
