package kafka

import (
	"strings"
	"testing"
)

func testFlags() []flag {
	return []flag{
		{names: []string{"topic", "t"}, argument: "topic"},
		{names: []string{"config"}, argument: "key=value", many: true},
		{names: []string{"partitions"}, argument: "number", kind: integer, fallback: "7"},
		{names: []string{"rate"}, argument: "number", kind: decimal},
		{names: []string{"list"}},
		{names: []string{"state"}, argument: "state", optional: true, with: []string{"list"}},
		{names: []string{"props"}, argument: "key=value...", many: true, plus: true},
	}
}

func TestParse(t *testing.T) {
	a, err := parse(testFlags(), []string{"--topic", "--odd", "--config=a=b", "-config", "c=d", "--list", "--state", "--rate", "-1", "rest", "--props", "x=1", "y=2", "--", "--list"})
	if err != nil {
		t.Fatal(err)
	}
	for _, check := range []struct {
		name string
		ok   bool
	}{
		{"a required argument is what comes next", a.value("topic") == "--odd" && a.value("t") == "--odd"},
		{"repeated flags, both forms", strings.Join(a.all("config"), " ") == "a=b c=d"},
		{"an optional argument may be missing", a.has("state") && a.value("state") == ""},
		{"negative numbers are no flags", a.value("rate") == "-1"},
		{"a fallback", !a.has("partitions") && a.number("partitions") == 7},
		{"several arguments", strings.Join(a.all("props"), " ") == "x=1 y=2"},
		{"what belongs to no flag", strings.Join(a.rest, " ") == "rest --list"},
		{"the order", strings.Join(a.order, " ") == "topic config config list state rate props"},
		{"how many were given", a.count("topic", "partitions", "list") == 2},
	} {
		if !check.ok {
			t.Errorf("%s: %+v", check.name, a.values)
		}
	}
	if a, err := parse(testFlags(), []string{"--list", "--state", "stable,empty"}); err != nil || a.value("state") != "stable,empty" {
		t.Error("an optional argument is not taken", err)
	}
}

func TestParseErrors(t *testing.T) {
	required := append(testFlags(), flag{names: []string{"must"}, argument: "x", required: true})
	for _, test := range []struct {
		flags []flag
		given string
		want  string
	}{
		{testFlags(), "--nothing", "nothing is not a recognized option"},
		{testFlags(), "--topic", "Option topic/t requires an argument"},
		{testFlags(), "--partitions many", "Cannot parse argument 'many' of option partitions"},
		{testFlags(), "--partitions 99999999999", "Cannot parse argument '99999999999' of option partitions"},
		{testFlags(), "--topic a --topic b", "Found multiple arguments for option topic, but you asked for only one"},
		{testFlags(), "--state", "Option(s) [state] are unavailable given other options on the command line"},
		{required, "--list", "Missing required option(s) [must]"},
	} {
		if _, err := parse(test.flags, strings.Fields(test.given)); err == nil || err.Error() != test.want {
			t.Errorf("%s gives %v, expected %s", test.given, err, test.want)
		}
	}
	if _, err := parse(required, []string{"--help"}); err != nil {
		t.Error("help needs nothing else:", err)
	}
}

// TestTables parses nothing with the flags of every tool: their tables must hold together.
func TestTables(t *testing.T) {
	for _, tool := range tools() {
		if tool.bare != nil {
			continue
		}
		seen := map[string]bool{}
		for _, f := range append(tool.flags, common()...) {
			for _, name := range f.names {
				if seen[name] {
					t.Errorf("%s has two flags --%s", tool.name, name)
				}
				seen[name] = true
			}
			if f.doc == "" {
				t.Errorf("%s --%s says nothing of itself", tool.name, f.names[0])
			}
		}
		a, err := parse(tool.flags, []string{"--help"})
		if err != nil {
			t.Errorf("%s: %v", tool.name, err)
			continue
		}
		for _, f := range tool.flags {
			for _, other := range f.with {
				a.must(other)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("--topic x --list")
	f.Add("-- -- --= -")
	f.Add("--props a=b c --state")
	f.Fuzz(func(t *testing.T, line string) {
		if a, err := parse(testFlags(), strings.Fields(line)); err == nil {
			for _, f := range a.flags {
				a.value(f.names[0])
			}
		}
	})
}
