package config

import (
	"math"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		typ        Type
		text, want string // want begins with ! where it is a part of the error
	}{
		{Boolean, " TRUE ", "true"},
		{Boolean, "yes", "!Expected value to be either true or false"},
		{Int, "\t+5\n", "5"},
		{Int, "2147483648", "!Not a number of type INT"},
		{Int, "", "!Not a number of type INT"},
		{Int, "0x10", "!Not a number of type INT"},
		{Short, "40000", "!Not a number of type SHORT"},
		{Long, "-9223372036854775808", "-9223372036854775808"},
		{Long, "1 000", "!Not a number of type LONG"},
		{Long, "1_000", "!Not a number of type LONG"},
		{Double, ".5f", "0.5"},
		{Double, "1", "1.0"},
		{Double, "1e-5", "1.0E-5"},
		{Double, "12345678.5", "1.23456785E7"},
		{Double, "1e400", "Infinity"},
		{Double, "NaN", "!Not a number of type DOUBLE"},
		{Double, "1_0", "!Not a number of type DOUBLE"},
		{Double, "d", "!Not a number of type DOUBLE"},
		{String, "  a b  ", "a b"},
		{List, " a ,b\t, c ", "a,b,c"},
		{List, "", ""},
		{Class, "org.example.X", "org.example.X"},
	} {
		v, err := Key{Name: "k", Type: c.typ}.Parse(c.text)
		part, wrong := strings.CutPrefix(c.want, "!")
		if wrong {
			if err == nil || !strings.HasPrefix(*protocol.MessageOf(err), "Invalid value "+c.text+" for configuration k: "+part) || protocol.CodeOf(err) != protocol.InvalidConfig {
				t.Errorf("%s %q: %v, want an error about %q", c.typ, c.text, err, part)
			}
			continue
		}
		if err != nil || v.String() != c.want {
			t.Errorf("%s %q: %q, %v; want %q", c.typ, c.text, v.String(), err, c.want)
		}
	}
}

func TestValueAccessors(t *testing.T) {
	v, _ := Key{Type: Double}.Parse("-Infinity")
	if !math.IsInf(v.Double(), -1) || v.String() != "-Infinity" || v.IsNull() {
		t.Errorf("%v", v)
	}
	v, _ = Key{Type: Boolean}.Parse("true")
	n, _ := Key{Type: Long}.Parse("7")
	l, _ := Key{Type: List}.Parse("a,b")
	if !v.Bool() || n.Int() != 7 || len(l.List()) != 2 {
		t.Error(v, n, l)
	}
	if null := (Key{Type: String}).fallback(); !null.IsNull() || null.String() != "" || null.pointer() != nil {
		t.Error("a property without default must be null")
	}
}

// The sentences are those of Kafka 4.4.0.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		key        Key
		text, want string
	}{
		{Key{Type: Int, Rule: atLeast(1 << 20)}, "100", "Invalid value 100 for configuration k: Value must be at least 1048576"},
		{Key{Type: Double, Rule: between(0, 1)}, "1.5", "Invalid value 1.5 for configuration k: Value must be no more than 1"},
		{Key{Type: Double, Rule: between(0, 1)}, "1", ""},
		{Key{Type: String, Rule: oneOf("a", "b")}, "A", "Invalid value A for configuration k: String must be one of: a, b"},
		{Key{Type: String, Rule: oneOfFold("A")}, "a", ""},
		{Key{Type: String, Rule: oneOfFold("A", "B")}, "c", "Invalid value c for configuration k: String must be one of (case insensitive): A, B"},
		{Key{Type: List, Rule: listOf("a", "b")}, "", ""},
		{Key{Type: List, Rule: listOf("a", "b")}, "a,a", "Configuration 'k' values must not be duplicated."},
		{Key{Type: List, Rule: listOf("a", "b")}, "a,", "Configuration 'k' values must not be empty."},
		{Key{Type: List, Rule: listOf("a", "b")}, "c", "Invalid value c for configuration k: String must be one of: a, b"},
		{Key{Type: List, Rule: listOf("a", "b"), Scope: ScopeTopic}, "a,a", ""},
		{Key{Type: List, Rule: nonEmptyListOf()}, "", "Configuration 'k' must not be empty. Valid values include: any non-empty value"},
		{Key{Type: List, Rule: nonEmptyListOf("a", "b")}, " ", "Configuration 'k' must not be empty. Valid values include: [a, b]"},
		{Key{Type: String, Rule: rule(ruleNonEmpty)}, "", "Invalid value  for configuration k: String must be non-empty"},
		{Key{Type: Int, Rule: rule(ruleGzip)}, "-1", ""},
		{Key{Type: Int, Rule: rule(ruleGzip)}, "0", "Invalid value 0 for configuration k: Value must be between 1 and 9 or equal to -1"},
		{Key{Type: List, Rule: rule(ruleThrottled)}, "*", ""},
		{Key{Type: List, Rule: rule(ruleThrottled)}, "0:1, 2:3", ""},
		{Key{Type: List, Rule: rule(ruleThrottled)}, "1:a,2:3", "Invalid value [1:a, 2:3] for configuration k: k must be the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."},
		{Key{Type: List, Rule: rule(ruleVoters)}, "1@a:9093,2@[::1]:9093", ""},
		{Key{Type: List, Rule: rule(ruleVoters)}, "a:9093", "Invalid configuration value for k. Each entry should be in the form `{id}@{host}:{port}`."},
		{Key{Type: List, Rule: rule(ruleServers)}, "a:9093,b", `Failed to parse host name from b for the configuration k. Each entry should be in the form "{host}:{port}"`},
		{Key{Type: String, Rule: rule(ruleOffsets)}, "by_duration:P1DT2H", ""},
		{Key{Type: String, Rule: rule(ruleOffsets)}, "foo", "Invalid value foo for configuration k: Invalid value `foo` for configuration k. The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."},
	} {
		c.key.Name = "k"
		_, err := c.key.Parse(c.text)
		if got := messageOf(err); got != c.want {
			t.Errorf("%s %s %q:\n got %q\nwant %q", c.key.Type, c.key.Rule, c.text, got, c.want)
		}
	}
}

// messageOf is the sentence that a client gets, empty where all is well.
func messageOf(err error) string {
	if err == nil {
		return ""
	}
	return *protocol.MessageOf(err)
}

func TestLookup(t *testing.T) {
	for name, want := range map[string]string{
		"listener.name.internal.max.connections":                   "max.connections",
		"listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config":    "sasl.jaas.config",
		"listener.name.x.plain.sasl.server.callback.handler.class": "sasl.server.callback.handler.class",
		"num.io.threads":                "num.io.threads",
		"listener.name.internal.nosuch": "",
		"nosuch":                        "",
	} {
		k, ok := Lookup(ScopeBroker, name)
		if ok != (want != "") || k.Name != want {
			t.Errorf("%s: %q, %v", name, k.Name, ok)
		}
	}
}
