package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// WithDynamic is this configuration with what the store holds for the broker and for all brokers, instead
// of what it held before. Entries that cannot apply are named in the error and left out of the result,
// which is good either way: a broker must not fail because of what the store holds.
//
// The store may hold what another version, or another program, has written. An entry that makes no sense here
// is left out and told of, and the next weaker layer counts.
func (b *Broker) WithDynamic(perBroker, clusterDefault map[string]string) (*Broker, error) {
	next := &Broker{static: b.static, implied: b.implied, perBroker: map[string]string{}, clusterDefault: map[string]string{}}
	var faults []error
	take := func(to, from map[string]string, resource string, forBroker bool) {
		for _, name := range slices.Sorted(maps.Keys(from)) {
			err := dynamicEntries(map[string]string{name: from[name]}, forBroker)
			if err == nil {
				err = b.checkFixed(name, from[name])
			}
			if err != nil {
				faults = append(faults, fmt.Errorf("dynamic configuration of %s: %w", resource, err))
				continue
			}
			to[name] = from[name]
		}
	}
	take(next.perBroker, perBroker, "this broker", true)
	take(next.clusterDefault, clusterDefault, "all brokers", false)
	return next, errors.Join(append(faults, next.evaluate())...)
}

// ValidateDynamic checks, with Kafka's words and codes, a complete set of dynamic properties for this broker
// or, where forBroker is false, the defaults of all brokers.
func (b *Broker) ValidateDynamic(forBroker bool, entries map[string]string) error {
	if err := dynamicEntries(entries, forBroker); err != nil {
		return err
	}
	perBroker, clusterDefault := b.perBroker, entries
	if forBroker {
		perBroker, clusterDefault = entries, b.clusterDefault
	}
	next, err := b.WithDynamic(perBroker, clusterDefault)
	if err != nil {
		return refused(err)
	}
	if err := b.checkThreads(next); err != nil {
		return err
	}
	if faults := next.conflicts(); len(faults) > 0 {
		return refused(faults[0])
	}
	return nil
}

// refused gives a fault the code that Kafka answers for broker properties, INVALID_REQUEST.
func refused(err error) error {
	if fault, ok := errors.AsType[*protocol.Error](err); ok {
		return &protocol.Error{Code: protocol.InvalidRequest, Message: fault.Message, Cause: fault.Cause}
	}
	return protocol.Errorf(protocol.InvalidRequest, "%w", err)
}

// dynamicEntries checks each entry by itself: may it change at all, here, and to this value.
//
// The three lists are refused in this order, each with all of its names, in Kafka's words: admin tools print
// them.
//
//	read-only                  anywhere
//	security without a prefix  anywhere: it would change every listener under the feet of its clients
//	per broker                 as the default of all brokers
func dynamicEntries(entries map[string]string, forBroker bool) error {
	var readOnly, bare, perBroker []string
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		k := lookup(ScopeBroker, name)
		if k == nil {
			continue // Kafka takes unknown names, for the plug-ins that may know them
		}
		prefixed := k.Name != name
		switch {
		case !prefixed && k.Dynamic == ReadOnly:
			readOnly = append(readOnly, name)
		case !prefixed && slices.Contains(listenerSecurity, name):
			bare = append(bare, name)
		case k.Dynamic == PerBroker || prefixed && !slices.Contains(listenerLimits, k.Name):
			perBroker = append(perBroker, name)
		}
	}
	refuse := func(message string, names []string) error {
		return protocol.Errorf(protocol.InvalidRequest, "%s: [%s]", message, strings.Join(names, ", "))
	}
	if len(readOnly) > 0 {
		return refuse("Cannot update these configs dynamically", readOnly)
	}
	if len(bare) > 0 {
		return refuse("These security configs can be dynamically updated only per-listener using the listener prefix", bare)
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if k := lookup(ScopeBroker, name); k != nil {
			if _, err := k.Parse(entries[name]); err != nil {
				return refused(err)
			}
		}
	}
	if len(perBroker) > 0 && !forBroker {
		return refuse("Cannot update these configs at default cluster level, broker id must be specified", perBroker)
	}
	return nil
}

// listenerSecurity are the properties that may only change for one listener, under its prefix.
var listenerSecurity = []string{
	"ssl.key.password", "ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.keystore.location", "ssl.keystore.password",
	"ssl.keystore.type", "ssl.truststore.certificates", "ssl.truststore.location", "ssl.truststore.password", "ssl.truststore.type",
}

// listenerLimits are the properties of a listener that may be set for all brokers.
var listenerLimits = []string{"max.connection.creation.rate", "max.connections", "num.network.threads"}

// threadCounts are the pools that Kafka lets at most double or halve in one step. There are no such pools
// here; the bound stays, so that the same request gets the same answer.
var threadCounts = []string{
	"background.threads", "log.cleaner.threads", "num.io.threads", "num.network.threads", "num.recovery.threads.per.data.dir", "num.replica.fetchers",
}

func (b *Broker) checkThreads(next *Broker) error {
	for _, name := range threadCounts {
		now, then := b.Long(name), next.Long(name)
		reason := ""
		switch {
		case then == now:
		case then < 1:
			reason = "value should be at least 1"
		case then < now/2:
			reason = fmt.Sprintf("value should be at least half the current value %d", now)
		case then > now*2:
			reason = fmt.Sprintf("value should not be greater than double the current value %d", now)
		}
		if reason != "" {
			return protocol.Errorf(protocol.InvalidRequest, "Dynamic thread count update validation failed for %s=%d, %s", name, then, reason)
		}
	}
	return nil
}

// fixed are the properties that Kafka can change live and Barnabas cannot yet.
var fixed = []string{"listeners", "listener.security.protocol.map"}

// checkFixed refuses a new value of a fixed property, rather than keeping it without effect.
func (b *Broker) checkFixed(name, text string) error {
	if slices.Contains(fixed, name) && javaTrim(text) != b.values[name].String() {
		return protocol.Errorf(protocol.InvalidRequest, "%s can only change with a restart: set it in the broker's property file", name)
	}
	return nil
}
