package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The topic under test.
const (
	topic      = "orders"
	partitions = 3
)

// How long a cluster may need, once all is healed, to be whole again and to serve everybody.
const recoveryLimit = 2 * time.Minute

// endLimit is how long the last goroutines may need to end.
const endLimit = 10 * time.Minute

// world is one run.
type world struct {
	dice     dice
	plan     plan
	network  *network
	store    *storage
	machines []*machine
	clients  []*client // in the order in which they began
	journal  *journal
	history  *history

	// healed is closed when the last fault has ended, stopping when the load ends, over when nobody waits for
	// anything any more.
	healed, stopping, over chan struct{}
	giveUp                 sync.Once // closes over
	// telling says that a story is being told, see tell.
	telling atomic.Bool
	// load counts the clients, ending the goroutines of lives that are over.
	load, ending sync.WaitGroup
}

// result is what came out of a run.
type result struct {
	violations []string
	counts     map[string]int
	took       time.Duration // virtual
}

// run carries out the plan of a seed and writes its journal to a writer, where there is one; progress counts packets,
// for somebody outside. only is as of newPlan. It must be called in a bubble of testing/synctest.
func run(seed uint64, only string, adjust func(*plan), to io.Writer, progress *atomic.Int64) result {
	d := dice(seed)
	j := &journal{began: time.Now(), to: to}
	w := &world{
		dice: d, plan: newPlan(d, only), network: newNetwork(d), journal: j, history: newHistory(j),
		store: newStorage(d), healed: make(chan struct{}), stopping: make(chan struct{}), over: make(chan struct{}),
	}
	if adjust != nil {
		adjust(&w.plan)
	}
	for id := range w.plan.brokers {
		w.machines = append(w.machines, newMachine(w, id))
	}
	w.network.progress = progress
	w.network.flood = floodOf(&w.plan)
	w.network.flooded = func() {
		w.history.violate("%d packets in %v: somebody asks without a pause", w.network.flood, time.Since(j.began))
	}
	networking := make(chan struct{})
	go func() {
		defer close(networking)
		w.network.run()
	}()
	w.live(context.Background())
	w.abandon()
	w.network.healAll()
	w.awaitEnd()
	w.network.stop()
	<-networking
	if err := w.store.Close(); err != nil {
		w.history.violate("closing the store: %v", err)
	}
	for _, line := range j.panics() {
		w.history.violate("a bug: %s", line)
	}
	if len(w.history.mu.violations) > 0 {
		w.history.mu.violations = append(w.history.mu.violations, "the newest lines of the journal:\n"+strings.Join(j.newest(), "\n"))
	}
	w.history.count("packets", w.network.mu.delivered)
	return result{violations: w.history.mu.violations, counts: w.history.mu.counts, took: time.Since(j.began)}
}

// awaitEnd waits for what still runs. Nothing may: a bubble with goroutines that go on for ever never ends.
func (w *world) awaitEnd() {
	ended := make(chan struct{})
	go func() {
		w.ending.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(endLimit):
		panic(fmt.Sprintf("seed %d: after %v goroutines of this run still go on\n%s", w.dice, endLimit, strings.Join(w.journal.newest(), "\n")))
	}
}

// floodOf is how many packets are too many for a plan.
func floodOf(p *plan) int { return 3000 * int(p.length.Seconds()+60) }

// live is a run from the first start to the last stop.
func (w *world) live(ctx context.Context) {
	for _, m := range w.machines {
		if err := m.start(ctx); err != nil {
			w.history.violate("%s does not start: %v", m.host, err)
			return
		}
	}
	admin := newClient(w, "admin")
	defer admin.close()
	if err := admin.createTopic(ctx, topic, partitions, w.plan.replicas, w.plan.topic); err != nil {
		w.history.violate("the topic cannot be made: %v", err)
		w.stopBrokers(ctx)
		return
	}
	w.startLoad(ctx)
	w.breakThings(ctx)
	w.heal(ctx)
	whole := w.awaitWhole(ctx, admin)
	whole = w.endLoad(ctx, admin, whole)
	if whole {
		w.readBack(ctx)
		w.checkChurn(ctx, admin)
	}
	w.stopBrokers(ctx)
	if whole {
		w.compareDisks()
	}
}

// startLoad starts all clients.
func (w *world) startLoad(ctx context.Context) {
	for i := range 4 {
		name := fmt.Sprintf("p%d", i)
		p := &producer{client: newClient(w, "producer-"+name), name: name, idempotent: idempotent(name)}
		w.load.Go(func() { p.run(ctx) })
	}
	for i := range 2 {
		r := &reader{client: newClient(w, fmt.Sprintf("reader-%d", i)), name: fmt.Sprintf("reader %d", i)}
		w.load.Go(func() { r.run(ctx) })
	}
	for i := range w.plan.groups {
		c := &committer{client: newClient(w, fmt.Sprintf("committer-%d", i)), name: fmt.Sprintf("group-%d", i)}
		w.load.Go(func() { c.run(ctx) })
	}
}

// breakThings carries out the faults of the plan.
func (w *world) breakThings(ctx context.Context) {
	began := time.Now()
	for _, f := range w.plan.faults {
		sleepUntil(began.Add(f.at))
		w.journal.note("FAULT: %v", f)
		w.history.count("faults: "+f.kind, 1)
		f.do(ctx, w)
	}
	sleepUntil(began.Add(w.plan.length))
}

// heal ends all faults.
func (w *world) heal(ctx context.Context) {
	w.journal.note("all heals")
	close(w.healed)
	w.store.trouble.Store(nil)
	w.network.healAll()
	var starting sync.WaitGroup
	for _, m := range w.machines {
		m.skew.Store(0)
		if l := m.current(); l != nil {
			l.eachSession(w.store.ReleaseEvents)
			l.joinStore()
		}
		starting.Go(func() {
			m.freeDisk(ctx)
			m.repair(ctx)
			m.revive(ctx)
		})
	}
	starting.Wait()
}

// awaitWhole waits until every partition has a leader, all replicas in sync and no log elsewhere, and every client was
// served again; false where that takes too long.
func (w *world) awaitWhole(ctx context.Context, admin *client) bool {
	limit := time.Now().Add(recoveryLimit)
	acknowledged := w.history.counted("acknowledged")
	var last error
	for time.Now().Before(limit) {
		if last = w.whole(ctx, admin); last == nil && w.history.counted("acknowledged") < acknowledged+20 {
			last = errors.New("producers are not acknowledged any more")
		}
		if last == nil {
			return true
		}
		<-time.After(pause)
	}
	w.history.violate("%v after all was healed: %v\n%s", recoveryLimit, last, w.stuck(ctx, admin))
	return false
}

// endLoad lets the clients end, each when what it is at has worked; false where it does not, or nobody is served anyway.
func (w *world) endLoad(ctx context.Context, admin *client, served bool) bool {
	close(w.stopping)
	ended := make(chan struct{})
	go func() {
		w.load.Wait()
		close(ended)
	}()
	if served {
		select {
		case <-ended:
			return true
		case <-time.After(recoveryLimit):
			w.history.violate("%v after the cluster was whole somebody is still not served\n%s", recoveryLimit, w.stuck(ctx, admin))
		}
	}
	w.abandon() // whoever waits for an answer does not get one
	<-ended
	return false
}

// whole says what is missing.
func (w *world) whole(ctx context.Context, admin *client) error {
	for _, m := range w.machines {
		l := m.current()
		if l == nil || l.broker == nil {
			return fmt.Errorf("%s is down", m.host)
		}
		q := kmsg.NewPtrMetadataRequest()
		q.Version = 9
		name := topic
		q.Topics = []kmsg.MetadataRequestTopic{{Topic: &name}}
		answer, err := admin.ask(ctx, int32(m.id), q)
		if err != nil {
			return fmt.Errorf("%s does not answer: %w", m.host, err)
		}
		t := answer.(*kmsg.MetadataResponse).Topics[0]
		if len(t.Partitions) != partitions {
			return fmt.Errorf("%s shows %d partitions", m.host, len(t.Partitions))
		}
		for _, p := range t.Partitions {
			if p.Leader < 0 || len(p.ISR) != w.plan.replicas || len(p.Replicas) != w.plan.replicas {
				return fmt.Errorf("%s shows partition %d with leader %d and of the replicas %v in sync %v", m.host, p.Partition, p.Leader, p.Replicas, p.ISR)
			}
			if w.holds(p.Partition, m) && !w.assigned(p.Partition, m) {
				return fmt.Errorf("%s has a log of partition %d, which has replicas on %v", m.host, p.Partition, p.Replicas)
			}
		}
	}
	return nil
}

// readBack reads everything that is committed in the end, and holds it against the history.
func (w *world) readBack(ctx context.Context) {
	r := &reader{client: newClient(w, "last-reader"), name: "the last reader"}
	defer r.client.close()
	final := map[place]string{}
	limit := time.Now().Add(recoveryLimit)
	for partition := range int32(partitions) {
		for quiet := 0; quiet < 2; {
			before := r.next[partition]
			err := r.read(ctx, partition, final)
			switch {
			case time.Now().After(limit):
				w.history.violate("partition %d cannot be read to its end: %v", partition, err)
				return
			case err != nil:
				<-time.After(pause)
			case r.next[partition] == before:
				quiet++
			}
		}
	}
	w.history.count("records", len(final))
	w.history.compare(final)
}

// stopBrokers stops all brokers in order.
func (w *world) stopBrokers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, m := range w.machines {
		m.retire(ctx)
	}
}

// compareDisks holds the logs of all replicas against each other. What a stop cuts off may be missing at the end
// of some, but where two have an offset they have the same record of the same epoch.
func (w *world) compareDisks() {
	all := map[place]entry{}
	from := map[place]string{}
	for _, m := range w.machines {
		found := w.history.scanDisk(m)
		var stays [partitions]bool
		for partition := range stays {
			stays[partition] = w.assigned(int32(partition), m)
		}
		for _, at := range sortedPlaces(found) {
			if !stays[at.partition] {
				continue // what was moved away while the machine was down
			}
			if other, ok := all[at]; ok && other != found[at] {
				w.history.violate("at %v stands %s on the disk of %s, and %s on that of %s", at, found[at], m.host, other, from[at])
				return
			}
			all[at], from[at] = found[at], m.host
		}
	}
	w.history.count("records on disks", len(all))
}

func sortedPlaces[V any](m map[place]V) []place {
	var places []place
	for at := range m {
		places = append(places, at)
	}
	slices.SortFunc(places, comparePlaces)
	return places
}

// stopped reports whether the load ends.
func (w *world) stopped() bool { return isClosed(w.stopping) }

// abandon ends all waiting.
func (w *world) abandon() { w.giveUp.Do(func() { close(w.over) }) }

// abandoned reports whether the run is at its end.
func (w *world) abandoned() bool { return isClosed(w.over) }

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// sleepUntil lets time pass.
func sleepUntil(t time.Time) { <-time.After(time.Until(t)) }

// sleep lets about d pass, unless the run ends.
func (w *world) sleep(who string, n uint64, d time.Duration) {
	timer := time.NewTimer(w.dice.between(d/2, d+d/2, "sleep of "+who, n))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.over:
	}
}
