package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// accepts reports whether somebody with these protocols can be in the group: there must be at least one that
// all members speak.
func (c *classicGroup) accepts(protocolType string, protocols []kmsg.JoinGroupRequestProtocol) bool {
	if c.state == empty {
		return protocolType != "" && len(protocols) > 0
	}
	if protocolType != c.protocolType {
		return false
	}
	return slices.ContainsFunc(protocols, func(p kmsg.JoinGroupRequestProtocol) bool { return c.common(p.Name) })
}

// common reports whether every member speaks a protocol.
func (c *classicGroup) common(protocol string) bool { return c.speakers[protocol] == len(c.members) }

// vote is the protocol that most members like best among those that all speak; of several with as many
// votes, the one voted for first.
//
// Every member has one vote, for the first protocol in its list that all speak. Counting first choices alone
// would elect one that somebody cannot speak, as when range is rolled over to cooperative-sticky one process at
// a time: [range, cooperative], [cooperative, range] and [cooperative] must agree on cooperative.
func (c *classicGroup) vote() string {
	var candidates []string
	votes := map[string]int{}
	for _, m := range c.members {
		for _, p := range m.protocols {
			if !c.common(p.name) {
				continue
			}
			if votes[p.name]++; votes[p.name] == 1 {
				candidates = append(candidates, p.name)
			}
			break
		}
	}
	if len(candidates) == 0 {
		invariant.Fail("group %s: %d members have no protocol in common", c.group.id, len(c.members))
	}
	best := candidates[0]
	for _, name := range candidates[1:] {
		if votes[name] > votes[best] {
			best = name
		}
	}
	return best
}

// learnTopics reads what the members subscribe to. Versions of the consumer protocol after 0 only add fields
// behind the topics, so that what is needed can be read of all.
func (c *classicGroup) learnTopics() {
	c.topics, c.topicsKnown = nil, false
	if c.protocolType != consumerProtocol {
		return
	}
	topics := map[string]bool{}
	if len(c.members) > 0 && c.protocol == "" {
		return
	}
	for _, m := range c.members {
		names, ok := subscribedTopics(m.metadata(c.protocol))
		if !ok {
			return
		}
		for _, name := range names {
			topics[name] = true
		}
	}
	c.topics, c.topicsKnown = topics, true
}

// subscribedTopics reads the topics of a consumer's subscription:
//
//	version int16 | topics: count int32, each a string | …
func subscribedTopics(metadata []byte) ([]string, bool) {
	version, rest, ok := cutInt16(metadata)
	if !ok || version < 0 || len(rest) < 4 {
		return nil, false
	}
	count := int(int32(uint32(rest[0])<<24 | uint32(rest[1])<<16 | uint32(rest[2])<<8 | uint32(rest[3])))
	rest = rest[4:]
	if count < 0 || count > len(rest)/2 {
		return nil, false
	}
	topics := make([]string, 0, count)
	for range count {
		size, after, ok := cutInt16(rest)
		if !ok || size < 0 || int(size) > len(after) {
			return nil, false
		}
		topics = append(topics, string(after[:size]))
		rest = after[size:]
	}
	return topics, true
}

func cutInt16(b []byte) (n int16, rest []byte, ok bool) {
	if len(b) < 2 {
		return 0, nil, false
	}
	return int16(b[0])<<8 | int16(b[1]), b[2:], true
}
