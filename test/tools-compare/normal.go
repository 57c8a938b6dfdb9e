package main

import (
	"regexp"
	"slices"
	"strings"
)

// rule takes something that differs from run to run out of a text.
type rule struct {
	pattern *regexp.Regexp
	instead string
}

func rules(pairs ...string) []rule {
	var all []rule
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, rule{regexp.MustCompile(pairs[i]), pairs[i+1]})
	}
	return all
}

// varying are ids, times, addresses and measurements; the last ones take out the widths that follow from them.
var varying = rules(
	`\b(console-consumer|perf-consumer|console-share-consumer)-\d+\b`, "$1-N",
	`TopicId: \S+`, "TopicId: ID",
	`topicId=[^,)]+`, "topicId=ID",
	`[a-z][a-z0-9-]*-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, "MEMBER",
	`(?i)\b((?:cluster|directory|topic)[ .]?id["=: ]+)[A-Za-z0-9_-]{22}`, "${1}ID",
	`(?m)^[A-Za-z0-9_-]{22}$`, "ID",
	`(CreateTime|LogAppendTime|LogAppend_Time|NoTimestampType): ?\d+`, "$1:TIME",
	`("timestamp"|"logDir"|[tT]imestamp(?:Ms)?"): ?("[^"]*"|\d+)`, "$1:TIME",
	`\b(largestTimestamp|largestTime|baseOffsetTimestamp|deleteHorizonMs|timestamp): \d{13}`, "$1: TIME",
	`\b\d{13}\b`, "TIME",
	`\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.:,]\d{3}`, "TIME",
	`\b127\.0\.0\.1:\d+`, "HOST:PORT",
	`"(\$DATA|/[^"]*/data)"`, `"DIR"`, // of this and of other brokers
	`\[\d{4}-\d\d-\d\d[^\]]*\]`, "[TIME]",
	`\b(crc|producerId|position|size): \d+`, "$1: N",
	`(?m)[ \t]+$`, "",
	`[ \t]+`, " ",
	// A broker that does not describe topics in pages cannot tell of eligible leaders.
	`Elr: N/A LastKnownElr: N/A`, "Elr: LastKnownElr:",
)

// numbers are what measurements and sizes consist of.
var numbers = rules(`-?\b\d+([.,]\d+)*(E-?\d+)?\b`, "N", `NaN|Infinity|∞`, "N", `(N ?)+N`, "N")

// normal is the text as lines that should be the same on every side.
func (s *side) normal(text string, m manner) []string {
	text = strings.ReplaceAll(text, "\r", "\n")
	text = strings.ReplaceAll(text, s.dir, "$DIR")
	text = strings.ReplaceAll(text, s.data, "$DATA")
	text = strings.ReplaceAll(text, s.broker, "BROKER")
	if _, port, ok := strings.Cut(s.broker, ":"); ok {
		text = regexp.MustCompile(`\b`+port+`\b`).ReplaceAllString(text, "PORT")
	}
	all := varying
	if m == formOnly {
		all = slices.Concat(varying, numbers)
	}
	for _, r := range all {
		text = r.pattern.ReplaceAllString(text, r.instead)
	}
	if text = strings.Trim(text, "\n"); text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = sortedConfigs(lines[i])
	}
	if m == anyOrder {
		slices.Sort(lines)
	}
	return lines
}

// sortedConfigs sorts the properties behind "Configs:", which Kafka has in the order of a hash map.
func sortedConfigs(line string) string {
	head, list, ok := strings.Cut(line, "Configs: ")
	if !ok {
		return line
	}
	pairs := strings.Split(list, ",")
	slices.Sort(pairs)
	return head + "Configs: " + strings.Join(pairs, ",")
}

// withoutTraces is standard error without Java's stack traces.
func withoutTraces(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "\tat ") || strings.HasPrefix(line, "\t... ") {
			continue
		}
		kept.WriteString(line)
	}
	return kept.String()
}
