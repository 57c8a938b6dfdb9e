package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// Metadata for all topics and their min.insync.replicas; nothing is changed.
//
//	stop        BROKER  CAN-STOP  OFFLINE  UNDER-MIN-ISR
//	partitions  TOPIC  PARTITION  WOULD-BE  ISR  MIN-ISR  ADVICE
//
// Exit 0 where the broker may go down without anybody noticing, 1 where it may not, with the report printed: a rolling
// restart asks before each stop. It is the view of one broker at one moment; the answer holds as long as nothing else fails.
func clusterCanStopCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:               "can-stop BROKER",
		Short:             "Say whether a broker may be stopped now; exits with 1 where partitions would suffer",
		Args:              exactly(1, "the id of a broker"),
		ValidArgsFunction: completeBrokers(c),
		RunE: func(command *cobra.Command, args []string) error {
			id, err := parseBroker(args[0])
			if err != nil {
				return err
			}
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				obstacles, err := client.CanStop(ctx, id)
				if err != nil {
					return err
				}
				if err := c.print(canStop(id, obstacles, c.format == formatText)); err != nil {
					return err
				}
				if len(obstacles) > 0 {
					return cannotStop(id)
				}
				return nil
			})
		},
	}
}

// cannotStop is the outcome of a check that has been printed: the broker.
type cannotStop int32

// Error is what a script sees of it on standard error.
func (b cannotStop) Error() string { return fmt.Sprintf("broker %d must not be stopped now", int32(b)) }

// canStop makes the report; brief is for people.
func canStop(id int32, obstacles []admin.Obstacle, brief bool) *report {
	r := &report{}
	offline := 0
	for _, o := range obstacles {
		if o.Offline {
			offline++
		}
	}
	r.object("stop").set("broker", id).set("can_stop", len(obstacles) == 0).set("offline", offline).set("under_min_isr", len(obstacles)-offline)
	list := r.list("partitions", "topic", "partition", "would_be", "isr", "min_isr", "advice")
	for i, o := range obstacles {
		if brief && i == few {
			list.add(fmt.Sprintf("and %d more", len(obstacles)-few), nil, nil, nil, nil, nil)
			break
		}
		state := "under min isr"
		if o.Offline {
			state = "offline"
		}
		list.add(o.Topic, o.Partition, state, o.ISR, o.MinInSync, orNothing(o.Advice))
	}
	return r
}

// parseBroker reads the id of a broker.
func parseBroker(given string) (int32, error) {
	id, err := strconv.ParseInt(given, 10, 32)
	if err != nil || id < 0 {
		return 0, usageError{fmt.Errorf("%q is no id of a broker", given)}
	}
	return int32(id), nil
}

// completeBrokers lets shells complete the ids of brokers.
func completeBrokers(c *common) cobra.CompletionFunc {
	return completeNames(c, func(ctx context.Context, client *admin.Client) ([]string, error) {
		cluster, err := client.Cluster(ctx)
		var ids []string
		for _, b := range cluster.Brokers {
			ids = append(ids, strconv.Itoa(int(b.ID)))
		}
		return ids, err
	})
}
