package replica

import (
	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/metadata"
)

// settings resolves the settings of topics. Equal ones are one value in memory, which nobody changes: ten
// thousand partitions mostly have the same.
type settings struct {
	known map[config.Topic]*config.Topic
	// topics are those that were looked up under one image.
	topics map[string]*config.Topic
}

// knownMost is how many different settings are remembered; with more, equal ones may be several values.
const knownMost = 1000

// begin forgets what was looked up under an older image.
func (s *settings) begin() { clear(s.topics) }

// share is the one value that is equal to c.
func (s *settings) share(c config.Topic) *config.Topic {
	if shared := s.known[c]; shared != nil {
		return shared
	}
	if len(s.known) >= knownMost {
		clear(s.known)
	}
	s.known[c] = &c
	return &c
}

// settingsOf are the settings of a topic. What is not valid counts as not set, so that a topic stays usable
// whatever the store holds: another version of the software, or a tool of its own, may have written it.
func (r *Replicas) settingsOf(topic string, image *metadata.Image) *config.Topic {
	if found := r.settings.topics[topic]; found != nil {
		return found
	}
	resolved, err := r.options.Topic(image.TopicConfig(topic))
	if err != nil {
		r.options.Logger.Warn("some properties of a topic are not valid, and count as not set", "topic", topic, "error", err)
	}
	shared := r.settings.share(resolved)
	r.settings.topics[topic] = shared
	return shared
}
