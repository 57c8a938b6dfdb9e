package config

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// goldenKey is one line of keys.jsonl: what a real version of Kafka says about one of its properties.
type goldenKey struct {
	Scope, Name, Type string
	Default, Valid    *string
	Mode              string
	Internal          bool
}

func lines[T any](t *testing.T, path string) []T {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", path))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []T
	for s := bufio.NewScanner(f); s.Scan(); {
		var line T
		if err := json.Unmarshal(s.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	return all
}

func scopeNamed(name string) Scope {
	return map[string]Scope{"broker": ScopeBroker, "topic": ScopeTopic, "group": ScopeGroup}[name]
}

// ours are the defaults that Barnabas has where Kafka demands a value.
var ours = map[string]string{"node.id": "1", "process.roles": "broker", "controller.listener.names": ""}

func compareKey(t *testing.T, want goldenKey, k Key) {
	t.Helper()
	if text, ok := ours[k.Name]; ok {
		want.Default, want.Valid = &text, new(k.Rule.String())
	}
	got := goldenKey{want.Scope, k.Name, k.Type.String(), k.Default, new(k.Rule.String()), want.Mode, k.Internal}
	if k.Scope == ScopeBroker {
		got.Mode = k.Dynamic.String()
	}
	if want.Valid == nil || *want.Valid == "non-null string" || *want.Valid == "metadata version" {
		want.Valid = new("")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s property %s (-Kafka +table):\n%s", want.Scope, k.Name, diff)
	}
}

func TestTableIsThatOfKafka44(t *testing.T) {
	known := map[string]bool{}
	for _, want := range lines[goldenKey](t, "kafka-4.4/keys.jsonl") {
		k, ok := Lookup(scopeNamed(want.Scope), want.Name)
		if !ok {
			t.Errorf("the table lacks the %s property %s", want.Scope, want.Name)
			continue
		}
		known[want.Scope+want.Name] = true
		compareKey(t, want, k)
	}
	for scope, keys := range map[string][]Key{"broker": BrokerKeys(), "topic": TopicKeys(), "group": GroupKeys()} {
		for _, k := range keys {
			// The three rates are only ever dynamic, so no ConfigDef of a broker's file has them.
			if !known[scope+k.Name] && k.Until == "" && k.Since != "Barnabas" && !strings.Contains(k.Name, ".throttled.rate") && !strings.HasPrefix(k.Name, "replica.alter.") {
				t.Errorf("Kafka 4.4 does not know the %s property %s, so it needs an Until", scope, k.Name)
			}
		}
	}
}

func TestTableHasTheKeysOfKafka39(t *testing.T) {
	known := map[string]bool{}
	for _, want := range lines[goldenKey](t, "kafka-3.9/keys.jsonl") {
		known[want.Scope+want.Name] = true
		k, ok := Lookup(scopeNamed(want.Scope), want.Name)
		switch {
		case !ok:
			t.Errorf("the table lacks the %s property %s", want.Scope, want.Name)
		case k.Since != "":
			t.Errorf("%s: 3.9 knows it, so it needs no Since", k.Name)
		case k.Until != "":
			compareKey(t, want, k)
		}
	}
	for scope, keys := range map[string][]Key{"broker": BrokerKeys(), "topic": TopicKeys()} {
		for _, k := range keys {
			if !known[scope+k.Name] && k.Since == "" && !strings.Contains(k.Name, ".throttled.rate") && !strings.HasPrefix(k.Name, "replica.alter.") {
				t.Errorf("Kafka 3.9 does not know the %s property %s, so it needs a Since", scope, k.Name)
			}
		}
	}
}

func TestEveryKeyIsDocumentedAndItsDefaultValid(t *testing.T) {
	for _, keys := range [][]Key{BrokerKeys(), TopicKeys(), GroupKeys()} {
		for _, k := range keys {
			if len(k.Doc) < 20 || !strings.HasSuffix(k.Doc, ".") {
				t.Errorf("%s: %q is no sentence", k.Name, k.Doc)
			}
			if k.Default != nil {
				if v, err := k.Parse(*k.Default); err != nil || v.String() != *k.Default {
					t.Errorf("%s: default %q reads as %q, %v", k.Name, *k.Default, v.String(), err)
				}
			}
			for _, name := range k.Synonyms {
				if _, ok := Lookup(ScopeBroker, name); !ok {
					t.Errorf("%s falls back to %s, which does not exist", k.Name, name)
				}
			}
		}
	}
}

// goldenEntry is one line of describe-*.jsonl: what DescribeConfigs of a real Kafka 4.4 said.
type goldenEntry struct {
	Name                string
	Value               *string
	Source              Source
	ReadOnly, Sensitive bool
	Type                string
	Synonyms            [][3]any
}

func asGolden(entries []Entry) []goldenEntry {
	var all []goldenEntry
	for _, e := range entries {
		if k, ok := Lookup(ScopeBroker, e.Name); ok && k.Since == "Barnabas" {
			continue
		}
		g := goldenEntry{e.Name, e.Value, e.Source, e.ReadOnly, e.Sensitive, e.Type.String(), [][3]any{}}
		for _, s := range e.Synonyms {
			if _, ok := ours[s.Name]; ok && s.Source == SourceDefault {
				continue // Kafka has no default there
			}
			var value any
			if s.Value != nil {
				value = *s.Value
			}
			g.Synonyms = append(g.Synonyms, [3]any{s.Name, value, float64(s.Source)})
		}
		all = append(all, g)
	}
	return all
}

// describedBroker is the broker whose answers the golden files hold.
func describedBroker(t *testing.T) (*Broker, map[string]map[string]string) {
	t.Helper()
	b, _, err := Load(LoadOptions{File: filepath.Join("testdata", "kafka-4.4", "described-server.properties")})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join("testdata", "kafka-4.4", "described-dynamic.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dynamic map[string]map[string]string
	if err := json.Unmarshal(data, &dynamic); err != nil {
		t.Fatal(err)
	}
	if b, err = b.WithDynamic(dynamic["broker"], dynamic["brokers"]); err != nil {
		t.Fatal(err)
	}
	return b, dynamic
}

func TestDescribeIsThatOfKafka44(t *testing.T) {
	b, dynamic := describedBroker(t)
	for file, entries := range map[string][]Entry{
		"topic-t1":       b.DescribeTopic(dynamic["t1"], nil),
		"topic-t2":       b.DescribeTopic(nil, nil),
		"group-gg":       b.DescribeGroup(dynamic["gg"], nil),
		"group-plain":    b.DescribeGroup(nil, nil),
		"broker-1":       b.DescribeBroker(nil),
		"broker-default": b.DescribeBrokerDefault(nil),
	} {
		want := lines[goldenEntry](t, "kafka-4.4/describe-"+file+".jsonl")
		if diff := cmp.Diff(want, asGolden(entries)); diff != "" {
			t.Errorf("%s (-Kafka +ours):\n%s", file, diff)
		}
	}
}
