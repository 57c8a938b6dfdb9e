package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// ruleKind tells the shapes of a Rule apart.
type ruleKind int8

const (
	ruleNone      ruleKind = iota
	ruleBounds             // a number between two bounds
	ruleOneOf              // one of some words
	ruleOneOfFold          // the same, whatever the case
	ruleList               // a list without empty or repeated elements
	ruleNonEmpty           // a text that is not empty
	ruleGzip               // a gzip level: 1 to 9, or -1
	ruleThrottled          // partition:broker pairs, or *
	ruleVoters             // id@host:port entries
	ruleServers            // host:port entries
	ruleOffsets            // earliest, latest or by_duration
)

// Rule restricts the values of a property. The zero value restricts nothing.
//
// Rules judge a parsed value, in the words of Kafka's validators, which clients and tests have learned to read.
// What depends on other properties is not a Rule's matter: see Broker.conflicts.
type Rule struct {
	kind          ruleKind
	min, max      float64
	hasMin, noMax bool
	words         []string
	emptyAllowed  bool
}

// atLeast asks for a number that is not below low.
func atLeast(low float64) Rule { return Rule{kind: ruleBounds, min: low, hasMin: true, noMax: true} }

// between asks for a number within two bounds, both included.
func between(low, high float64) Rule {
	return Rule{kind: ruleBounds, min: low, hasMin: true, max: high}
}

// oneOf asks for one of the words.
func oneOf(words ...string) Rule { return Rule{kind: ruleOneOf, words: words} }

// oneOfFold asks for one of the words in any case.
func oneOfFold(words ...string) Rule { return Rule{kind: ruleOneOfFold, words: words} }

// listOf asks for a list of distinct elements; where words are given, for those only.
func listOf(words ...string) Rule { return Rule{kind: ruleList, words: words, emptyAllowed: true} }

// nonEmptyListOf is listOf without the empty list.
func nonEmptyListOf(words ...string) Rule { return Rule{kind: ruleList, words: words} }

// rule names the rules that have no parameters.
func rule(kind ruleKind) Rule { return Rule{kind: kind} }

// String is how Kafka's documentation writes the valid values; empty where the type says it all.
func (r Rule) String() string {
	switch r.kind {
	case ruleBounds:
		if r.noMax {
			return "[" + plain(r.min) + ",...]"
		}
		return "[" + plain(r.min) + ",...," + plain(r.max) + "]"
	case ruleOneOf:
		return "[" + strings.Join(r.words, ", ") + "]"
	case ruleOneOfFold:
		return "(case insensitive) [" + strings.Join(r.words, ", ") + "]"
	case ruleList:
		if len(r.words) == 0 {
			return ""
		}
		return "[" + strings.Join(r.words, ", ") + "]"
	case ruleNonEmpty:
		return "non-empty string"
	case ruleGzip:
		return "[1,...,9] or -1"
	case ruleThrottled:
		return throttledForm
	case ruleVoters, ruleServers:
		return "non-empty list"
	case ruleOffsets:
		return "[latest, earliest, by_duration:PnDTnHnMn.nS]"
	default:
		return ""
	}
}

func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// check reports, in Kafka's words, what is wrong with a parsed value. Null passes: it is only ever a default.
func (r Rule) check(name string, v Value) error {
	switch r.kind {
	case ruleBounds:
		return r.checkBounds(name, v)
	case ruleOneOf:
		return r.checkWord(name, v.text)
	case ruleOneOfFold:
		if !slices.ContainsFunc(r.words, func(w string) bool { return strings.EqualFold(w, v.text) }) {
			return invalid(name, v.text, "String must be one of (case insensitive): "+strings.Join(r.words, ", "))
		}
	case ruleList:
		return r.checkList(name, v.list)
	case ruleNonEmpty:
		if v.text == "" {
			return invalid(name, v.text, "String must be non-empty")
		}
	case ruleGzip:
		if v.number != -1 && (v.number < 1 || v.number > 9) {
			return invalid(name, v.String(), "Value must be between 1 and 9 or equal to -1")
		}
	case ruleThrottled, ruleVoters, ruleServers, ruleOffsets:
		return r.checkForm(name, v)
	}
	return nil
}

func (r Rule) checkBounds(name string, v Value) error {
	n := v.real
	if v.typ != Double {
		n = float64(v.number)
	}
	if r.hasMin && n < r.min {
		return invalid(name, v.String(), "Value must be at least "+plain(r.min))
	}
	if !r.noMax && n > r.max {
		return invalid(name, v.String(), "Value must be no more than "+plain(r.max))
	}
	return nil
}

func (r Rule) checkWord(name, word string) error {
	if !slices.Contains(r.words, word) {
		return invalid(name, word, "String must be one of: "+strings.Join(r.words, ", "))
	}
	return nil
}

func (r Rule) checkList(name string, list []string) error {
	if len(list) == 0 && !r.emptyAllowed {
		valid := "any non-empty value"
		if len(r.words) > 0 {
			valid = r.String()
		}
		return protocol.Errorf(protocol.InvalidConfig, "Configuration '%s' must not be empty. Valid values include: %s", name, valid)
	}
	if len(slices.Compact(slices.Sorted(slices.Values(list)))) < len(list) {
		return protocol.Errorf(protocol.InvalidConfig, "Configuration '%s' values must not be duplicated.", name)
	}
	for _, word := range list {
		if word == "" {
			return protocol.Errorf(protocol.InvalidConfig, "Configuration '%s' values must not be empty.", name)
		}
		if len(r.words) > 0 {
			if err := r.checkWord(name, word); err != nil {
				return err
			}
		}
	}
	return nil
}

// throttledForm is what a list of throttled replicas looks like.
const throttledForm = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."

// checkForm matches the values that have a grammar of their own.
func (r Rule) checkForm(name string, v Value) error {
	switch r.kind {
	case ruleThrottled:
		if slices.Equal(v.list, []string{"*"}) || every(v.list, `^[0-9]+:[0-9]+$`) {
			return nil
		}
		return invalid(name, "["+strings.Join(v.list, ", ")+"]",
			name+" must be the literal '*' or a list of replicas in the following format: "+throttledForm)
	case ruleVoters:
		if every(v.list, `^[0-9]+@.+:[0-9]+$`) {
			return nil
		}
		return protocol.Errorf(protocol.InvalidConfig,
			"Invalid configuration value for %s. Each entry should be in the form `{id}@{host}:{port}`.", name)
	case ruleServers:
		for _, server := range v.list {
			if !every([]string{server}, `^.+:[0-9]+$`) {
				return protocol.Errorf(protocol.InvalidConfig,
					`Failed to parse host name from %s for the configuration %s. Each entry should be in the form "{host}:{port}"`, server, name)
			}
		}
	case ruleOffsets:
		if v.text != "earliest" && v.text != "latest" && !every([]string{v.text}, `^by_duration:-?P(?i:([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9.]+S)?)?)$`) {
			return invalid(name, v.text, "Invalid value `"+v.text+"` for configuration "+name+
				". The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.")
		}
	}
	return nil
}

func every(list []string, pattern string) bool {
	form := regexp.MustCompile(pattern)
	return !slices.ContainsFunc(list, func(s string) bool { return !form.MatchString(s) })
}
