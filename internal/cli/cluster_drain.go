package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
	"github.com/barnabas-mq/barnabas/internal/balance"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// clusterDrainFlags are the flags of barnabas cluster drain.
type clusterDrainFlags struct {
	movesFlags
	replicas, undo bool
}

// Without --replicas it only changes the order of replicas, the broker's last, and elects the first ones: nothing is
// copied, and leadership does not come back by itself. With --replicas the broker is closed first
// (cordoned.log.dirs=*), so that nothing new is placed on it meanwhile; --undo opens it again.
func clusterDrainCommand(c *common) *cobra.Command {
	var flags clusterDrainFlags
	command := &cobra.Command{
		Use:   "drain BROKER",
		Short: "Move all leaders away from a broker, with --replicas all replicas; shows the plan first",
		Long: `Move all leaders away from a broker, with --replicas all replicas. 'barnabas cluster rebalance' gives them back.
A broker that stops in order hands its leaders over by itself: draining is for one that is to stay and do less.` + movesHelp,
		Args:              exactly(1, "the id of a broker"),
		ValidArgsFunction: completeBrokers(c),
		RunE: func(command *cobra.Command, args []string) error {
			return flags.onBroker(command, c, args[0], func(ctx context.Context, client *admin.Client, id int32) error {
				switch {
				case flags.undo:
					err := client.SetClosed(ctx, id, false)
					return c.printResults("brokers", "opened", []admin.Result{{Name: args[0], Err: err}})
				case flags.replicas:
					return c.evacuate(ctx, client, flags.movesFlags, id)
				}
				return mover{common: c, client: client, flags: flags.movesFlags, fill: demote(id)}.move(ctx)
			})
		},
	}
	flags.add(command)
	command.Flags().BoolVar(&flags.replicas, "replicas", false, "move all replicas away, and place no new ones on it")
	command.Flags().BoolVar(&flags.undo, "undo", false, "let new replicas be placed on it again; moves nothing")
	return command
}

func demote(id int32) planner {
	return func(l *admin.Layout, plan *balance.Cluster) (string, error) {
		if !l.Alive(id) {
			return "", fmt.Errorf("there is no broker %d that runs", id)
		}
		if stuck := plan.Demote(protocol.BrokerID(id)); len(stuck) > 0 {
			return fmt.Sprintf("%d partitions have nobody else in sync and stay, the first is %s", len(stuck), stuck[0]), nil
		}
		return "", nil
	}
}

// A broker that has died is decommissioned as well: what it held is copied from the other replicas.
func clusterDecommissionCommand(c *common) *cobra.Command {
	var flags movesFlags
	command := &cobra.Command{
		Use:   "decommission BROKER",
		Short: "Move everything away from a broker so that it can be removed; shows the plan first",
		Long: `Move all replicas away from a broker, also one that is gone for good, and place no new ones on it. When it has ended
the broker can be stopped and its disks be wiped.` + movesHelp,
		Args:              exactly(1, "the id of a broker"),
		ValidArgsFunction: completeBrokers(c),
		RunE: func(command *cobra.Command, args []string) error {
			return flags.onBroker(command, c, args[0], func(ctx context.Context, client *admin.Client, id int32) error {
				return c.evacuate(ctx, client, flags, id)
			})
		},
	}
	flags.add(command)
	return command
}

// evacuate empties a broker. It is closed once the plan is wanted: what is placed on it until then is in the plan that
// is made afterwards.
func (c *common) evacuate(ctx context.Context, client *admin.Client, flags movesFlags, id int32) error {
	closing := func(ctx context.Context, l *admin.Layout) error {
		if !l.Alive(id) || l.Closed[id] {
			return nil
		}
		return client.SetClosed(ctx, id, true)
	}
	return mover{common: c, client: client, flags: flags, fill: empty(id), accepted: closing}.move(ctx)
}

// deadNotice says what becomes of the replicas of a broker that is gone. A partition that it alone was in sync of has
// nobody to be copied from, and does not move.
func deadNotice(l *admin.Layout, id int32) string {
	only, first := 0, ""
	for _, t := range l.Topics {
		for _, p := range t.Partitions {
			if len(p.ISR) == 1 && p.ISR[0] == id {
				if only++; only == 1 {
					first = fmt.Sprintf("%s-%d", t.Name, p.Number)
				}
			}
		}
	}
	notice := fmt.Sprintf("broker %d is not running: its replicas are copied from others", id)
	if only > 0 {
		notice += fmt.Sprintf("; %d partitions were in sync on it alone and cannot move, the first is %s: start it, "+
			"or give up what only it had by unclean.leader.election.enable=true on the topic, or delete the topic", only, first)
	}
	return notice
}

func empty(id int32) planner {
	return func(l *admin.Layout, plan *balance.Cluster) (string, error) {
		leaves := func(other protocol.BrokerID) bool { return int32(other) == id }
		everything := func(protocol.TopicPartition) bool { return true }
		err := plan.Evacuate(everything, leaves, func(protocol.BrokerID) bool { return true })
		if room, ok := errors.AsType[*balance.RoomError](err); ok {
			return "", fmt.Errorf("%w: add a broker, or give %s fewer replicas first (barnabas topic set-replication %[2]s %d)", err, room.Topic, room.Brokers)
		}
		if !l.Alive(id) {
			return deadNotice(l, id), nil
		}
		return "", err
	}
}
