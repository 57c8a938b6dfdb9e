package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func configCommand(c *common) *cobra.Command {
	command := group("config", "Show and change properties of topics, brokers and groups")
	remote := []*cobra.Command{configDescribeCommand(c), configAlterCommand(c)}
	c.connectFlags(remote...)
	command.AddCommand(remote...)
	command.AddCommand(configShowCommand(c))
	return command
}

// resourceTypes are the words for what has properties.
var resourceTypes = []string{"topic", "broker", "broker-default", "group", "client-metrics"}

// parseResource reads what has properties: a type, and its name but for the defaults of all brokers.
//
//	topic NAME | broker ID | broker-default | group NAME | client-metrics NAME
//
// The defaults of all brokers are the broker with the empty name in the protocol, which nobody should have to
// type.
func parseResource(args []string) (kmsg.ConfigResourceType, string, error) {
	kind, err := resourceType(args[0])
	if err != nil {
		return 0, "", err
	}
	if args[0] == "broker-default" {
		if len(args) != 1 {
			return 0, "", usageError{fmt.Errorf("broker-default has no name")}
		}
		return kind, "", nil
	}
	if len(args) != 2 {
		return 0, "", usageError{fmt.Errorf("name one %s", args[0])}
	}
	return kind, args[1], nil
}

func resourceType(name string) (kmsg.ConfigResourceType, error) {
	switch name {
	case "topic":
		return kmsg.ConfigResourceTypeTopic, nil
	case "broker", "broker-default":
		return kmsg.ConfigResourceTypeBroker, nil
	case "group":
		return kmsg.ConfigResourceTypeGroupConfig, nil
	case "client-metrics":
		return kmsg.ConfigResourceTypeClientMetrics, nil
	}
	return 0, usageError{fmt.Errorf("%q is none of %s", name, strings.Join(resourceTypes, ", "))}
}
