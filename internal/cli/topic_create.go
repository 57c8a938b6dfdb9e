package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// topicCreateFlags are the flags of barnabas topic create.
type topicCreateFlags struct {
	partitions        int32
	replicationFactor int16
	configs           []string
	ifNotExists       bool
	dryRun            bool
}

// One CreateTopics for all names; each is made or refused by itself.
//
//	NAME  RESULT  ID  PARTITIONS  REPLICATION-FACTOR  ERROR  MESSAGE
//
// --if-not-exists makes it idempotent, whatever the existing topic is like. --dry-run asks with validate_only.
// Counts of -1 take num.partitions and default.replication.factor of the broker (KIP-464).
func topicCreateCommand(c *common) *cobra.Command {
	var flags topicCreateFlags
	command := &cobra.Command{
		Use:     "create NAME...",
		Short:   "Create topics",
		Example: "  barnabas topic create orders --partitions 12 --config retention.ms=86400000",
		Args:    atLeast(1, "name"),
		RunE: func(command *cobra.Command, names []string) error {
			return runTopicCreate(command.Context(), c, flags, names)
		},
	}
	f := command.Flags()
	f.Int32VarP(&flags.partitions, "partitions", "p", -1, "number of partitions; -1 is the broker's default")
	f.Int16VarP(&flags.replicationFactor, "replication-factor", "r", -1, "number of replicas; -1 is the broker's default")
	f.StringArrayVarP(&flags.configs, "config", "c", nil, "a property as key=value; may be repeated")
	f.BoolVar(&flags.ifNotExists, "if-not-exists", false, "succeed where the topic exists already")
	f.BoolVar(&flags.dryRun, "dry-run", false, "only say whether it would work")
	return command
}

func runTopicCreate(ctx context.Context, c *common, flags topicCreateFlags, names []string) error {
	configs, err := pairs("--config", flags.configs)
	if err != nil {
		return err
	}
	topics := make([]admin.NewTopic, 0, len(names))
	for _, name := range names {
		topics = append(topics, admin.NewTopic{
			Name: name, Partitions: flags.partitions, ReplicationFactor: flags.replicationFactor, Configs: configs,
		})
	}
	return c.with(ctx, func(ctx context.Context, client *admin.Client) error {
		created, err := client.CreateTopics(ctx, topics, flags.dryRun)
		if err != nil {
			return err
		}
		return c.printCreated(created, flags)
	})
}

func (c *common) printCreated(created []admin.CreatedTopic, flags topicCreateFlags) error {
	r := &report{}
	list := r.list("topics", "name", "result", "id", "partitions", "replication_factor", "error", "message")
	verb, failed := "created", 0
	if flags.dryRun {
		verb = "would be created"
	}
	for _, t := range created {
		outcome, code, message := outcomeOf(verb, t.Err)
		var id, partitions, factor any
		switch {
		case t.Err == nil:
			partitions, factor = t.Partitions, t.ReplicationFactor
			if t.ID != [16]byte{} {
				id = admin.TopicID(t.ID)
			}
		case flags.ifNotExists && admin.CodeName(t.Err) == "TOPIC_ALREADY_EXISTS":
			outcome, code, message = "exists", nil, nil
		default:
			failed++
		}
		list.add(t.Name, outcome, id, partitions, factor, code, message)
	}
	if err := c.print(r); err != nil {
		return err
	}
	if failed > 0 {
		return failure{failed, len(created)}
	}
	return nil
}

// pairs are the key=value of a repeated flag.
func pairs(flag string, given []string) (map[string]string, error) {
	all := make(map[string]string, len(given))
	for _, pair := range given {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usageError{fmt.Errorf("%s %q is not key=value", flag, pair)}
		}
		all[key] = value
	}
	return all, nil
}
