package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
	"github.com/barnabas-mq/barnabas/internal/balance"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// movesFlags are what all commands have that move replicas.
type movesFlags struct {
	yes      bool
	throttle int64
	atOnce   int
}

// movesHelp is said by each of them.
const movesHelp = `

The plan is shown first; without --yes it asks on a terminal, and only shows the plan elsewhere. Then it waits until
everything has moved. It may be interrupted: what is under way goes on by itself, the same command carries on with the
rest, and 'barnabas cluster cancel' takes back what is under way.`

func (f *movesFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.BoolVar(&f.yes, "yes", false, "carry the plan out without asking")
	flags.Int64Var(&f.throttle, "throttle", 0, "bytes a second that each broker may send and take for it (default: no limit)")
	flags.IntVar(&f.atOnce, "at-once", 20, "how many partitions are on their way at a time")
}

func (f *movesFlags) check() error {
	switch {
	case f.atOnce < 1:
		return usageError{fmt.Errorf("--at-once %d is not above 0", f.atOnce)}
	case f.throttle < 0:
		return usageError{fmt.Errorf("--throttle %d is negative", f.throttle)}
	}
	return nil
}

// onBroker connects and calls do for the broker that was given.
func (f *movesFlags) onBroker(command *cobra.Command, c *common, given string, do func(context.Context, *admin.Client, int32) error) error {
	id, err := parseBroker(given)
	if err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	return c.with(command.Context(), func(ctx context.Context, client *admin.Client) error { return do(ctx, client, id) })
}

// planner fills a plan; what it returns is said to people beside the plan.
type planner func(l *admin.Layout, plan *balance.Cluster) (notice string, err error)

// mover makes a plan, shows it, and carries it out where that is wanted.
//
//	plan       RESULT  PARTITIONS  REPLICAS  LEADERS  BYTES  THROTTLE  UNDER-WAY  NOTICE
//	brokers    BROKER  REPLICAS  REPLICAS-PLANNED  LEADERS  LEADERS-PLANNED  BYTES-IN
//	partitions TOPIC  PARTITION  REPLICAS  PLANNED  BYTES  RESULT  ERROR  MESSAGE
type mover struct {
	*common
	client *admin.Client
	flags  movesFlags
	fill   planner
	// elects is whether first replicas are to lead also where nothing moves.
	elects bool
	// accepted is called when the plan is wanted; the plan is made anew afterwards. It may be nil.
	accepted func(context.Context, *admin.Layout) error
}

// move plans and carries out.
func (m mover) move(ctx context.Context) error {
	show, err := m.plan(ctx)
	if err != nil {
		return err
	}
	asks := !m.flags.yes && m.format == formatText && m.interactive()
	if len(show.moves)+len(show.layout.Ongoing)+len(show.elect) == 0 && (m.accepted == nil || !m.flags.yes) {
		if m.flags.yes { // what a command that was interrupted has left
			if err := m.client.Unthrottle(ctx); err != nil {
				return err
			}
		}
		return m.print(show.report("nothing to do", nil))
	}
	if !m.flags.yes {
		if err := m.print(show.report("planned", nil)); err != nil {
			return err
		}
		if !asks || !m.agree("Carry this out?") {
			return m.nothingChanged()
		}
	}
	if m.accepted != nil {
		if err := m.accepted(ctx, show.layout); err != nil {
			return err
		}
		if show, err = m.plan(ctx); err != nil {
			return err
		}
	}
	results, err := m.carryOut(ctx, show)
	switch {
	case results == nil && err != nil:
		return err
	case asks:
		return m.summary(results, err)
	}
	outcome := "moved"
	if err != nil {
		outcome = "interrupted"
	}
	if printed := m.print(show.report(outcome, results)); printed != nil || err != nil {
		return errors.Join(printed, err)
	}
	return failureOf(results)
}

// plan makes the plan from how things are now.
func (m mover) plan(ctx context.Context) (shownPlan, error) {
	l, err := m.client.Layout(ctx)
	if err != nil {
		return shownPlan{}, err
	}
	if l.Unlisted != nil {
		return shownPlan{}, l.Unlisted
	}
	plan := l.Plan()
	notice, err := m.fill(l, plan)
	if n := plan.LosingRacks(); n > 0 {
		notice = strings.TrimPrefix(fmt.Sprintf("%s; %d partitions will be on fewer racks", notice, n), "; ")
	}
	show := shownPlan{layout: l, plan: plan, moves: plan.Moves(), notice: notice, throttle: m.flags.throttle}
	if m.elects {
		show.elect = slices.DeleteFunc(l.Astray(), func(at admin.TopicPartition) bool {
			return slices.ContainsFunc(show.moves, func(move balance.Move) bool { return move.Topic == at.Topic && move.Partition == at.Partition })
		})
	}
	return show, err
}

// carryOut runs a plan until it has ended or somebody interrupts.
func (m mover) carryOut(ctx context.Context, show shownPlan) ([]admin.PartitionResult, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	line := m.progress()
	defer line.end()
	options := admin.MoveOptions{Throttle: m.flags.throttle, AtOnce: m.flags.atOnce, Elect: show.elect}
	if isTerminal(m.err) {
		options.Progress = func(p admin.MoveProgress) {
			line.show("%d of %d partitions moved, %d on their way, %d of %d bytes", p.Moved, p.Moves, p.Moving, p.Copied, p.Bytes)
		}
	}
	results, err := m.client.CarryOut(ctx, show.layout, show.moves, options)
	if err != nil && ctx.Err() != nil {
		err = errors.New("interrupted: what is under way goes on by itself; the same command carries on, 'barnabas cluster cancel' takes it back")
	}
	return results, err
}

// summary tells in a line how a plan went that has been shown.
func (c *common) summary(results []admin.PartitionResult, err error) error {
	if err != nil {
		return err
	}
	failed := slices.DeleteFunc(slices.Clone(results), func(r admin.PartitionResult) bool { return r.Err == nil })
	if len(failed) > 0 {
		return c.printPartitionResults("moved", failed)
	}
	_, err = fmt.Fprintf(c.out, "Done: %d partitions have moved.\n", len(results))
	return err
}

func failureOf(results []admin.PartitionResult) error {
	failed := 0
	for _, r := range results {
		if r.Err != nil {
			failed++
		}
	}
	if failed > 0 {
		return failure{failed, len(results)}
	}
	return nil
}

// shownPlan is a plan with what is said about it.
type shownPlan struct {
	layout   *admin.Layout
	plan     *balance.Cluster
	moves    []balance.Move
	elect    []admin.TopicPartition
	notice   string
	throttle int64
}

// report shows the plan, or with results what became of it.
func (s shownPlan) report(result string, results []admin.PartitionResult) *report {
	r := &report{}
	var bytes int64
	replicas, leaders := 0, len(s.elect)
	in := map[int32]int64{}
	for _, m := range s.moves {
		bytes += m.Bytes
		adding := m.Adding()
		replicas += len(adding)
		for _, id := range adding {
			in[int32(id)] += m.Bytes / int64(len(adding))
		}
		if m.From[0] != m.To[0] {
			leaders++
		}
	}
	var throttle any
	if s.throttle > 0 {
		throttle = s.throttle
	}
	r.object("plan").set("result", result).set("partitions", len(s.moves)).set("replicas", replicas).set("leaders", leaders).
		set("bytes", bytes).set("throttle", throttle).set("under_way", len(s.layout.Ongoing)).set("notice", orNothing(s.notice))
	if len(s.moves) > 0 {
		s.brokers(r, in)
	}
	list := r.list("partitions", "topic", "partition", "replicas", "planned", "bytes", "result", "error", "message")
	for i, m := range s.moves {
		outcome, code, message := "planned", any(nil), any(nil)
		if results != nil {
			outcome, code, message = outcomeOf("moved", results[i].Err)
		}
		list.add(m.Topic, m.Partition, admin.BrokerNumbers(m.From), admin.BrokerNumbers(m.To), m.Bytes, outcome, code, message)
	}
	for i := len(s.moves); i < len(results); i++ { // did not move, and their first replica does not lead
		outcome, code, message := outcomeOf("moved", results[i].Err)
		list.add(results[i].Topic, results[i].Partition, nil, nil, nil, outcome, code, message)
	}
	return r
}

// brokers compares what brokers have with what they will have.
func (s shownPlan) brokers(r *report, in map[int32]int64) {
	before := s.layout.Plan()
	list := r.list("brokers", "broker", "replicas", "replicas_planned", "leaders", "leaders_planned", "bytes_in")
	for _, b := range s.layout.Cluster.Brokers {
		id := protocol.BrokerID(b.ID)
		list.add(b.ID, before.Holds(id), s.plan.Holds(id), before.Leads(id), s.plan.Leads(id), in[b.ID])
	}
}
