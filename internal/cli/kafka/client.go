package kafka

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/magiconair/properties"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// bootstrapFlag is --bootstrap-server.
func bootstrapFlag() flag {
	return flag{names: []string{"bootstrap-server"}, argument: "host:port", doc: "the broker to begin with, or several with commas"}
}

// commandConfigFlag is --command-config.
func commandConfigFlag(older ...string) flag {
	return flag{names: append([]string{"command-config"}, older...), argument: "file", doc: "properties of the client"}
}

// loadProperties reads a file of client properties; Kafka's tools expand no ${} in them.
func loadProperties(file string) (map[string]string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	loaded, err := loader.LoadBytes(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return loaded.Map(), nil
}

// keyValues reads key=value arguments; a key without a value is empty.
func keyValues(given []string) map[string]string {
	pairs := map[string]string{}
	for _, pair := range given {
		key, value, _ := strings.Cut(pair, "=")
		pairs[key] = value
	}
	return pairs
}

// clientProperties are what the file of --command-config says.
func (t *call) clientProperties() (map[string]string, error) {
	if !t.has("command-config") {
		return map[string]string{}, nil
	}
	return loadProperties(t.value("command-config"))
}

// dialWithin makes a client whose operations end within some time.
func (t *call) dialWithin(timeout time.Duration) (*admin.Client, error) {
	props, err := t.clientProperties()
	if err != nil {
		return nil, err
	}
	props["default.api.timeout.ms"] = strconv.FormatInt(timeout.Milliseconds(), 10)
	return t.connect(props)
}

// connect makes a client with the properties of a Java client. What would be ignored silently although
// somebody relies on it, such as encryption, is refused.
//
//	bootstrap.servers      where the tool has no flag for it, or the flag is not given
//	security.protocol      anything but PLAINTEXT is refused
//	client.id              else the tool's name, by which the broker logs and meters it
//	default.api.timeout.ms how long an operation may take
//
// Other properties of a Java client have no meaning to this one, and are taken without a word: files are shared
// between tools, and most of what stands in them is about others.
func (t *call) connect(props map[string]string, options ...kgo.Opt) (*admin.Client, error) {
	bootstrap := props["bootstrap.servers"]
	if t.find("bootstrap-server") != nil {
		bootstrap = cmp.Or(t.value("bootstrap-server"), bootstrap)
	}
	if protocol := cmp.Or(props["security.protocol"], "PLAINTEXT"); !strings.EqualFold(protocol, "PLAINTEXT") {
		return nil, fmt.Errorf("security.protocol=%s is not there yet: only PLAINTEXT is", protocol)
	}
	o := admin.Options{
		Bootstrap: strings.Split(strings.ReplaceAll(bootstrap, " ", ""), ","), Version: t.Version,
		ClientID: cmp.Or(props["client.id"], t.tool.name), Client: options,
	}
	if ms, err := strconv.ParseInt(props["default.api.timeout.ms"], 10, 64); err == nil && ms > 0 {
		o.Timeout = time.Duration(ms) * time.Millisecond
	}
	return admin.New(o)
}

// dial makes a client for a tool that has --bootstrap-server and --command-config.
func (t *call) dial(options ...kgo.Opt) (*admin.Client, error) {
	props, err := t.clientProperties()
	if err != nil {
		return nil, err
	}
	return t.connect(props, options...)
}
