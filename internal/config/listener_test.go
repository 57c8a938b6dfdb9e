package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestListeners(t *testing.T) {
	b := load(t, `
listeners=internal://[::1]:9092, EXTERNAL://0.0.0.0:9093,LOCAL://127.0.0.1:9092,CTL://:9094
advertised.listeners=INTERNAL://[::1]:9092,EXTERNAL://broker.example.org:443
listener.security.protocol.map=INTERNAL:PLAINTEXT,external:sasl_ssl,LOCAL:PLAINTEXT
inter.broker.listener.name=internal
controller.listener.names=CTL
`)
	want := []Listener{{"INTERNAL", "::1", 9092, Plaintext}, {"EXTERNAL", "0.0.0.0", 9093, SASLSSL}, {"LOCAL", "127.0.0.1", 9092, Plaintext}}
	if diff := cmp.Diff(want, b.Listeners()); diff != "" {
		t.Error(diff)
	}
	want = []Listener{{"INTERNAL", "::1", 9092, Plaintext}, {"EXTERNAL", "broker.example.org", 443, SASLSSL}}
	if diff := cmp.Diff(want, b.Advertised("h")); diff != "" {
		t.Error(diff)
	}
	if b.InterBrokerListener() != "INTERNAL" || b.Listeners()[0].Address() != "[::1]:9092" || SASLSSL.String() != "SASL_SSL" {
		t.Error(b.InterBrokerListener())
	}
}

func TestAdvertisedWithoutHost(t *testing.T) {
	b := load(t, "num.partitions=1")
	if got := b.Advertised("my.host"); !cmp.Equal(got, []Listener{{"PLAINTEXT", "my.host", 9092, Plaintext}}) {
		t.Error(got)
	}
}

func TestListenersThatKafkaRefuses(t *testing.T) {
	for file, want := range map[string]string{
		"listeners=FOO":                                       "Unable to parse to a broker endpoint",
		"listeners=PLAINTEXT://:99999":                        "The port must be between 0 and 65535",
		"listeners=PLAINTEXT://:-1":                           "The port must be between 0 and 65535",
		"listeners=FOO://:9092":                               "No security protocol defined for listener FOO",
		"listeners=":                                          "Configuration 'listeners' must not be empty",
		"listeners=PLAINTEXT://0.0.0.0:1":                     "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address.",
		"listeners=PLAINTEXT://[::]:1":                        "advertised.listeners cannot use the nonroutable meta-address",
		"advertised.listeners=SSL://a:1":                      "Found SSL. The valid options based on the current configuration are PLAINTEXT",
		"listeners=SSL://a:1":                                 "inter.broker.listener.name must be a listener name defined in advertised.listeners",
		"listeners=PLAINTEXT://a:1,SSL://b:1":                 "Each listener must have a different port",
		"listeners=PLAINTEXT://127.0.0.1:1,SSL://127.0.0.2:1": "Each listener must have a different port",
		"listeners=PLAINTEXT://a:1,plaintext://a:2":           "Each listener must have a different name",
		"controller.listener.names=PLAINTEXT":                 "There must be at least one broker advertised listener",
		"listener.security.protocol.map=PLAINTEXT":            "LISTENER:PROTOCOL",
		"listener.security.protocol.map=PLAINTEXT:FOO":        "Invalid security protocol `FOO` defined in listener.security.protocol.map",
		"inter.broker.listener.name=PLAINTEXT\nsecurity.inter.broker.protocol=PLAINTEXT": "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
		"max.connections.per.ip.overrides=foo":                                           "host:connections",
		"max.connections.per.ip.overrides=foo:x":                                         "Not a number of connections",
		"max.connections.per.ip=0":                                                       "max.connections.per.ip can be set to zero only if",
		"cluster.id=short":                                                               "22 characters",
		"cordoned.log.dirs=/nosuch":                                                      "Missing entries : /nosuch",
		"queued.max.request.bytes=5":                                                     "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
		"log.cleaner.dedupe.buffer.size=5":                                               "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
		"log.retention.ms=0":                                                             "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
		"group.consumer.session.timeout.ms=1":                                            "group.consumer.min.session.timeout.ms must be less than or equal to group.consumer.session.timeout.ms",
		"group.share.heartbeat.interval.ms=50000\ngroup.share.max.heartbeat.interval.ms=50000": "group.share.heartbeat.interval.ms must be less than group.share.session.timeout.ms",
		"connection.failed.authentication.delay.ms=700000":                                     "should always be less than connections.max.idle.ms",
	} {
		_, _, err := Load(LoadOptions{Reader: strings.NewReader(file)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\nwant %q", file, err, want)
		}
	}
}

func TestConnectionsPerIP(t *testing.T) {
	limits, err := load(t, "max.connections.per.ip.overrides=127.0.0.1:200, ::1:3").ConnectionsPerIP()
	if err != nil || !cmp.Equal(limits, map[string]int32{"127.0.0.1": 200, "::1": 3}) {
		t.Error(limits, err)
	}
}
