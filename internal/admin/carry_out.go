package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/balance"
)

// movesPoll is how often what is being moved is looked at.
const movesPoll = 500 * time.Millisecond

// patientLooks is how often brokers may show the replicas from before a move that has ended.
const patientLooks = 20

// MoveOptions say how a plan is carried out.
type MoveOptions struct {
	// Throttle is how many bytes a second each broker sends and takes for it; 0 leaves it as it is.
	Throttle int64
	// AtOnce bounds the partitions that are on their way at a time, which bounds what is on disk twice.
	AtOnce int
	// Elect are partitions that do not move, whose first replicas shall lead as well.
	Elect []TopicPartition
	// Progress is told how far it is, at most twice a second; nil where nobody wants to know.
	Progress func(MoveProgress)
}

// MoveProgress is how far a plan is.
type MoveProgress struct {
	// Moved of Moves partitions are where they shall be; Moving are on their way.
	Moved, Moving, Moves int
	// Copied of Bytes have arrived, as far as brokers tell.
	Copied, Bytes int64
}

// CarryOut makes the moves of a plan, some at a time, and waits until all are made: each partition has its replicas,
// all in sync, the old ones are gone, and its first replica leads. The results are in the order of the moves; behind
// them are the partitions of [MoveOptions].Elect whose first replica does not lead.
//
// It may be cut off at any point. What has begun goes on by itself, and a plan that is made anew has what is left;
// its moves that are under way already are waited for. Only a throttle stays until the next plan has ended, or
// [Client.Unthrottle] is called. With ctx's end it returns that error and what is known by then.
func (c *Client) CarryOut(ctx context.Context, l *Layout, moves []balance.Move, o MoveOptions) ([]PartitionResult, error) {
	r := &run{client: c, layout: l, options: o, failed: map[TopicPartition]error{}, looks: map[TopicPartition]int{}, moves: map[TopicPartition]balance.Move{}}
	for _, m := range moves {
		at := TopicPartition{m.Topic, m.Partition}
		r.moves[at] = m
		r.all = append(r.all, at)
		r.waiting = append(r.waiting, at)
		r.bytes += m.Bytes
	}
	for _, ongoing := range l.Ongoing { // of a plan that was cut off
		if _, planned := r.moves[ongoing.TopicPartition]; !planned {
			r.joined = append(r.joined, ongoing.TopicPartition)
		}
	}
	if err := r.throttleOngoing(ctx); err != nil {
		return nil, err
	}
	if err := r.run(ctx); err != nil {
		return r.results(), err
	}
	err := errors.Join(c.Unthrottle(ctx), r.lead(ctx))
	return r.results(), err
}

// run is one carrying out.
//
//	waiting ──Reassign──▶ moving ──not listed any more──▶ looked at: made, or failed
type run struct {
	client *Client
	// layout is what the plan was made from.
	layout  *Layout
	options MoveOptions
	moves   map[TopicPartition]balance.Move
	// all are the moves in their order; waiting have not begun, moving have. joined are those that somebody else
	// has begun.
	all, waiting, moving, joined []TopicPartition
	failed                       map[TopicPartition]error
	// looks counts how often a move that has ended was seen with other replicas.
	looks         map[TopicPartition]int
	made          int
	bytes, copied int64
}

// throttleOngoing slows down what is being moved already.
func (r *run) throttleOngoing(ctx context.Context) error {
	leaders, followers := throttled{}, throttled{}
	for _, o := range r.layout.Ongoing {
		leaders[o.TopicPartition], followers[o.TopicPartition] = living(r.layout, o.Origin()), living(r.layout, o.Adding)
	}
	return r.throttle(ctx, leaders, followers)
}

// throttleBatch slows down what is moved next. Not earlier: whoever ends moves of his own takes the entries of all away
// that do not move at that time.
func (r *run) throttleBatch(ctx context.Context, batch []Reassignment) error {
	leaders, followers := throttled{}, throttled{}
	for _, w := range batch {
		m := r.moves[w.TopicPartition]
		if adding := BrokerNumbers(m.Adding()); len(adding) > 0 {
			leaders[w.TopicPartition], followers[w.TopicPartition] = living(r.layout, BrokerNumbers(m.From)), living(r.layout, adding)
		}
	}
	return r.throttle(ctx, leaders, followers)
}

func (r *run) throttle(ctx context.Context, leaders, followers throttled) error {
	if r.options.Throttle == 0 || len(leaders) == 0 {
		return nil
	}
	return r.client.throttle(ctx, r.options.Throttle, leaders, followers)
}

func living(l *Layout, ids []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return !l.Alive(id) })
}

// run begins moves and waits for them.
func (r *run) run(ctx context.Context) error {
	tick := time.NewTicker(movesPoll)
	defer tick.Stop()
	for {
		if err := r.begin(ctx); err != nil {
			return err
		}
		ongoing, err := r.client.Reassignments(ctx)
		if err != nil {
			return err
		}
		if err := r.look(ctx, ongoing); err != nil {
			return err
		}
		r.tell(ctx, ongoing)
		if len(r.waiting)+len(r.moving)+len(r.joined) == 0 {
			return nil
		}
		if len(r.waiting) > 0 && len(r.moving) < r.options.AtOnce {
			continue // there is room: changes of order end at once
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// begin begins as many moves as there is room for. Those whose partition is not any more as the plan has it are not
// made: the plan may be hours old, and would undo what somebody has done since.
func (r *run) begin(ctx context.Context) error {
	n := min(len(r.waiting), max(r.options.AtOnce-len(r.moving), 0))
	if n == 0 {
		return nil
	}
	now, err := r.client.assignments(ctx, r.waiting[:n])
	if err != nil {
		return err
	}
	var wanted []Reassignment
	for _, at := range r.waiting[:n] {
		if have, ok := now[at]; ok && r.stale(at, have) {
			r.failed[at] = fmt.Errorf("it has changed since the plan was made and is on %v now: give the command again", have)
			continue
		}
		m := r.moves[at]
		wanted = append(wanted, Reassignment{at, BrokerNumbers(m.To), r.layout.Moving(at) == nil && len(m.To) == len(m.From)})
	}
	if len(wanted) == 0 {
		r.waiting = r.waiting[n:]
		return nil
	}
	if err := r.throttleBatch(ctx, wanted); err != nil {
		return err
	}
	results, err := r.client.Reassign(ctx, wanted)
	if err != nil {
		return err
	}
	r.waiting = r.waiting[n:]
	for _, result := range results {
		if result.Err != nil {
			r.failed[result.TopicPartition] = result.Err
		} else {
			r.moving = append(r.moving, result.TopicPartition)
		}
	}
	return nil
}

// stale reports whether a partition has other replicas than those that its move was planned from.
func (r *run) stale(at TopicPartition, have []int32) bool {
	if o := r.layout.Moving(at); o != nil && slices.Equal(have, o.Replicas) {
		return false // what was under way still is
	}
	return !slices.Equal(have, BrokerNumbers(r.moves[at].From))
}

// look sorts out what is not under way any more.
func (r *run) look(ctx context.Context, ongoing []Ongoing) error {
	under := map[TopicPartition]bool{}
	for _, o := range ongoing {
		under[o.TopicPartition] = true
	}
	r.joined = slices.DeleteFunc(r.joined, func(at TopicPartition) bool { return !under[at] })
	var ended, left []TopicPartition
	for _, at := range r.moving {
		if under[at] {
			left = append(left, at)
		} else {
			ended = append(ended, at)
		}
	}
	r.moving = left
	if len(ended) == 0 {
		return nil
	}
	now, err := r.client.assignments(ctx, ended)
	if err != nil {
		return err
	}
	for _, at := range ended {
		want := BrokerNumbers(r.moves[at].To)
		switch have, ok := now[at]; {
		case !slices.Equal(have, want) && r.looks[at] < patientLooks: // a broker may be behind the controller
			r.looks[at]++
			r.moving = append(r.moving, at)
		case !ok:
			r.failed[at] = errors.New("the topic has been deleted meanwhile")
		case !slices.Equal(have, want):
			r.failed[at] = fmt.Errorf("somebody else has taken it back or changed it: it is on %v now", have)
		default:
			r.made++
			r.copied += r.moves[at].Bytes
		}
	}
	return nil
}

// assignments are the replicas of partitions, without topics that do not exist.
func (c *Client) assignments(ctx context.Context, partitions []TopicPartition) (map[TopicPartition][]int32, error) {
	names := []string{}
	for _, at := range partitions {
		if !slices.Contains(names, at.Topic) {
			names = append(names, at.Topic)
		}
	}
	metadata, err := c.newestMetadata(ctx, names)
	if err != nil {
		return nil, err
	}
	now := map[TopicPartition][]int32{}
	for i := range metadata.Topics {
		t := topicOf(&metadata.Topics[i])
		for _, p := range t.Partitions {
			now[TopicPartition{t.Name, p.Number}] = p.Replicas
		}
	}
	return now, nil
}

// tell tells of the progress. What has arrived of moves under way is asked of the brokers that get it.
func (r *run) tell(ctx context.Context, ongoing []Ongoing) {
	if r.options.Progress == nil {
		return
	}
	p := MoveProgress{Moved: r.made, Moving: len(r.moving) + len(r.joined), Moves: len(r.all) + len(r.joined), Copied: r.copied, Bytes: r.bytes}
	mine := slices.DeleteFunc(slices.Clone(ongoing), func(o Ongoing) bool { return !slices.Contains(r.moving, o.TopicPartition) })
	for _, o := range r.client.arrived(ctx, mine) {
		p.Copied += o.Copied
	}
	r.options.Progress(p)
}

// Arrival is how much of a reassignment has arrived.
type Arrival struct {
	Ongoing
	// Copied of Bytes have arrived on the brokers that are added.
	Copied, Bytes int64
}

// arrived asks brokers for the sizes of replicas on their way; what they do not tell counts as nothing.
func (c *Client) arrived(ctx context.Context, ongoing []Ongoing) []Arrival {
	var brokers []int32
	for _, o := range ongoing {
		for _, id := range o.Replicas {
			if !slices.Contains(brokers, id) {
				brokers = append(brokers, id)
			}
		}
	}
	l := &Layout{Sizes: map[ReplicaOf]int64{}}
	for _, id := range brokers {
		if dirs, err := c.LogDirs(ctx, []int32{id}, nil); err == nil {
			l.addSizes(dirs)
		}
	}
	return l.arrivals(ongoing)
}

func (l *Layout) arrivals(ongoing []Ongoing) []Arrival {
	var all []Arrival
	for _, o := range ongoing {
		var full int64
		for _, id := range o.Origin() {
			full = max(full, l.Sizes[ReplicaOf{o.TopicPartition, id}])
		}
		a := Arrival{Ongoing: o, Bytes: full * int64(len(o.Adding))}
		for _, id := range o.Adding {
			a.Copied += min(l.Sizes[ReplicaOf{o.TopicPartition, id}], full)
		}
		all = append(all, a)
	}
	return all
}

// lead gives leadership to the first replicas of what was moved, and of what else was asked for.
func (r *run) lead(ctx context.Context) error {
	partitions := slices.Clone(r.options.Elect)
	for _, at := range r.all {
		if r.failed[at] == nil {
			partitions = append(partitions, at)
		}
	}
	if len(partitions) == 0 {
		return nil
	}
	failed, err := r.client.ElectPreferred(ctx, partitions)
	for _, f := range failed {
		r.failed[f.TopicPartition] = fmt.Errorf("its first replica does not lead yet: %w", f.Err)
	}
	return err
}

// What is said of moves that were not waited for.
var (
	errNotBegun = errors.New("it has not begun")
	errUnderWay = errors.New("it is under way, and goes on by itself")
)

// results are the outcomes in the order of the plan, and behind them the elections that have failed of those that were
// asked for beside it.
func (r *run) results() []PartitionResult {
	var all []PartitionResult
	for _, at := range r.all {
		err := r.failed[at]
		switch {
		case err != nil:
		case slices.Contains(r.waiting, at):
			err = errNotBegun
		case slices.Contains(r.moving, at):
			err = errUnderWay
		}
		all = append(all, PartitionResult{at, err})
	}
	for _, at := range r.options.Elect {
		if err := r.failed[at]; err != nil {
			all = append(all, PartitionResult{at, err})
		}
	}
	return all
}
