package config

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

//	listeners                        NAME://host:port, …     where to bind; an empty host is all interfaces
//	advertised.listeners             NAME://host:port, …     what clients are told; listeners where it is not set
//	listener.security.protocol.map   NAME:PROTOCOL, …        what is spoken; by default a protocol's name means itself
//	inter.broker.listener.name       NAME                    by which brokers reach each other
//
// A client that came by a listener is told the addresses of that listener of every broker: others may not be
// reachable from where it is. Port 0 leaves the choice to the system.

// SecurityProtocol says how a listener is protected, with the numbers of Kafka's protocol.
type SecurityProtocol int16

// The security protocols.
const (
	Plaintext     SecurityProtocol = 0
	SSL           SecurityProtocol = 1
	SASLPlaintext SecurityProtocol = 2
	SASLSSL       SecurityProtocol = 3
)

// String is Kafka's name of the protocol.
func (p SecurityProtocol) String() string { return securityProtocols[p] }

var securityProtocols = [...]string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}

func parseSecurityProtocol(name string) (SecurityProtocol, bool) {
	i := slices.Index(securityProtocols[:], strings.ToUpper(name))
	return SecurityProtocol(i), i >= 0
}

// Listener is an address that clients or brokers connect to. An empty Host means every interface where it
// is listened on; an advertised one always has a host.
type Listener struct {
	// Name is the listener's name in upper case, such as PLAINTEXT or INTERNAL.
	Name string
	// Host is a name or an address, an IPv6 one without brackets.
	Host string
	// Port is 0 where the system picks one.
	Port int32
	// Protocol is the security protocol that the protocol map gives to the name.
	Protocol SecurityProtocol
}

// Address is host:port, as net.Listen takes it.
func (l Listener) Address() string { return net.JoinHostPort(l.Host, strconv.Itoa(int(l.Port))) }

// listenerForm is name://host:port; the host may be empty or an IPv6 address in brackets.
var listenerForm = regexp.MustCompile(`^(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)$`)

// Listeners are the listeners of the broker. Those of a KRaft controller are left out: the store is built
// in, and nobody connects to it.
func (b *Broker) Listeners() []Listener {
	all, err := b.listeners("listeners")
	if err != nil {
		panic("BUG: listeners were not checked: " + err.Error())
	}
	return all
}

// Advertised are the addresses that clients are told, one for each advertised listener. Where a listener has
// no host, that is hostname, the name of this machine.
func (b *Broker) Advertised(hostname string) []Listener {
	name := "listeners"
	if len(b.List("advertised.listeners")) > 0 {
		name = "advertised.listeners"
	}
	all, err := b.listeners(name)
	if err != nil {
		panic("BUG: listeners were not checked: " + err.Error())
	}
	for i := range all {
		if all[i].Host == "" {
			all[i].Host = hostname
		}
	}
	return all
}

// InterBrokerListener is the name of the listener that other brokers connect to.
func (b *Broker) InterBrokerListener() string {
	if name := b.String("inter.broker.listener.name"); name != "" {
		return strings.ToUpper(name)
	}
	return b.String("security.inter.broker.protocol")
}

// ListenerLong is the value of a numeric property for one listener: its own, as in
// listener.name.internal.max.connections, else the broker's.
func (b *Broker) ListenerLong(listener, name string) int64 {
	own := "listener.name." + strings.ToLower(listener) + "." + name
	if k := lookup(ScopeBroker, own); k != nil && b.has(own) {
		if value, err := k.Parse(b.textOf(own)); err == nil {
			return value.number
		}
	}
	return b.Long(name)
}

func (b *Broker) has(name string) bool {
	_, static := b.static[name]
	_, perBroker := b.perBroker[name]
	_, clusterDefault := b.clusterDefault[name]
	return static || perBroker || clusterDefault
}

// listeners parses a property that holds listeners, without those of a controller.
func (b *Broker) listeners(name string) ([]Listener, error) {
	protocols, err := b.protocolMap()
	if err != nil {
		return nil, err
	}
	var all []Listener
	for _, text := range b.List(name) {
		l, err := parseListener(name, text)
		if err != nil {
			return nil, err
		}
		if b.controllerListener(l.Name) {
			continue
		}
		p, ok := protocols[l.Name]
		if !ok {
			return nil, invalid(name, text, fmt.Sprintf("No security protocol defined for listener %s; add it to listener.security.protocol.map", l.Name))
		}
		l.Protocol = p
		all = append(all, l)
	}
	return all, nil
}

func parseListener(key, text string) (Listener, error) {
	m := listenerForm.FindStringSubmatch(text)
	if m == nil {
		return Listener{}, invalid(key, text, "Unable to parse to a broker endpoint; the form is name://host:port")
	}
	port, err := strconv.ParseUint(m[3], 10, 16)
	if err != nil {
		return Listener{}, invalid(key, text, "The port must be between 0 and 65535")
	}
	return Listener{Name: strings.ToUpper(javaTrim(m[1])), Host: m[2], Port: int32(port)}, nil
}

// controllerListener reports whether the name is one of a KRaft controller's listeners.
func (b *Broker) controllerListener(name string) bool {
	return slices.ContainsFunc(b.List("controller.listener.names"), func(c string) bool { return strings.EqualFold(c, name) })
}

// protocolMap is listener.security.protocol.map by upper-case listener name.
func (b *Broker) protocolMap() (map[string]SecurityProtocol, error) {
	const key = "listener.security.protocol.map"
	protocols := map[string]SecurityProtocol{}
	for _, pair := range splitList(b.String(key)) {
		i := strings.LastIndexByte(pair, ':')
		if i < 0 {
			return nil, invalid(key, b.String(key), "Each entry should be in the form LISTENER:PROTOCOL")
		}
		p, ok := parseSecurityProtocol(javaTrim(pair[i+1:]))
		if !ok {
			return nil, protocol.Errorf(protocol.InvalidConfig, "Invalid security protocol `%s` defined in %s", pair[i+1:], key)
		}
		protocols[strings.ToUpper(javaTrim(pair[:i]))] = p
	}
	return protocols, nil
}

// checkListeners is what Kafka demands of the listeners together.
func (b *Broker) checkListeners() []error {
	listening, err := b.listeners("listeners")
	if err != nil {
		return []error{err}
	}
	advertised, err := b.listeners("advertised.listeners")
	if err != nil {
		return []error{err}
	}
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, protocol.Errorf(protocol.InvalidConfig, format, args...))
	}
	if b.has("inter.broker.listener.name") && b.has("security.inter.broker.protocol") {
		fault("Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.")
	}
	if len(listening) == 0 {
		fault("There must be at least one broker advertised listener: listeners has none besides those of the controller")
		return faults
	}
	if message := clash(listening); message != "" {
		fault("%s, listeners: %s", message, strings.Join(b.List("listeners"), ","))
	}
	if len(advertised) == 0 {
		advertised = listening
	}
	for _, a := range advertised {
		if !named(listening, a.Name) {
			fault("advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. Found %s. The valid options based on the current configuration are %s", a.Name, names(listening))
		}
		if address, err := netip.ParseAddr(a.Host); err == nil && address.IsUnspecified() {
			fault("advertised.listeners cannot use the nonroutable meta-address %s. Use a routable IP address.", a.Host)
		}
	}
	if !named(advertised, b.InterBrokerListener()) {
		fault("inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options based on currently configured listeners are %s", names(advertised))
	}
	return faults
}

func named(all []Listener, name string) bool {
	return slices.ContainsFunc(all, func(l Listener) bool { return l.Name == name })
}

func names(all []Listener) string {
	var list []string
	for _, l := range all {
		list = append(list, l.Name)
	}
	return strings.Join(list, ",")
}

// clash says what is wrong with two of the listeners: the same name, or the same port except where one is an
// IPv4 address and the other an IPv6 one.
func clash(all []Listener) string {
	for i, a := range all {
		for _, c := range all[:i] {
			if a.Name == c.Name {
				return "Each listener must have a different name"
			}
			if a.Port != c.Port || a.Port == 0 {
				continue
			}
			first, err1 := netip.ParseAddr(a.Host)
			second, err2 := netip.ParseAddr(c.Host)
			if err1 != nil || err2 != nil || first.Is4() == second.Is4() {
				return "Each listener must have a different port unless one has an IPv4 address and the other an IPv6 address"
			}
		}
	}
	return ""
}
