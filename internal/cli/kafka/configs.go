package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// configsTool is kafka-configs: --describe or --alter of properties, quotas and SCRAM credentials.
//
//	topics, brokers, broker-loggers, client-metrics, groups   DescribeConfigs, IncrementalAlterConfigs
//	users, clients, ips                                       DescribeClientQuotas, AlterClientQuotas
//	users with SCRAM-…                                        Describe- and AlterUserScramCredentials
//
// An alteration prints one line, "Completed updating config for topic t."; errors are one line on standard
// error and status 1. Setting what is set already, and deleting what is not, are no errors.
func configsTool() *tool {
	return &tool{
		name: "kafka-configs",
		summary: "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, " +
			"client-metrics or group",
		flags: configsFlags(),
		run:   runConfigs,
		fail: func(t *call, err error) int {
			var bad badArgument
			switch {
			case told(err):
				return t.failPlainly(err)
			case errors.As(err, &bad):
				fmt.Fprintln(t.Err, bad.message)
			default:
				fmt.Fprintf(t.Err, "Error while executing config command: %s\n", javaError(err))
			}
			return 1
		},
	}
}

// entity is a kind of thing that has properties, with the flags that mean one, or the defaults of all.
type entity struct {
	kind, flag, defaults string
}

// entities are the kinds of things, in the order of the tool.
func entities() []entity {
	return []entity{
		{"topics", "topic", ""},
		{"clients", "client", "client-defaults"},
		{"users", "user", "user-defaults"},
		{"brokers", "broker", "broker-defaults"},
		{"broker-loggers", "broker-logger", ""},
		{"ips", "ip", "ip-defaults"},
		{"client-metrics", "client-metrics", ""},
		{"groups", "group", ""},
	}
}

func configsFlags() []flag {
	flags := []flag{
		bootstrapFlag(),
		{names: []string{"bootstrap-controller"}, argument: "host:port", doc: "has no meaning here"},
		commandConfigFlag(),
		{names: []string{"alter"}, doc: "change properties"},
		{names: []string{"describe"}, doc: "show properties"},
		{names: []string{"all"}, doc: "show those too that nobody set"},
		{names: []string{"entity-type"}, argument: "type", many: true, doc: "topics, clients, users, brokers, " +
			"broker-loggers, ips, client-metrics or groups"},
		{names: []string{"entity-name"}, argument: "name", many: true, doc: "the name, or the broker's id"},
		{names: []string{"entity-default"}, doc: "the defaults of all clients, users, brokers or ips"},
		{names: []string{"add-config"}, argument: "k1=v1,k2=[v2,v3]", doc: "what to set; brackets around a value with commas"},
		{names: []string{"add-config-file"}, argument: "file", doc: "a properties file with what to set"},
		{names: []string{"delete-config"}, argument: "k1,k2", many: true, doc: "what to take back to its default"},
	}
	for _, e := range entities() {
		flags = append(flags, flag{names: []string{e.flag}, argument: "name", doc: "short for --entity-type " + e.kind + " --entity-name"})
		if e.defaults != "" {
			flags = append(flags, flag{names: []string{e.defaults}, doc: "short for --entity-type " + e.kind + " --entity-default"})
		}
	}
	return flags
}

// subject is what a command line is about: kinds of things, and the names of some of them. The empty name
// stands for the defaults.
type subject struct{ kinds, names []string }

// named reports whether there is a name that is not empty, and whether there is one that is.
func (s subject) named() (name, defaults bool) {
	for _, n := range s.names {
		name, defaults = name || n != "", defaults || n == ""
	}
	return name, defaults
}

func (s subject) has(kinds ...string) bool {
	return slices.ContainsFunc(kinds, func(kind string) bool { return slices.Contains(s.kinds, kind) })
}

// subjectOf reads what the command line is about.
//
// The order of the flags means something: --entity-type users --entity-name a --entity-type clients
// --entity-default is the default of all clients of user a. Types and names are matched in the order in which
// they were given, which is why arguments keep it.
func subjectOf(t *call) subject {
	s := subject{kinds: slices.Clone(t.all("entity-type"))}
	names := slices.Clone(t.all("entity-name"))
	for _, name := range t.order {
		switch {
		case name == "entity-name" && len(names) > 0:
			s.names, names = append(s.names, names[0]), names[1:]
		case name == "entity-default":
			s.names = append(s.names, "")
		}
	}
	for _, e := range entities() {
		if t.has(e.flag) {
			s.kinds, s.names = append(s.kinds, e.kind), append(s.names, t.value(e.flag))
		}
	}
	for _, e := range entities() {
		if e.defaults != "" && t.has(e.defaults) {
			s.kinds, s.names = append(s.kinds, e.kind), append(s.names, "")
		}
	}
	return s
}

func runConfigs(ctx context.Context, t *call) error {
	if t.count("alter", "describe") != 1 {
		return usagef("Command must include exactly one action: --describe, --alter")
	}
	if err := t.exclude("describe", "add-config", "delete-config"); err != nil {
		return err
	}
	s := subjectOf(t)
	if err := checkSubject(t, s); err != nil {
		return err
	}
	if t.has("alter") {
		if err := checkAlteration(t, s); err != nil {
			return err
		}
	}
	client, err := t.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	if t.has("alter") {
		return alterConfigs(ctx, t, client, s)
	}
	return describeConfigs(ctx, t, client, s)
}

// checkSubject refuses kinds that there are not or that do not go together, and names that cannot be.
func checkSubject(t *call, s subject) error {
	var kinds []string
	short := false
	for _, e := range entities() {
		kinds = append(kinds, e.kind)
		short = short || t.has(e.flag) || e.defaults != "" && t.has(e.defaults)
	}
	name, _ := s.named()
	bad := func(format string, a ...any) error { return badArgument{fmt.Sprintf(format, a...)} }
	switch {
	case len(s.kinds) != len(slices.Compact(slices.Sorted(slices.Values(s.kinds)))):
		return bad("Duplicate entity type(s) specified: %s", strings.Join(s.kinds, ","))
	case t.count("bootstrap-server", "bootstrap-controller") == 0:
		return bad("Either --bootstrap-server or --bootstrap-controller must be specified.")
	case t.has("bootstrap-controller"):
		return bad("There are no controllers to connect to here: give --bootstrap-server")
	}
	for _, kind := range s.kinds {
		if !slices.Contains(kinds, kind) {
			return bad("Invalid entity type %s, the entity type must be one of %s with a --bootstrap-server or "+
				"--bootstrap-controller argument", kind, strings.Join(kinds, ", "))
		}
	}
	switch {
	case len(s.kinds) == 0:
		return bad("At least one entity type must be specified")
	case len(s.kinds) > 1 && !(len(s.kinds) == 2 && s.has("users") && s.has("clients")):
		return bad("Only 'users' and 'clients' entity types may be specified together")
	case short && t.count("entity-name", "entity-type", "entity-default") > 0:
		return bad("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
	case t.has("describe") && t.has("entity-default") && !s.has("users", "clients", "brokers", "ips"):
		return bad("--entity-default must not be specified with --describe of %s", strings.Join(s.kinds, ","))
	case t.has("describe") && s.has("broker-loggers") && !name:
		return bad("An entity name must be specified with --describe of %s", strings.Join(s.kinds, ","))
	}
	return checkNames(s)
}

func checkNames(s subject) error {
	for _, name := range s.names {
		if name == "" {
			continue
		}
		if _, err := strconv.ParseInt(name, 10, 32); err != nil && s.has("brokers", "broker-loggers") {
			return badArgument{fmt.Sprintf("The entity name for %s must be a valid integer broker id, "+
				"but it is: %s", s.kinds[0], name)}
		}
		if s.has("ips") && net.ParseIP(name) == nil {
			if _, err := net.LookupHost(name); err != nil {
				return badArgument{fmt.Sprintf("The entity name for %s must be a valid IP or resolvable host, "+
					"but it is: %s", s.kinds[0], name)}
			}
		}
	}
	return nil
}

// checkAlteration refuses an alteration of nothing, or without any change.
func checkAlteration(t *call, s subject) error {
	name, defaults := s.named()
	switch {
	case s.has("users", "clients", "brokers", "ips") && !name && !defaults:
		return badArgument{"An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"}
	case !s.has("users", "clients", "brokers", "ips") && !name:
		return badArgument{"An entity name must be specified with --alter of " + strings.Join(s.kinds, ",")}
	case t.has("add-config") && t.has("add-config-file"):
		return badArgument{"Only one of --add-config or --add-config-file must be specified"}
	case t.count("add-config", "add-config-file", "delete-config") == 0:
		return badArgument{"At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"}
	case len(s.kinds) != len(s.names):
		return badArgument{"An entity name must be specified for every entity type"}
	}
	return nil
}

// resourceTypes are the kinds that have properties in the request's words; users, clients and ips have
// quotas instead.
func resourceType(kind string) (kmsg.ConfigResourceType, bool) {
	switch kind {
	case "topics":
		return kmsg.ConfigResourceTypeTopic, true
	case "brokers":
		return kmsg.ConfigResourceTypeBroker, true
	case "broker-loggers":
		return kmsg.ConfigResourceTypeBrokerLogger, true
	case "client-metrics":
		return kmsg.ConfigResourceTypeClientMetrics, true
	case "groups":
		return kmsg.ConfigResourceTypeGroupConfig, true
	}
	return 0, false
}

func alterConfigs(ctx context.Context, t *call, client *admin.Client, s subject) error {
	set, err := configsToSet(t)
	if err != nil {
		return err
	}
	var remove []string
	for _, list := range t.all("delete-config") {
		for _, key := range strings.Split(list, ",") {
			remove = append(remove, strings.TrimSpace(key))
		}
	}
	if kind, ok := resourceType(s.kinds[0]); ok {
		err = alterResource(ctx, client, kind, s.names[0], set, remove)
	} else {
		err = alterQuotas(ctx, client, s, set, remove)
	}
	if err != nil {
		return err
	}
	if s.names[0] == "" {
		t.printf("Completed updating default config for %s in the cluster.\n", s.kinds[0])
		return nil
	}
	t.printf("Completed updating config for %s %s.\n", s.kinds[0][:len(s.kinds[0])-1], s.names[0])
	return nil
}

// configsToSet are the properties of --add-config or of the file.
//
// Brackets protect commas and equals signs: cleanup.policy=[compact,delete]. They are taken away wherever they
// stand.
func configsToSet(t *call) (map[string]string, error) {
	set := map[string]string{}
	if t.has("add-config-file") {
		loaded, err := loadProperties(t.value("add-config-file"))
		if err != nil {
			return nil, err
		}
		set = loaded
	}
	if t.has("add-config") {
		for _, pair := range splitOutside(t.value("add-config"), ',') {
			parts := splitOutside(pair, '=')
			if len(parts) != 2 {
				return nil, badArgument{`Invalid entity config: all configs to be added must be in the format "key=val" or  ` +
					`"key=[val1,val2]" to group values which contain commas.`}
			}
			set[strings.TrimSpace(parts[0])] = strings.TrimSpace(strings.NewReplacer("[", "", "]", "").Replace(parts[1]))
		}
	}
	for key := range set {
		if strings.ContainsFunc(key, func(r rune) bool {
			return !strings.ContainsRune("$._-", r) && (r > 'z' || r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a')
		}) {
			return nil, badArgument{"Invalid character found for config key: " + key}
		}
	}
	return set, nil
}

// splitOutside splits at a separator that is not in brackets.
func splitOutside(text string, separator rune) []string {
	var parts []string
	depth, from := 0, 0
	for i, r := range text {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		case separator:
			if depth == 0 {
				parts = append(parts, text[from:i])
				from = i + len(string(r))
			}
		}
	}
	return append(parts, text[from:])
}

func alterResource(
	ctx context.Context, client *admin.Client, kind kmsg.ConfigResourceType, name string, set map[string]string, remove []string,
) error {
	var ops []admin.ConfigOp
	for _, key := range remove {
		ops = append(ops, admin.ConfigOp{Name: key, Kind: kmsg.IncrementalAlterConfigOpDelete})
	}
	for key, value := range set {
		ops = append(ops, admin.ConfigOp{Name: key, Kind: kmsg.IncrementalAlterConfigOpSet, Value: &value})
	}
	return client.AlterConfigs(ctx, kind, name, ops, false)
}
