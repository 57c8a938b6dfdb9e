package cli

import (
	"context"
	"fmt"
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
//	reasons          TROUBLE  PARTITIONS  FIRST  REASON
//	troubles         TOPIC  PARTITION  TROUBLE  LEADER  REPLICAS  ISR  MIN-ISR  REASON
//	reassignments    TOPIC  PARTITION  REPLICAS  ADDING  REMOVING  COPIED  BYTES
//	throttles        BROKER  LEADER-RATE  FOLLOWER-RATE
//
// Kafka's protocol has no words for the controller's epoch and for a broker's session with ZooKeeper: these come from
// /metrics at each broker's http.listener, where that can be reached from here, and are nothing elsewhere. Exit 1 with
// the report printed where a partition is in trouble, as health has it.
//
// As text only the first few partitions are listed, and what is the same for many is said once.
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
				if err := c.print(clusterStatus(status, c.format == formatText)); err != nil {
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

// clusterStatus makes the report; brief is for people.
func clusterStatus(s *admin.Status, brief bool) *report {
	r := &report{}
	offline, underMin, underReplicated := s.Count()
	var reassignments, notice any = len(s.Moving), nil
	if s.Unlisted != nil {
		reassignments, notice = nil, s.Unlisted.Error()
	}
	r.object("cluster").set("id", s.ID).set("controller", s.Controller).set("controller_epoch", known(s.ControllerEpoch)).
		set("healthy", s.OK()).set("brokers", len(s.Brokers)).set("topics", s.Topics).set("partitions", s.Partitions).
		set("offline", offline).set("under_min_isr", underMin).set("under_replicated", underReplicated).
		set("reassignments", reassignments).set("throttled_topics", s.Throttled).set("notice", notice)
	statusOfBrokers(r, s)
	statusOfPartitions(r, s, brief)
	list := r.list("reassignments", "topic", "partition", "replicas", "adding", "removing", "copied", "bytes")
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

// few is how many partitions people are shown.
const few = 20

// statusOfPartitions tells the reasons, and which partitions have them.
func statusOfPartitions(r *report, s *admin.Status, brief bool) {
	type why struct{ trouble, reason string }
	counts := map[why]int{}
	var order []why
	first := map[why]string{}
	worst := s.Worst()
	for _, t := range worst {
		w := why{troubles(t), t.Reason}
		if counts[w]++; counts[w] == 1 {
			order = append(order, w)
			first[w] = fmt.Sprintf("%s-%d", t.Topic, t.TopicPartition.Partition)
		}
	}
	list := r.list("reasons", "trouble", "partitions", "first", "reason")
	for _, w := range order {
		list.add(w.trouble, counts[w], first[w], w.reason)
	}
	list = r.list("troubles", "topic", "partition", "trouble", "leader", "replicas", "isr", "min_isr", "reason")
	for i, t := range worst {
		if brief && i == few {
			list.add(fmt.Sprintf("and %d more", len(worst)-few), nil, nil, nil, nil, nil, nil, nil)
			break
		}
		var reason any
		if !brief {
			reason = t.Reason
		}
		list.add(t.Topic, t.TopicPartition.Partition, troubles(t), known(int64(t.Partition.Leader)), t.Partition.Replicas, t.Partition.ISR, t.MinInSync, reason)
	}
}
