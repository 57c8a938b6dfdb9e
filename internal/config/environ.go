package config

import (
	"regexp"
	"slices"
	"strings"
)

// variable is an environment variable that sets a property.
type variable struct{ variable, name, text string }

// notProperties are the variables with Kafka's prefix that its scripts and images use for other things.
var notProperties = []string{
	"KAFKA_BASE_DIR", "KAFKA_CLASSPATH", "KAFKA_CONF_DIR", "KAFKA_DEBUG", "KAFKA_GC_LOG_OPTS", "KAFKA_HEAP_OPTS", "KAFKA_HOME",
	"KAFKA_HOST", "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_MODE", "KAFKA_OPTS", "KAFKA_PATH", "KAFKA_TOOLS_LOG4J_LOGLEVEL", "KAFKA_URI", "KAFKA_VERSION",
}

// kubernetes matches what a cluster puts into the environment of every pod for a service named kafka.
var kubernetes = regexp.MustCompile(`^KAFKA_([A-Z0-9_]+_)?(SERVICE_(HOST|PORT)(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP)(_(ADDR|PORT|PROTO))?)?)$`)

// environmentSettings are the properties that variables set, in the order of their names. KAFKA_CFG_X stands
// back behind KAFKA_X, and the images' name of the log level behind our own.
//
// Unset and empty are different: an empty variable sets the property to the empty text.
func environmentSettings(environ []string) []variable {
	values := map[string]string{}
	for _, entry := range environ {
		if name, text, ok := strings.Cut(entry, "="); ok {
			values[name] = text
		}
	}
	var settings []variable
	add := func(name, property string) { settings = append(settings, variable{name, property, values[name]}) }
	for name := range values {
		switch {
		case name == "CLUSTER_ID":
			add(name, "cluster.id")
		case name == "KAFKA_LOG4J_ROOT_LOGLEVEL":
			if _, ok := values["KAFKA_LOGGING_LEVEL"]; !ok {
				add(name, "logging.level")
			}
		case !strings.HasPrefix(name, "KAFKA_"), slices.Contains(notProperties, name), kubernetes.MatchString(name),
			strings.HasPrefix(name, "KAFKA_JMX_"), strings.HasPrefix(name, "KAFKA_LOG4J_"):
		case strings.HasPrefix(name, "KAFKA_CFG_"):
			if _, ok := values["KAFKA_"+name[len("KAFKA_CFG_"):]]; !ok {
				add(name, propertyOf(name[len("KAFKA_CFG_"):]))
			}
		default:
			add(name, propertyOf(name[len("KAFKA_"):]))
		}
	}
	slices.SortFunc(settings, func(a, b variable) int { return strings.Compare(a.variable, b.variable) })
	return settings
}

// underscores are the substitutions of Kafka's images; the longest goes first.
var underscores = strings.NewReplacer("___", "-", "__", "_", "_", ".")

// propertyOf is the property that a variable without its prefix names.
func propertyOf(name string) string {
	property := underscores.Replace(strings.ToLower(name))
	if lookup(ScopeBroker, property) == nil {
		for i := range table().broker {
			if strings.EqualFold(table().broker[i].Name, property) { // zookeeper.clientCnxnSocket
				return table().broker[i].Name
			}
		}
	}
	return property
}
