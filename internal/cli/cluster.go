package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

func clusterCommand(c *common) *cobra.Command {
	command := group("cluster", "Show the brokers, whether all partitions are well, and move replicas between brokers")
	command.AddCommand(clusterInfoCommand(c), clusterHealthCommand(c), clusterStatusCommand(c), clusterCanStopCommand(c))
	command.AddCommand(clusterRebalanceCommand(c), clusterMoveCommand(c), clusterDrainCommand(c), clusterDecommissionCommand(c), clusterCancelCommand(c))
	return command
}

// One Metadata request without topics:
//
//	cluster      ID        id  controller  brokers
//	brokers      ID  HOST  PORT  RACK  CONTROLLER
//
// Only living brokers are listed, with the addresses that the broker advertises to this listener.
func clusterInfoCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "info",
		Short: "Show the cluster's id, controller and brokers",
		Args:  noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				cluster, err := client.Cluster(ctx)
				if err != nil {
					return err
				}
				return c.print(clusterInfo(cluster))
			})
		},
	}
}

func clusterInfo(cluster admin.Cluster) *report {
	r := &report{}
	r.object("cluster").set("id", cluster.ID).set("controller", cluster.Controller).set("brokers", len(cluster.Brokers))
	list := r.list("brokers", "id", "host", "port", "rack", "controller")
	for _, b := range cluster.Brokers {
		var rack any
		if b.Rack != nil {
			rack = *b.Rack
		}
		list.add(b.ID, b.Host, b.Port, rack, b.ID == cluster.Controller)
	}
	return r
}

// One Metadata request for all topics. A partition may be in several lists:
//
//	leaderless          no leader, or one that is not alive: nobody can read or write it
//	under replicated    fewer replicas in sync than assigned: writes with acks=all may soon be refused
//	offline replicas    a replica whose broker or log directory is gone
//
// Exit 1 with the report printed, so that it can stand in a deployment's script as it is.
func clusterHealthCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "health",
		Short: "Look for partitions without a leader or with too few replicas; exits with 1 where there are some",
		Args:  noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				health, err := client.Health(ctx)
				if err != nil {
					return err
				}
				if err := c.print(clusterHealth(health)); err != nil {
					return err
				}
				if !health.OK() {
					return unhealthy{}
				}
				return nil
			})
		},
	}
}

// unhealthy is the outcome of a check that has been printed.
type unhealthy struct{}

// Error is what a script sees of it on standard error.
func (unhealthy) Error() string { return "the cluster is not healthy" }

func clusterHealth(h admin.Health) *report {
	r := &report{}
	r.object("health").set("healthy", h.OK()).set("brokers", len(h.Brokers)).set("controller", h.Controller).
		set("topics", h.Topics).set("partitions", h.Partitions).
		set("leaderless", len(h.Leaderless)).set("under_replicated", len(h.UnderReplicated)).set("offline_replicas", len(h.Offline))
	list := r.list("problems", "topic", "partition", "problem")
	for _, kind := range []struct {
		problem    string
		partitions []admin.TopicPartition
	}{{"leaderless", h.Leaderless}, {"under replicated", h.UnderReplicated}, {"offline replicas", h.Offline}} {
		for _, at := range kind.partitions {
			list.add(at.Topic, at.Partition, kind.problem)
		}
	}
	return r
}
