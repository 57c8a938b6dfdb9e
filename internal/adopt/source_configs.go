package adopt

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// fromConfigs reads what kafka-configs --describe prints of topics and brokers into s:
//
//	Dynamic configs for topic orders are:
//	  retention.ms=86400000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=86400000, DEFAULT_CONFIG:…}
//	Default configs for brokers in the cluster are:
//	  log.retention.ms=999 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=999}
//
// With --all it lists every property; then only those count that are set for the topic or dynamically for
// the broker. A topic that is listed without any has none of its own.
func (s *source) fromConfigs(text []byte) error {
	var section *configSection
	headings := 0
	for line := range bytes.Lines(text) {
		line := strings.TrimRight(string(line), "\r\n")
		switch {
		case strings.HasPrefix(line, " "):
			section.take(line)
		case line != "":
			if section = s.heading(line); section != nil {
				headings++
			}
		}
	}
	if headings == 0 {
		return errors.New("it says nothing of topics or brokers: give what 'kafka-configs --describe --entity-type topics' prints")
	}
	return nil
}

// configSection is what follows a heading in the output.
//
// With --all only a line whose first synonym is of layer is the entity's own: the synonyms stand in the order
// in which they were looked for.
type configSection struct {
	// layer is the source of those properties that are the entity's own.
	layer  string
	values map[string]string
}

// heading tells what a section is about; nil where it is something else, such as users.
func (s *source) heading(line string) *configSection {
	what, ok := strings.CutSuffix(line, " are:")
	if !ok {
		return nil
	}
	if what == "Default configs for brokers in the cluster" {
		return &configSection{layer: "DYNAMIC_DEFAULT_BROKER_CONFIG", values: s.defaults}
	}
	_, entity, _ := strings.Cut(what, " configs for ")
	switch kind, name, _ := strings.Cut(entity, " "); {
	case name == "":
		return nil
	case kind == "topic":
		t := s.topic(name)
		t.config, t.configKnown = map[string]string{}, true
		return &configSection{layer: "DYNAMIC_TOPIC_CONFIG", values: t.config}
	case kind == "broker":
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			return nil
		}
		values := map[string]string{}
		s.brokers[P.BrokerID(id)] = values
		return &configSection{layer: "DYNAMIC_BROKER_CONFIG", values: values}
	}
	return nil
}

// take takes one line in, unless it is of a default or a secret, whose value is not printed.
func (s *configSection) take(line string) {
	rest, synonyms, found := strings.Cut(strings.TrimSpace(line), " synonyms={")
	rest, sensitive, _ := strings.Cut(rest, " sensitive=")
	name, value, ok := strings.Cut(rest, "=")
	if s == nil || !ok || sensitive == "true" || found && !strings.HasPrefix(synonyms, s.layer+":") {
		return
	}
	s.values[name] = value
}
