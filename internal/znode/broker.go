package znode

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Stop says how a broker's earlier life ended, which decides whether its logs may be trusted in an
// election. It is a key of ours in the registration; brokers of Kafka's do not write it.
type Stop string

// The ways in which a broker stops.
const (
	// StopUnknown: the broker did not say.
	StopUnknown Stop = ""
	// StopNever: there was no earlier life, the directories are new.
	StopNever Stop = "never"
	// StopClean: everything had been synced.
	StopClean Stop = "clean"
	// StopKilled: the process was killed, but the kernel is the same, so its page cache survived.
	StopKilled Stop = "killed"
	// StopUnclean: the machine went down; what was not synced may be missing.
	StopUnclean Stop = "unclean"
)

// Registration is the content of /brokers/ids/N, an ephemeral znode. Its czxid is the broker's epoch.
// One transaction creates it without data and then sets it, so its data version is 1. Host and port are
// those of the first endpoint whose protocol is PLAINTEXT, else null and -1. Rack is left out where there
// is none; it came with version 3, the protocol map with 4, features with 5 (Kafka 2.7):
//
//	{"features":{},
//	 "listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT","SASL":"SASL_PLAINTEXT"},
//	 "endpoints":["PLAINTEXT://127.0.0.1:9092","SASL://127.0.0.1:9094"],
//	 "rack":"rack-1","jmx_port":-1,"port":9092,"host":"127.0.0.1","version":5,
//	 "timestamp":"1795981340739"}
//
// Barnabas adds "barnabas_stopped":"clean".
type Registration struct {
	// Broker is what the cluster sees of the broker; its Epoch is not part of the JSON.
	metadata.Broker
	// Timestamp is when it registered, in milliseconds since 1970.
	Timestamp int64
	// Stopped says how its earlier life ended.
	Stopped Stop
}

// BrokerPath is the registration of one broker.
func BrokerPath(id P.BrokerID) string { return BrokersPath + "/" + strconv.Itoa(int(id)) }

// ParseBrokerName reads the name of a child of /brokers/ids.
func ParseBrokerName(name string) (P.BrokerID, error) {
	n, err := strconv.ParseInt(name, 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s/%s is not named after a broker id", BrokersPath, name)
	}
	return P.BrokerID(n), nil
}

// EncodeRegistration writes the znode.
func EncodeRegistration(r Registration) []byte {
	dst := []byte(`{"features":{`)
	for _, name := range sortedKeys(r.Features) {
		dst = appendKey(dst, name)
		dst = fmt.Appendf(dst, `{"min_version":%d,"max_version":%d}`, r.Features[name].Min, r.Features[name].Max)
	}
	dst = append(dst, `},"listener_security_protocol_map":{`...)
	for _, e := range r.Endpoints {
		dst = appendText(appendKey(dst, e.Listener), e.Protocol.String())
	}
	dst = append(dst, `},"endpoints":[`...)
	host, port := []byte("null"), int32(-1)
	for i, e := range r.Endpoints {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, e.Listener+"://"+net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))))
		if port < 0 && e.Protocol == metadata.Plaintext {
			host, port = appendText(nil, e.Host), e.Port
		}
	}
	dst = append(dst, ']')
	if r.Rack != nil {
		dst = appendText(append(dst, `,"rack":`...), *r.Rack)
	}
	dst = fmt.Appendf(dst, `,"jmx_port":-1,"port":%d,"host":%s,"version":5,"timestamp":"%d"`, port, host, r.Timestamp)
	if r.Stopped != StopUnknown {
		dst = appendText(append(dst, `,"barnabas_stopped":`...), string(r.Stopped))
	}
	return append(dst, '}')
}

// registrationJSON is what DecodeRegistration looks for.
type registrationJSON struct {
	Features map[string]struct {
		Min int16 `json:"min_version"`
		Max int16 `json:"max_version"`
	} `json:"features"`
	Protocols map[string]string `json:"listener_security_protocol_map"`
	Endpoints []string          `json:"endpoints"`
	Rack      *string           `json:"rack"`
	Host      *string           `json:"host"`
	Port      int32             `json:"port"`
	Timestamp string            `json:"timestamp"`
	Stopped   Stop              `json:"barnabas_stopped"`
}

// DecodeRegistration reads the znode of broker id; epoch is the czxid of its Stat.
func DecodeRegistration(id P.BrokerID, epoch P.BrokerEpoch, data []byte) (Registration, error) {
	var v registrationJSON
	if err := decode(BrokerPath(id), data, &v); err != nil {
		return Registration{}, err
	}
	r := Registration{Broker: metadata.Broker{ID: id, Epoch: epoch, Rack: v.Rack}, Stopped: v.Stopped, Timestamp: -1}
	if ms, err := strconv.ParseInt(v.Timestamp, 10, 64); err == nil {
		r.Timestamp = ms
	}
	for name, levels := range v.Features {
		if r.Features == nil {
			r.Features = make(map[string]metadata.VersionRange, len(v.Features))
		}
		r.Features[name] = metadata.VersionRange{Min: levels.Min, Max: levels.Max}
	}
	if len(v.Endpoints) == 0 && v.Host != nil { // version 1
		r.Endpoints = []metadata.Endpoint{{Listener: metadata.Plaintext.String(), Host: *v.Host, Port: v.Port}}
	}
	for _, text := range v.Endpoints {
		e, err := parseEndpoint(text, v.Protocols)
		if err != nil {
			return Registration{}, fmt.Errorf("%s: %w", BrokerPath(id), err)
		}
		r.Endpoints = append(r.Endpoints, e)
	}
	return r, nil
}

// parseEndpoint reads LISTENER://host:port; a listener that the map does not know is named after its
// protocol, as all were before version 4.
func parseEndpoint(text string, protocols map[string]string) (metadata.Endpoint, error) {
	listener, address, ok := strings.Cut(text, "://")
	if !ok {
		return metadata.Endpoint{}, fmt.Errorf("endpoint %q is not LISTENER://host:port", text)
	}
	host, digits, err := net.SplitHostPort(address)
	if err != nil {
		return metadata.Endpoint{}, fmt.Errorf("endpoint %q: %w", text, err)
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return metadata.Endpoint{}, fmt.Errorf("endpoint %q: %w", text, err)
	}
	name := protocols[listener]
	if name == "" {
		name = listener
	}
	security, err := metadata.ParseSecurityProtocol(name)
	if err != nil {
		return metadata.Endpoint{}, fmt.Errorf("endpoint %q: %w", text, err)
	}
	return metadata.Endpoint{Listener: listener, Host: host, Port: int32(port), Protocol: security}, nil
}
