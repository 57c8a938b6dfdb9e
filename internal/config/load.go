package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// LoadOptions says where a broker's configuration comes from. All of it may be empty.
type LoadOptions struct {
	// File is the path of a server.properties; empty for none.
	File string
	// Reader is read instead of File where it is not nil; File is then only its name.
	Reader io.Reader
	// Environ are variables as os.Environ gives them.
	Environ []string
	// Overrides are key=value, as the command line gives them; the last of a key wins.
	Overrides []string
	// Defaults are key=value, and count where there is no File and nothing else says anything: they take the
	// place of the table's defaults, as those of a container image do.
	Defaults []string
}

// Warning is something that does not stop the start.
type Warning struct {
	// Key is the property that it is about.
	Key string
	// Message is the sentence to log.
	Message string
}

// quickDefaults replace the table's defaults where there is no property file, so that a broker that somebody
// just starts can be reached from this machine only, and keeps its data beside where it was started. With a
// file, what it leaves out means what it means to Kafka.
func quickDefaults() map[string]string {
	return map[string]string{"listeners": "PLAINTEXT://127.0.0.1:9092", "log.dirs": "./data"}
}

// Load reads the configuration of a broker: the command line beats the environment, that the file, and the
// file the defaults. The error names every fault at once, each with property, value, reason and place.
// Unknown properties only warn.
func Load(o LoadOptions) (*Broker, []Warning, error) {
	l := loading{static: map[string]setting{}, places: map[string]string{}}
	if err := l.file(o); err != nil {
		return nil, nil, err
	}
	l.environment(o.Environ)
	l.overrides(o.Overrides)
	l.sameNode()
	implied := map[string]string{}
	if o.File == "" && o.Reader == nil {
		implied = l.quick(o.Defaults)
	}
	b := &Broker{static: l.static, implied: implied}
	l.checkValues()
	_ = b.evaluate() // checkValues has reported the same faults with their places
	l.faults = append(l.faults, b.conflicts()...)
	if len(l.faults) > 0 {
		return nil, l.warnings, errors.Join(l.faults...)
	}
	return b, l.warnings, nil
}

// loading is the state of one Load.
//
// A layer overwrites those before it, so that static always has the strongest, and places where that one
// stands. Faults are collected, not returned: a person who mends a file wants to know all of them.
type loading struct {
	static   map[string]setting
	places   map[string]string // where each setting was found, for messages
	faults   []error
	warnings []Warning
}

// set takes a setting over what weaker layers said.
func (l *loading) set(name, text string, origin Origin, place string) {
	l.static[name] = setting{text, origin}
	l.places[name] = place
}

func (l *loading) file(o LoadOptions) error {
	var data []byte
	var err error
	switch {
	case o.Reader != nil:
		data, err = io.ReadAll(o.Reader)
	case o.File != "":
		data, err = os.ReadFile(o.File)
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	properties, err := parseProperties(data)
	if err != nil {
		return fmt.Errorf("%s is no property file: %w", o.File, err)
	}
	for name, text := range properties {
		l.set(name, text, OriginFile, o.File)
	}
	return nil
}

func (l *loading) environment(environ []string) {
	for _, v := range environmentSettings(environ) {
		if lookup(ScopeBroker, v.name) == nil {
			l.warnings = append(l.warnings, Warning{v.name, fmt.Sprintf("%s: no property is named %s%s", v.variable, v.name, suggestion(v.name))})
			continue
		}
		l.set(v.name, v.text, OriginEnvironment, v.variable)
	}
}

func (l *loading) overrides(overrides []string) {
	for _, o := range overrides {
		if name, text, ok := l.pair("--override", o); ok {
			l.set(name, text, OriginFlag, "--override")
		}
	}
}

// pair takes key=value apart; what is none is a fault of the flag that it came with.
func (l *loading) pair(flag, given string) (name, text string, ok bool) {
	name, text, ok = strings.Cut(given, "=")
	if name = javaTrim(name); !ok || name == "" {
		l.faults = append(l.faults, protocol.Errorf(protocol.InvalidConfig, "%s %s: the form is key=value", flag, given))
		return "", "", false
	}
	return name, text, true
}

// sameNode makes node.id and broker.id, which Kafka treats as two names of one property, equal.
func (l *loading) sameNode() {
	node, hasNode := l.static["node.id"]
	broker, hasBroker := l.static["broker.id"]
	switch {
	case !hasNode && !hasBroker:
	case hasNode && hasBroker && node.origin == broker.origin && javaTrim(node.text) != javaTrim(broker.text):
		l.faults = append(l.faults, protocol.Errorf(protocol.InvalidConfig,
			"`node.id` and `broker.id` must be set to the same value: they are %s and %s", node.text, broker.text))
	case !hasNode || hasBroker && broker.origin > node.origin:
		l.set("node.id", broker.text, broker.origin, l.places["broker.id"])
	default:
		l.set("broker.id", node.text, node.origin, l.places["node.id"])
	}
}

// quick are the defaults of a broker without a file: the table's, ours, and over both those that were given. Where
// only advertised.listeners is set, the broker listens on the same ports of all interfaces, as Kafka's container
// image does; where only listeners is, a default of what to advertise would be about other listeners.
//
// Defaults must not look like settings: IsSet is false for them, and a change of another property may still
// override them.
func (l *loading) quick(defaults []string) map[string]string {
	implied := quickDefaults()
	for _, d := range defaults {
		if name, text, ok := l.pair("--default", d); ok {
			l.checkDefault(name, text)
			implied[name] = text
		}
	}
	if _, ok := l.static["listeners"]; ok {
		delete(implied, "advertised.listeners")
		return implied
	}
	var listening []string
	for _, text := range splitList(javaTrim(l.static["advertised.listeners"].text)) {
		if a, err := parseListener("advertised.listeners", text); err == nil {
			listening = append(listening, fmt.Sprintf("%s://:%d", a.Name, a.Port))
		}
	}
	if len(listening) > 0 {
		implied["listeners"] = strings.Join(listening, ",")
	}
	return implied
}

// checkDefault notes what is wrong with a default. An unknown name is a fault here, not a warning as elsewhere:
// defaults are written for this program.
func (l *loading) checkDefault(name, text string) {
	k := lookup(ScopeBroker, name)
	if k == nil {
		l.faults = append(l.faults, protocol.Errorf(protocol.InvalidConfig, "--default: no property is named %s%s", name, suggestion(name)))
		return
	}
	if _, err := k.Parse(text); err != nil {
		l.faults = append(l.faults, fmt.Errorf("%w (--default)", err))
	}
}

// checkValues parses every setting, and warns of those that nobody knows.
func (l *loading) checkValues() {
	for _, name := range slices.Sorted(maps.Keys(l.static)) {
		s := l.static[name]
		k := lookup(ScopeBroker, name)
		if k == nil {
			l.warnings = append(l.warnings, Warning{name, fmt.Sprintf("no property is named %s%s (%s)", name, suggestion(name), l.places[name])})
			continue
		}
		if _, err := k.Parse(s.text); err != nil {
			l.faults = append(l.faults, fmt.Errorf("%w (%s)", err, place(l.places[name])))
		}
	}
}

// place names where a setting stands; a reader without a name is still a file to the user.
func place(p string) string {
	if p == "" {
		return "property file"
	}
	return p
}

// suggestion is the known name that an unknown one was probably meant to be.
func suggestion(name string) string {
	best, distance := "", 3
	for i := range table().broker {
		if d := editDistance(name, table().broker[i].Name, distance); d < distance {
			best, distance = table().broker[i].Name, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// editDistance is how many letters have to change to make a of b, or limit where it is at least that.
func editDistance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit || len(a) > 128 {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return min(row[len(b)], limit)
}
