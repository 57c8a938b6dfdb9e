package config

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Origin says which layer a value comes from, the weakest first.
type Origin int8

// The origins of a broker property's effective value.
const (
	OriginDefault Origin = iota
	OriginFile
	OriginEnvironment
	OriginFlag
	OriginDynamicDefault
	OriginDynamicBroker
)

// String is the word that the command line shows.
func (o Origin) String() string {
	return [...]string{"default", "file", "environment", "flag", "dynamic default", "dynamic broker"}[o]
}

// NoLimit is the duration that stands for a negative number of milliseconds: there is no limit.
const NoLimit time.Duration = -1

// setting is a text with the layer that it came from.
type setting struct {
	text   string
	origin Origin
}

// Broker is the effective configuration of one broker: what it was started with, and over it what the store
// holds for it. It never changes and may be shared.
//
//	perBroker, clusterDefault   the store, changes while the broker runs (KIP-226)
//	static                      what it was started with
//	implied                     what follows from how it was started
//	table                       Kafka's defaults
//
// values is computed once from these, and a change makes a new Broker: readers need no lock, and see all of a
// change or nothing of it. Who keeps a Broker keeps its values; to see changes, ask for the current one.
type Broker struct {
	static map[string]setting // what was set at the start, known keys and others
	// implied are defaults that follow from how the broker was started; they stand before the table's.
	implied                   map[string]string
	perBroker, clusterDefault map[string]string // the valid entries of the store
	values                    map[string]Value  // every key of the table, effective
}

// Default is the configuration of a broker that was started without any.
func Default() *Broker {
	b, _, err := Load(LoadOptions{})
	if err != nil {
		panic("BUG: the defaults do not load: " + err.Error())
	}
	return b
}

// evaluate fills values. A value that does not parse leaves the next weaker one.
func (b *Broker) evaluate() error {
	var faults []error
	b.values = make(map[string]Value, len(table().broker))
	for i := range table().broker {
		k := &table().broker[i]
		value := k.fallback()
		if text, ok := b.implied[k.Name]; ok {
			value, _ = k.Parse(text)
		}
		static := textOf(b.static, k.Name)
		static.ok = static.ok && !b.outdone(k.Name)
		for _, layer := range []layered{static, found(b.clusterDefault, k.Name), found(b.perBroker, k.Name)} {
			if !layer.ok {
				continue
			}
			parsed, err := k.Parse(layer.text)
			if err != nil {
				faults = append(faults, err)
				continue
			}
			value = parsed
		}
		b.values[k.Name] = value
	}
	return errors.Join(faults...)
}

// outdone reports whether the store has another member of the property's family: what the broker was started
// with then counts for none of them.
//
// Without this log.retention.ms from the file would beat log.retention.hours that an admin has just set.
func (b *Broker) outdone(name string) bool {
	for _, family := range table().families {
		if !slices.Contains(family, name) {
			continue
		}
		for _, member := range family {
			_, perBroker := b.perBroker[member]
			_, clusterDefault := b.clusterDefault[member]
			if perBroker || clusterDefault {
				return true
			}
		}
	}
	return false
}

// layered is the text of one layer, where it has one.
type layered struct {
	text string
	ok   bool
}

func textOf(m map[string]setting, name string) layered {
	s, ok := m[name]
	return layered{s.text, ok}
}

func found(m map[string]string, name string) layered {
	s, ok := m[name]
	return layered{s, ok}
}

// value is the effective value of a property of the table; asking for any other is a bug.
func (b *Broker) value(name string, types ...Type) Value {
	v, ok := b.values[name]
	if !ok || !slices.Contains(types, v.typ) {
		panic("BUG: config: " + name + " is no broker property of that type")
	}
	return v
}

// Bool is the value of a BOOLEAN property.
func (b *Broker) Bool(name string) bool { return b.value(name, Boolean).flag }

// Int is the value of an INT or SHORT property.
func (b *Broker) Int(name string) int32 { return int32(b.value(name, Int, Short).number) }

// Long is the value of a LONG, INT or SHORT property.
func (b *Broker) Long(name string) int64 { return b.value(name, Long, Int, Short).number }

// Double is the value of a DOUBLE property.
func (b *Broker) Double(name string) float64 { return b.value(name, Double).real }

// String is the value of a STRING, CLASS or PASSWORD property, empty where there is none.
func (b *Broker) String(name string) string { return b.value(name, String, Class, Password).text }

// List is the value of a LIST property; the caller must not change it.
func (b *Broker) List(name string) []string { return b.value(name, List).list }

// IsSet reports whether the property has a value that is not its default.
func (b *Broker) IsSet(name string) bool { return b.Origin(name) != OriginDefault }

// Duration is the value of a property that counts time, in the unit that its name ends in. Of a family, such
// as log.retention.ms with .minutes and .hours, the first member that has a value counts. A negative value
// is [NoLimit], one that is too long for a Duration the longest Duration.
func (b *Broker) Duration(name string) time.Duration { return millis(b.millis(brokerSynonyms(name))) }

// millis is the value of the first of names that has one, in milliseconds.
func (b *Broker) millis(names []string) int64 {
	for _, name := range names {
		if v := b.value(name, Long, Int, Short); !v.null {
			return max(v.number, -1) * unitOf(name)
		}
	}
	return -1
}

// unitOf is the number of milliseconds that a property counts in.
func unitOf(name string) int64 {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "hours":
		return 3_600_000
	case "minutes":
		return 60_000
	case "seconds", "secs":
		return 1000
	case "ms", "millis":
		return 1
	}
	panic("BUG: config: " + name + " does not count time")
}

// millis makes a Duration of Kafka's milliseconds.
func millis(ms int64) time.Duration {
	switch {
	case ms < 0:
		return NoLimit
	case ms > math.MaxInt64/int64(time.Millisecond):
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// Origin is the layer that a property's effective value comes from.
func (b *Broker) Origin(name string) Origin {
	if _, ok := b.perBroker[name]; ok {
		return OriginDynamicBroker
	}
	if _, ok := b.clusterDefault[name]; ok {
		return OriginDynamicDefault
	}
	return b.static[name].origin
}

// Setting is one property with its effective value.
type Setting struct {
	// Key is the property; only its name is set where the table does not have it.
	Key Key
	// Value is the effective text; nil for null and for secrets.
	Value *string
	// Origin is where the value comes from.
	Origin Origin
}

// Values lists every property that has a meaning here or was set, sorted by name.
func (b *Broker) Values() []Setting {
	var all []Setting
	for _, k := range table().broker {
		if origin := b.Origin(k.Name); k.shown() || origin != OriginDefault {
			s := Setting{Key: k, Origin: origin}
			if !k.Sensitive() {
				s.Value = b.values[k.Name].pointer()
			}
			all = append(all, s)
		}
	}
	for _, name := range b.otherNames() {
		k, ok := Lookup(ScopeBroker, name)
		k.Name = name
		s := Setting{Key: k, Origin: b.Origin(name)}
		if ok && !k.Sensitive() {
			s.Value = new(b.textOf(name))
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, c Setting) int { return strings.Compare(a.Key.Name, c.Key.Name) })
	return all
}

// otherNames are the names that were set without being in the table: unknown ones and those of one listener.
func (b *Broker) otherNames() []string {
	names := map[string]bool{}
	for name := range b.static {
		names[name] = true
	}
	for name := range b.clusterDefault {
		names[name] = true
	}
	for name := range b.perBroker {
		names[name] = true
	}
	maps.DeleteFunc(names, func(name string, _ bool) bool { _, ok := b.values[name]; return ok })
	return slices.Sorted(maps.Keys(names))
}

// textOf is the effective text of a name, whether the table has it or not.
func (b *Broker) textOf(name string) string {
	if text, ok := b.perBroker[name]; ok {
		return text
	}
	if text, ok := b.clusterDefault[name]; ok {
		return text
	}
	return b.static[name].text
}
