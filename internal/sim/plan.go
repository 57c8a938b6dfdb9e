package sim

import (
	"context"
	"fmt"
	"time"
)

// plan is what a seed decides about a run.
type plan struct {
	brokers, replicas int
	// properties are those of all brokers, topic those of the topic under test.
	properties []string
	topic      [][2]string
	groups     int // that commit
	// pace is about how long a producer waits between batches, and a group between commits.
	pace, commitPace time.Duration
	length           time.Duration
	faults           []fault
}

// fault is one thing that goes wrong.
type fault struct {
	at   time.Duration
	kind string
	text string
	do   func(ctx context.Context, w *world)
}

// String says what is broken.
func (f fault) String() string { return f.kind + " " + f.text }

// maker draws the nth fault of a plan.
type maker func(d dice, n uint64, p *plan) fault

// kinds are all kinds of faults. New ones go to the end: the place of a kind decides what seeds draw.
var kinds = [...]struct {
	name string
	make maker
}{
	{"kill", killFault}, {"restart", restartFault}, {"cut", cutFault}, {"store cut", storeCutFault}, {"expiry", expiryFault},
	{"store trouble", storeTroubleFault}, {"power", powerFault}, {"bounce", bounceFault}, {"zombie", zombieFault},
	{"client cut", clientCutFault}, {"all expire", allExpireFault}, {"store gone", storeGoneFault}, {"late events", lateEventsFault},
	{"disk error", diskErrorFault}, {"full disk", fullDiskFault}, {"clock", clockFault}, {"reassignment", reassignFault},
	{"minimum", minimumFault}, {"churn", churnFault}, {"old life", oldLifeFault}, {"coordinators fail", openShardFault},
	{"followers lag", laggingFault}, {"leaders fail", inTurnFault}, {"eligible", eligibleFault},
}

// baseProperties make everything happen within seconds.
var baseProperties = [...]string{
	"zookeeper.session.timeout.ms=3000", "replica.lag.time.max.ms=2000", "replica.fetch.wait.max.ms=200", "replica.socket.timeout.ms=2500",
	"replica.fetch.backoff.ms=100", "controller.socket.timeout.ms=3000", "request.timeout.ms=4000",
	"offsets.topic.num.partitions=2", "offsets.topic.replication.factor=3", "offsets.commit.timeout.ms=2000",
	"replica.high.watermark.checkpoint.interval.ms=1000", "leader.imbalance.check.interval.seconds=7", "controlled.shutdown.retry.backoff.ms=500",
	"min.insync.replicas=2", "log.initial.task.delay.ms=1000", "auto.create.topics.enable=false",
	"producer.id.expiration.ms=2147483647",
}

// newPlan draws the plan of a seed. First it is drawn how many kinds of faults there are, and which, since some bugs
// need that others keep still.
//
// only names the one kind of faults that there are; "" leaves that to the dice.
func newPlan(d dice, only string) plan {
	p := plan{
		brokers: 3, replicas: 3, properties: baseProperties[:],
		// Without retention by time: a broker that starts under a clock which is weeks ahead deletes what is old by it.
		topic:      [][2]string{{"min.insync.replicas", "2"}, {"segment.ms", "3000"}, {"retention.ms", "-1"}},
		pace:       d.between(5*time.Millisecond, 60*time.Millisecond, "pace", 0),
		commitPace: d.between(20*time.Millisecond, 300*time.Millisecond, "commit pace", 0),
		length:     d.between(8*time.Second, 25*time.Second, "length", 0),
	}
	if d.chance(0.6, "groups", 0) || only == "coordinators fail" {
		p.groups = 3
	}
	if d.chance(0.2, "five brokers", 0) {
		p.brokers = 5
	}
	if d.chance(0.3, "directories", 0) {
		p.properties = append(p.properties, "log.dirs=/data,/more")
	}
	share := [...]float64{0.1, 0.2, 0.4}[d.throw("share of kinds", 0)%3]
	var chosen []maker
	for i, kind := range kinds {
		if kind.name == only || only == "" && d.chance(share, "kind", uint64(i)) {
			chosen = append(chosen, kind.make)
		}
	}
	if len(chosen) == 0 {
		chosen = append(chosen, kinds[d.throw("only kind", 0)%uint64(len(kinds))].make)
	}
	calm := d.between(200*time.Millisecond, 5*time.Second, "calm", 0)
	at := time.Second
	for n := uint64(0); ; n++ {
		at += d.between(calm/4, calm*2, "fault at", n)
		if at > p.length {
			return p
		}
		f := chosen[d.throw("fault", n)%uint64(len(chosen))](d, n, &p)
		f.at = at
		p.faults = append(p.faults, f)
	}
}

// has reports whether a plan has faults of a kind.
func (p *plan) has(kind string) bool {
	for _, f := range p.faults {
		if f.kind == kind {
			return true
		}
	}
	return false
}

// after does something later, unless all is healed before.
func (w *world) after(d time.Duration, do func()) {
	w.ending.Go(func() {
		if w.pass(d) {
			do()
		}
	})
}

// pass lets time pass; false where all is healed before.
func (w *world) pass(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.healed:
	}
	return !isClosed(w.healed)
}

// awaits looks every few milliseconds until something is so; false where that takes too long, or all is healed.
func (w *world) awaits(limit time.Duration, so func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); {
		if so() {
			return true
		}
		if !w.pass(3 * time.Millisecond) {
			return false
		}
	}
	return false
}

func someBroker(d dice, n uint64, p *plan) int { return int(d.throw("broker", n) % uint64(p.brokers)) }

// fragile is the one machine that may lose its power. Two such machines could lose what both have acknowledged, as
// the cluster does not sync.
func fragile(d dice, p *plan) int { return int(d.throw("fragile", 0) % uint64(p.brokers)) }

// hostOf is the name of a broker's machine.
func hostOf(id int) string { return fmt.Sprintf("broker-%d", id) }
