package metadata

import (
	"fmt"
	"slices"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// SecurityProtocol says how a listener authenticates and encrypts; the numbers go over the wire.
type SecurityProtocol int16

// Kafka's four security protocols.
const (
	Plaintext     SecurityProtocol = 0
	SSL           SecurityProtocol = 1
	SASLPlaintext SecurityProtocol = 2
	SASLSSL       SecurityProtocol = 3
)

// String is Kafka's name of the protocol, as properties and znodes spell it.
func (p SecurityProtocol) String() string {
	switch p {
	case Plaintext:
		return "PLAINTEXT"
	case SSL:
		return "SSL"
	case SASLPlaintext:
		return "SASL_PLAINTEXT"
	case SASLSSL:
		return "SASL_SSL"
	}
	return fmt.Sprintf("SecurityProtocol(%d)", int16(p))
}

// ParseSecurityProtocol reads what [SecurityProtocol.String] writes.
func ParseSecurityProtocol(name string) (SecurityProtocol, error) {
	for p := Plaintext; p <= SASLSSL; p++ {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("security protocol %q is none of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL", name)
}

// Endpoint is the advertised address of one listener of a broker.
type Endpoint struct {
	// Listener is the listener's name; clients are answered with the endpoint of the listener they use.
	Listener string
	// Host and Port are what clients connect to.
	Host string
	Port int32
	// Protocol is the security protocol behind the listener's name.
	Protocol SecurityProtocol
}

// VersionRange is the range of one feature that a broker supports (KIP-584).
type VersionRange struct{ Min, Max int16 }

// Broker is one living broker. It is immutable.
type Broker struct {
	// ID is the broker's number, unique in the cluster.
	ID P.BrokerID
	// Epoch tells this life of the broker from earlier ones. Only the controller knows those of others:
	// UpdateMetadata does not carry them, so in a broker's view they are NoBrokerEpoch.
	Epoch P.BrokerEpoch
	// Endpoints lists the advertised listeners, in the order in which the broker registered them.
	Endpoints []Endpoint
	// Rack is nil where the broker names none.
	Rack *string
	// Features lists what the broker supports; nil where nobody told.
	Features map[string]VersionRange
}

// Endpoint finds the address of the listener that has this name.
func (b *Broker) Endpoint(listener string) (Endpoint, bool) {
	for _, e := range b.Endpoints {
		if e.Listener == listener {
			return e, true
		}
	}
	return Endpoint{}, false
}

// equal reports whether both say the same about one life of one broker.
func (b *Broker) equal(o *Broker) bool {
	if b == o {
		return true
	}
	if b == nil || o == nil || b.ID != o.ID || b.Epoch != o.Epoch || !slices.Equal(b.Endpoints, o.Endpoints) {
		return false
	}
	if (b.Rack == nil) != (o.Rack == nil) || b.Rack != nil && *b.Rack != *o.Rack || len(b.Features) != len(o.Features) {
		return false
	}
	for name, levels := range b.Features {
		if other, ok := o.Features[name]; !ok || other != levels {
			return false
		}
	}
	return true
}
