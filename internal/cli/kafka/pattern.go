package kafka

import (
	"regexp"
	"strings"
)

// isPlain reports whether a pattern of topic names can only match itself.
//
// A dot does not count as plain: in a pattern it stands for any letter, and "a.b" matches "a_b" too.
func isPlain(pattern string) bool {
	for _, r := range pattern {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
		default:
			return false
		}
	}
	return true
}

// topicPattern matches whole topic names as Kafka's tools do: a regular expression, in which a comma
// means "or". The empty pattern matches everything.
func topicPattern(pattern string) (func(string) bool, error) {
	if pattern == "" {
		return func(string) bool { return true }, nil
	}
	if isPlain(pattern) {
		return func(name string) bool { return name == pattern }, nil
	}
	expression := strings.ReplaceAll(strings.TrimSpace(pattern), ",", "|")
	expression = strings.ReplaceAll(expression, " ", "")
	expression = strings.Trim(expression, `"'`)
	compiled, err := regexp.Compile("^(?:" + expression + ")$")
	if err != nil {
		return nil, sentencef("%s is an invalid regex.", pattern)
	}
	return compiled.MatchString, nil
}
