package adopt

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
)

// readOnly are properties that decide when data of groups and producers is forgotten, and that can only be
// given at the start.
var readOnly = [...]string{"offsets.retention.minutes", "producer.id.expiration.ms", "transactional.id.expiration.ms"}

// loadProperties reads the server.properties of the old broker.
func loadProperties(name string, text []byte) (*config.Broker, error) {
	loaded, _, err := config.Load(config.LoadOptions{File: name, Reader: bytes.NewReader(text)})
	return loaded, err
}

// fallbacks are the properties in the old broker's file that topics without their own fall back to, by the
// names under which they can be set for all brokers while these run. The hours and minutes of a family become
// its milliseconds.
//
// Topics in Kafka inherit from their broker's file. The file stays behind, so that what it said becomes a
// default in the store, where our file's defaults would otherwise show through.
func fallbacks(b *config.Broker) map[string]string {
	set := map[string]string{}
	values := map[string]string{}
	for _, s := range b.Values() {
		if s.Value != nil {
			values[s.Key.Name] = *s.Value
		}
	}
	for _, key := range config.TopicKeys() {
		for _, synonym := range key.Synonyms {
			if !b.IsSet(synonym) {
				continue
			}
			name := key.Synonyms[0]
			if broker, ok := config.Lookup(config.ScopeBroker, name); !ok || broker.Dynamic != config.ClusterWide {
				break
			}
			value := values[synonym]
			if strings.HasSuffix(synonym, ".hours") || strings.HasSuffix(synonym, ".minutes") {
				value = milliseconds(b.Duration(synonym))
			}
			set[name] = value
			break
		}
	}
	return set
}

func milliseconds(d time.Duration) string {
	if d == config.NoLimit {
		return "-1"
	}
	return strconv.FormatInt(d.Milliseconds(), 10)
}

// startOverrides are the properties in the file that data hangs on and that must be given at every start.
func startOverrides(b *config.Broker) []string {
	var overrides []string
	for _, s := range b.Values() {
		for _, name := range readOnly {
			if s.Key.Name == name && b.IsSet(name) && s.Value != nil {
				overrides = append(overrides, name+"="+*s.Value)
			}
		}
	}
	return overrides
}
