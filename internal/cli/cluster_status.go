package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// clusterStatusFlags are the flags of barnabas cluster status.
type clusterStatusFlags struct{ noMetrics bool }

// Metadata and DescribeConfigs for all topics, ListPartitionReassignments, and to every broker DescribeLogDirs and
// DescribeConfigs:
//
//	cluster          ID  CONTROLLER  CONTROLLER-EPOCH  HEALTHY  …
//	brokers          ID  ADDRESS  RACK  STATE  CONTROLLER  LEADERS  REPLICAS  BEHIND  SIZE  STORE…  MAX-LAG
//	troubles         TOPIC  PARTITION  TROUBLE  LEADER  REPLICAS  ISR  MIN-ISR  REASON
//	reassignments    TOPIC  PARTITION  REPLICAS  ADDING  REMOVING  COPIED  BYTES
//	throttles        BROKER  LEADER-RATE  FOLLOWER-RATE
//
// Kafka's protocol has no words for the controller's epoch and for a broker's session with ZooKeeper: these come from
// /metrics at each broker's http.listener, where that can be reached from here, and are nothing elsewhere. Exit 1 with
// the report printed where a partition is in trouble, as health has it.
func clusterStatusCommand(c *common) *cobra.Command {
	var flags clusterStatusFlags
	command := &cobra.Command{
		Use:   "status",
		Short: "Show brokers, partitions in trouble and why, and what is being moved; exits with 1 where there is trouble",
		Args:  noArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error {
				status, err := client.Status(ctx, !flags.noMetrics)
				if err != nil {
					return err
				}
				if err := c.print(clusterStatus(status)); err != nil {
					return err
				}
				if !status.OK() {
					return unhealthy{}
				}
				return nil
			})
		},
	}
	command.Flags().BoolVar(&flags.noMetrics, "no-metrics", false, "ask by Kafka's protocol only, not at http.listener")
	return command
}

func clusterStatus(s *admin.Status) *report {
	r := &report{}
	offline, underMin, underReplicated := s.Count()
	r.object("cluster").set("id", s.ID).set("controller", s.Controller).set("controller_epoch", known(s.ControllerEpoch)).
		set("healthy", s.OK()).set("brokers", len(s.Brokers)).set("topics", s.Topics).set("partitions", s.Partitions).
		set("offline", offline).set("under_min_isr", underMin).set("under_replicated", underReplicated).
		set("reassignments", len(s.Moving)).set("throttled_topics", s.Throttled)
	statusOfBrokers(r, s)
	list := r.list("troubles", "topic", "partition", "trouble", "leader", "replicas", "isr", "min_isr", "reason")
	for _, t := range s.Worst() {
		list.add(t.Topic, t.TopicPartition.Partition, troubles(t), known(int64(t.Partition.Leader)), t.Partition.Replicas, t.Partition.ISR, t.MinInSync, t.Reason)
	}
	list = r.list("reassignments", "topic", "partition", "replicas", "adding", "removing", "copied", "bytes")
	for _, m := range s.Moving {
		list.add(m.Topic, m.Partition, m.Target(), m.Adding, m.Removing, m.Copied, m.Bytes)
	}
	list = r.list("throttles", "broker", "leader_rate", "follower_rate")
	for _, t := range s.Throttles {
		list.add(t.Broker, known(t.Leader), known(t.Follower))
	}
	return r
}

func statusOfBrokers(r *report, s *admin.Status) {
	list := r.list("brokers", "id", "address", "rack", "state", "controller", "leaders", "replicas", "behind", "size",
		"store", "session_left", "store_latency", "max_lag")
	for _, m := range s.Members {
		var address, rack, store, left, latency, lag any
		if m.Host != "" {
			address = m.Address()
		}
		if m.Rack != nil {
			rack = *m.Rack
		}
		if o := m.Observed; o != nil {
			store, lag = "disconnected", o.MaxLag
			if o.Connected {
				store = "connected"
			}
			left, latency = o.Remaining.Round(time.Millisecond), o.Latency.Round(10*time.Microsecond)
		}
		list.add(m.ID, address, rack, string(m.State), m.ID == s.Controller, m.Leads, m.Holds, m.Behind, known(m.Bytes), store, left, latency, lag)
	}
}

// troubles names the worst that a partition has.
func troubles(t admin.Trouble) string {
	switch {
	case t.Offline:
		return "offline"
	case t.UnderMin:
		return "under min isr"
	}
	return "under replicated"
}
