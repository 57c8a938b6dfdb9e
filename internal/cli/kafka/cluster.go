package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// clusterTool is kafka-cluster, whose commands stand before their flags:
//
//	cluster-id              Cluster ID: <id>
//	unregister              forgets a broker that is gone, in clusters that keep registrations (KRaft)
//	unregister-controller   is not known to this cluster, and says so
//	list-endpoints          a table of the brokers
//	api-versions            as kafka-broker-api-versions
//
// Help ends with status 1, and so does any error; the clusters that know no registrations are no error.
func clusterTool() *tool {
	return &tool{name: "kafka-cluster", bare: runCluster}
}

// clusterCommands are what the tool can do.
var clusterCommands = [...]string{"cluster-id", "unregister", "unregister-controller", "list-endpoints", "api-versions"}

const clusterUsage = `usage: kafka-cluster [-h] {cluster-id,unregister,unregister-controller,list-endpoints,api-versions} ...
`

// runCluster takes a command and its flags, in the manner of another parser than that of the other tools:
// what is wrong with the command line is told after "error:".
func runCluster(ctx context.Context, t *call, given []string) int {
	if len(given) > 0 && (given[0] == "-h" || given[0] == "--help") {
		t.printf("%s", clusterUsage)
		return 1 // as the parser of Kafka's tool does
	}
	err := clusterCommand(ctx, t, given)
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(t.Err, "%skafka-cluster: error: %s\n", clusterUsage, usage.message)
	default:
		fmt.Fprintln(t.Err, javaError(err))
	}
	return 1
}

func clusterFlags() []flag {
	return []flag{
		{names: []string{"bootstrap-server", "b"}, argument: "host:port", doc: "the brokers to begin with"},
		{names: []string{"bootstrap-controller", "C"}, argument: "host:port", doc: "has no meaning here"},
		{names: []string{"config"}, argument: "file", doc: "older name of --command-config"},
		commandConfigFlag("c"),
		{names: []string{"id", "i"}, argument: "id", kind: integer, doc: "the broker or controller"},
		{names: []string{"include-fenced-brokers"}, doc: "list fenced brokers too"},
	}
}

func clusterCommand(ctx context.Context, t *call, given []string) error {
	if len(given) == 0 {
		return usageError{"too few arguments"}
	}
	if !slices.Contains(clusterCommands[:], given[0]) {
		return usagef("argument command: invalid choice: '%s' (choose "+
			"from '%s')", given[0], strings.Join(clusterCommands[:], "', '"))
	}
	var err error
	if t.arguments, err = parse(clusterFlags(), given[1:]); err != nil {
		return err
	}
	switch {
	case t.has("bootstrap-controller"):
		return sentence("There are no controllers to connect to here: give --bootstrap-server")
	case !t.has("bootstrap-server"):
		return usageError{"one of the arguments --bootstrap-server/-b --bootstrap-controller/-C is required"}
	case strings.HasPrefix(given[0], "unregister") && !t.has("id"):
		return usageError{"argument --id/-i is required"}
	}
	if t.has("config") {
		t.printf("Option --config has been deprecated and will be removed in a future version. Use --command-config instead.\n")
		t.values["command-config"] = t.values["config"]
	}
	client, err := t.dial()
	if err != nil {
		return err
	}
	defer client.Close()
	return t.runClusterCommand(ctx, client, given[0])
}

func (t *call) runClusterCommand(ctx context.Context, client *admin.Client, command string) error {
	switch command {
	case "api-versions":
		return printAPIVersions(ctx, t, client)
	case "unregister":
		return t.unregister(ctx, client)
	case "unregister-controller":
		t.printf("The target cluster does not support the controller unregistration API.\n")
		return nil
	}
	cluster, err := client.Cluster(ctx)
	if err != nil {
		return err
	}
	if command == "cluster-id" {
		t.printf("Cluster ID: %s\n", cluster.ID)
		return nil
	}
	t.printEndpoints(cluster)
	return nil
}

func (t *call) unregister(ctx context.Context, client *admin.Client) error {
	id := t.number("id")
	known, err := client.Unregister(ctx, int32(id))
	switch {
	case err != nil:
		return err
	case !known:
		t.printf("The target cluster does not support the broker unregistration API.\n")
	default:
		t.printf("Broker %d is no longer registered.\n", id)
	}
	return nil
}

func (t *call) printEndpoints(cluster admin.Cluster) {
	host, rack := 0, 10
	racks := make([]string, len(cluster.Brokers))
	longest := 0
	for i, b := range cluster.Brokers {
		host = max(host, len(b.Host))
		racks[i] = "null"
		if b.Rack != nil {
			racks[i] = *b.Rack
			longest = max(longest, len(*b.Rack))
		}
	}
	if longest > 0 {
		rack = longest
	}
	t.printf("%-10s %-*s %-10s %-*s %-10s %-15s\n", "ID", host, "HOST", "PORT", rack, "RACK", "STATE", "ENDPOINT_TYPE")
	for i, b := range cluster.Brokers {
		t.printf("%-10d %-*s %-10d %-*s %-10s %-15s\n", b.ID, host, b.Host, b.Port, rack, racks[i], "unfenced", "broker")
	}
}
