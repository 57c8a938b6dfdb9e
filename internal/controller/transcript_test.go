package controller

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/transcript"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// world is what the commands of one transcript act on.
type world struct {
	cluster cluster
	zxid    int64
	random  *rand.Rand
	backlog backlog
}

// Every file in testdata/*.txt is a transcript: a command, a line of dashes, and what it printed. Commands:
//
//	closed 1                     it is to have no more replicas
//	broker 1 rack=a stop=clean   registers a broker, with the next zxid as its epoch
//	gone 1                       ends its registration
//	offline 1 t-0                it cannot serve its replica; 'online' takes that back
//	topic t 1,2,3 2,3            makes a topic of two partitions, decides their states and writes them
//	state t-0 leader=1 isr=1,2   overwrites a state, as of the next zxid
//	decide [unclean=t]           decides about everything, and writes it
//	wait 30                      lets seconds pass
//	timeout 0                    is unclean.recovery.timeout.ms, in seconds; by default 30
//	settling on                  the controller has just started cold
//	min 2                        is min.insync.replicas of all topics; by default 1
//	end t-0 1 5:120              broker 1 says that its replica ends at offset 120, in leader epoch 5
//	leaving 2                    broker 2 has asked to be shut down
//	alter 1 t-0 epoch=1 version=2 isr=1,2:17     its leader asks for another in-sync set, 17 being an epoch
//	depart 2                     broker 2 leaves in order: its partitions get other leaders
//	move t-0 2,3 [keep=yes]      begins a reassignment; 'back' takes it back
//	finish t-0                   ends it, if it is so far
//	widen 1,2 3                  adds replicas to an assignment
//	balance 10                   which preferred replicas shall lead, at an imbalance of 10 per cent
//	elect preferred t-0          elects by request
//	place 4 2                    places partitions with replicas, and counts
//	plan t partitions=1 factor=1 assign=0:1,2 k=v    what a new topic comes to
//	grow t 3 assign=1,2/2,1      what more partitions come to
//	tell 1 t-0, show …, stop …   fills and takes the backlog of a broker
func TestTranscripts(t *testing.T) {
	transcript.PlayAll(t, func(*testing.T) func(transcript.Command) []string {
		w := &world{random: rand.New(rand.NewPCG(1, 2))}
		w.cluster = cluster{image: metadata.Empty(), stops: map[P.BrokerID]znode.Stop{}, loads: newLoads(), epoch: 1, leaving: map[P.BrokerID]P.BrokerEpoch{},
			ends: map[P.TopicPartition]map[P.BrokerID]logEnd{}, waiting: waiting{}, patience: 30 * time.Second, now: time.Unix(0, 0)}
		return w.run
	})
}

// run carries out one command.
func (w *world) run(c transcript.Command) []string {
	plain, named := c.Plain, c.Named
	switch c.Name {
	case "broker":
		w.zxid++
		b := &metadata.Broker{ID: transcript.IDs(plain[0])[0], Epoch: P.BrokerEpoch(w.zxid)}
		if rack, ok := named["rack"]; ok {
			b.Rack = &rack
		}
		w.cluster.stops[b.ID] = znode.Stop(named["stop"])
		w.change(metadata.PutBroker{Broker: b})
	case "closed":
		id := transcript.IDs(plain[0])[0]
		w.cluster.loads.closed = func(other P.BrokerID) bool { return other == id }
	case "gone":
		w.change(metadata.DropBroker{ID: transcript.IDs(plain[0])[0]})
	case "offline", "online":
		w.serves(transcript.IDs(plain[0])[0], plain[1], c.Name == "online")
	case "topic":
		var replicas [][]P.BrokerID
		for _, text := range plain[1:] {
			replicas = append(replicas, transcript.IDs(text))
		}
		w.change(assigned(plain[0], znode.Topic{ID: P.TopicID{plain[0][0]}, Replicas: replicas}))
		return w.decide(nil)
	case "state":
		return w.overwrite(plain[0], named)
	case "decide":
		return w.decide(named)
	case "wait":
		w.cluster.now = w.cluster.now.Add(time.Duration(transcript.Number(plain[0])) * time.Second)
	case "timeout":
		w.cluster.patience = time.Duration(transcript.Number(plain[0])) * time.Second
	case "settling":
		w.cluster.settling = plain[0] == "on"
	case "min":
		w.cluster.minimum = func(string) int { return transcript.Number(plain[0]) }
	case "end":
		tp, _ := P.PartitionOfDir(plain[0])
		id := transcript.IDs(plain[1])[0]
		epoch, end, _ := strings.Cut(plain[2], ":")
		if w.cluster.ends[tp] == nil {
			w.cluster.ends[tp] = map[P.BrokerID]logEnd{}
		}
		w.cluster.ends[tp][id] = logEnd{w.cluster.image.Broker(id).Epoch, P.LeaderEpoch(transcript.Number(epoch)), P.Offset(transcript.Number(end))}
	case "leaving":
		id := transcript.IDs(plain[0])[0]
		w.cluster.leaving[id] = w.cluster.image.Broker(id).Epoch
	case "depart":
		id := transcript.IDs(plain[0])[0]
		w.cluster.leaving[id] = w.cluster.image.Broker(id).Epoch
		return w.write(departures(w.cluster, id, w.all()))
	case "move":
		return w.move(plain, named)
	case "finish":
		return w.finish(plain[0])
	case "widen":
		return []string{fmt.Sprint(widen(w.cluster.image, w.cluster.loads.clone(), transcript.IDs(plain[0]), transcript.Number(plain[1])))}
	case "balance":
		return []string{fmt.Sprint(imbalanced(&w.cluster, transcript.Number(plain[0]), func(P.TopicPartition) bool { return false }))}
	case "alter":
		return w.alter(plain, named)
	case "elect":
		return w.elect(plain)
	case "place":
		return w.place(transcript.Number(plain[0]), transcript.Number(plain[1]))
	case "plan":
		return w.plan(plain[0], named)
	case "grow":
		return w.grow(plain, named)
	default:
		return w.push(c.Name, plain, named)
	}
	return nil
}

func (w *world) change(changes ...metadata.Change) {
	image, d := w.cluster.image.With(changes...)
	w.cluster.image = image
	w.cluster.loads.apply(d.Partitions)
	for _, c := range d.Partitions {
		if c.New != nil && c.New.Leader != P.NoBroker {
			delete(w.cluster.waiting, c.TopicPartition)
			delete(w.cluster.ends, c.TopicPartition)
		}
	}
}

// serves says whether a broker can serve its replica.
func (w *world) serves(id P.BrokerID, name string, can bool) {
	tp, _ := P.PartitionOfDir(name)
	topic := w.cluster.image.Topic(tp.Topic)
	w.change(metadata.PutPartition{TopicPartition: tp, TopicID: topic.ID, State: serving(topic.Partition(tp.Partition), id, can)})
}

func (w *world) overwrite(name string, named map[string]string) []string {
	tp, _ := P.PartitionOfDir(name)
	topic := w.cluster.image.Topic(tp.Topic)
	next := *topic.Partition(tp.Partition)
	w.zxid++
	next.Modified = w.zxid
	for k, v := range named {
		switch k {
		case "leader":
			next.Leader = transcript.IDs(v)[0]
		case "isr":
			next.ISR = transcript.IDs(v)
		}
	}
	w.change(metadata.PutPartition{TopicPartition: tp, TopicID: topic.ID, State: &next})
	return nil
}

// decide decides about all partitions, and writes.
func (w *world) decide(named map[string]string) []string {
	all := w.all()
	w.cluster.unclean = nil
	_, stuck := decideAll(w.cluster, all)
	w.cluster.waiting.note(all, stuck, w.cluster.now)
	w.cluster.unclean = map[string]bool{named["unclean"]: true}
	changes, stuck := decideAll(w.cluster, all)
	lines := w.write(changes)
	for _, tp := range stuck {
		line := "only an unclean election could help " + tp.String()
		if left := w.cluster.waiting[tp].Add(w.cluster.patience).Sub(w.cluster.now); left > 0 {
			line += fmt.Sprint(", in ", left)
		}
		lines = append(lines, line)
	}
	return lines
}

// all lists every partition.
func (w *world) all() []P.TopicPartition {
	var all []P.TopicPartition
	for _, name := range w.cluster.image.Topics() {
		for i := range w.cluster.image.Topic(name).Partitions {
			all = append(all, P.TopicPartition{Topic: name, Partition: int32(i)})
		}
	}
	return all
}

// move begins a reassignment, and writes it.
func (w *world) move(plain []string, named map[string]string) []string {
	tp, _ := P.PartitionOfDir(plain[0])
	topic := w.cluster.image.Topic(tp.Topic)
	r := Reassignment{TopicPartition: tp}
	if plain[1] != "back" {
		r.Replicas = transcript.IDs(strings.Trim(plain[1], "-"))
		if r.Replicas == nil {
			r.Replicas = []P.BrokerID{}
		}
	}
	p := topic.Partition(tp.Partition)
	next, err := planMove(&w.cluster, tp.Topic, p, r, named["keep"] != "")
	switch {
	case err != nil:
		return []string{P.CodeOf(err).Name() + ": " + err.Error()}
	case next == nil:
		return []string{"nothing to do"}
	}
	return w.assign(decided{TopicPartition: tp, topicID: topic.ID, from: p, to: next, why: "reassignment"})
}

func (w *world) finish(name string) []string {
	tp, _ := P.PartitionOfDir(name)
	topic := w.cluster.image.Topic(tp.Topic)
	p := topic.Partition(tp.Partition)
	next := finishMove(&w.cluster, tp.Topic, p)
	if next == nil {
		return []string{"not so far"}
	}
	return w.assign(decided{TopicPartition: tp, topicID: topic.ID, from: p, to: next, why: "reassigned"})
}

// assign writes a state, and says what the assignment is.
func (w *world) assign(d decided) []string {
	line := fmt.Sprintf("%s replicas %v→%v adding %v removing %v", d.TopicPartition, d.from.Replicas, d.to.Replicas, d.to.Adding, d.to.Removing)
	if gone := without(d.from.Replicas, d.to.Replicas); gone != nil {
		line += fmt.Sprint(", deleted on ", gone)
	}
	return append([]string{line}, w.write([]decided{d})...)
}

func (w *world) write(changes []decided) []string {
	var lines []string
	for _, d := range changes {
		w.zxid++
		d.to.Modified, d.to.Epoch = w.zxid, d.from.Epoch+1
		w.change(metadata.PutPartition{TopicPartition: d.TopicPartition, TopicID: d.topicID, State: d.to})
		line := fmt.Sprintf("%s leader %d→%d epoch %d→%d isr %v→%v: %s", d.TopicPartition, d.from.Leader, d.to.Leader,
			d.from.LeaderEpoch, d.to.LeaderEpoch, d.from.ISR, d.to.ISR, d.why)
		if len(d.to.Eligible) > 0 {
			line += fmt.Sprint(" (eligible ", d.to.Eligible, ")")
		}
		if len(d.to.Doubtful) > 0 {
			line += fmt.Sprint(" (doubtful ", d.to.Doubtful, ")")
		}
		if d.to.UncleanEpoch > 0 && d.to.UncleanEpoch != d.from.UncleanEpoch {
			line += fmt.Sprintf(" (unclean in %d)", d.to.UncleanEpoch)
		}
		if d.to.Recovering {
			line += " (recovering)"
		}
		lines = append(lines, line)
	}
	return lines
}

// alter lets a leader ask for another in-sync set, and writes it.
func (w *world) alter(plain []string, named map[string]string) []string {
	tp, _ := P.PartitionOfDir(plain[1])
	topic := w.cluster.image.Topic(tp.Topic)
	p := topic.Partition(tp.Partition)
	a := Alteration{TopicPartition: tp, LeaderEpoch: p.LeaderEpoch, Epoch: p.Epoch, Recovering: named["recovering"] != ""}
	if text, ok := named["epoch"]; ok {
		a.LeaderEpoch = P.LeaderEpoch(transcript.Number(text))
	}
	if text, ok := named["version"]; ok {
		a.Epoch = P.PartitionEpoch(transcript.Number(text))
	}
	for member := range strings.SplitSeq(named["isr"], ",") {
		id, epoch, told := strings.Cut(member, ":")
		m := Member{ID: transcript.IDs(id)[0], Epoch: P.NoBrokerEpoch}
		if told {
			m.Epoch = P.BrokerEpoch(transcript.Number(epoch))
		}
		a.ISR = append(a.ISR, m)
	}
	next, err := alter(&w.cluster, transcript.IDs(plain[0])[0], p, a)
	switch {
	case err != nil:
		return []string{fmt.Sprint(P.CodeOf(err))}
	case next == nil:
		return []string{fmt.Sprintf("%s is so: isr %v version %d", tp, p.ISR, p.Epoch)}
	}
	return w.write([]decided{{TopicPartition: tp, topicID: topic.ID, from: p, to: next, why: whyAltered(p, next)}})
}

func (w *world) elect(plain []string) []string {
	kind := PreferredElection
	if plain[0] == "unclean" {
		kind = UncleanElection
	}
	tp, _ := P.PartitionOfDir(plain[1])
	d, err := electOne(&w.cluster, kind, tp)
	if err != nil {
		return []string{err.Error()}
	}
	return w.write([]decided{d})
}

// place places partitions, and shows how even that is.
func (w *world) place(partitions, factor int) []string {
	replicas, err := place(w.cluster.image, w.cluster.loads, nil, partitions, factor, w.random)
	if err != nil {
		return []string{err.Error()}
	}
	var lines []string
	l := newLoads()
	for i, r := range replicas {
		l.add(&metadata.Partition{Leader: r[0], Replicas: r}, 1)
		if partitions <= 12 {
			lines = append(lines, fmt.Sprintf("%d: %v", i, r))
		}
	}
	for _, b := range w.cluster.image.Brokers() {
		lines = append(lines, fmt.Sprintf("broker %d leads %d holds %d", b.ID, l.leaders[b.ID], l.replicas[b.ID]))
	}
	return append(lines, spread(w.cluster.image, replicas)...)
}

// spread says on how many racks the replicas of a partition lie at least.
func spread(image *metadata.Image, replicas [][]P.BrokerID) []string {
	least := -1
	for _, r := range replicas {
		racks := map[string]bool{}
		for _, id := range r {
			if rack := image.Broker(id).Rack; rack != nil {
				racks[*rack] = true
			}
		}
		if least < 0 || len(racks) < least {
			least = len(racks)
		}
	}
	if least <= 0 {
		return nil
	}
	return []string{fmt.Sprintf("every partition lies in %d rack(s) or more", least)}
}

func (w *world) plan(name string, named map[string]string) []string {
	topic := NewTopic{Name: name, Partitions: -1, ReplicationFactor: -1, Configs: map[string]*string{}}
	for k, v := range named {
		switch k {
		case "partitions":
			topic.Partitions = int32(transcript.Number(v))
		case "factor":
			topic.ReplicationFactor = int16(transcript.Number(v))
		case "assign":
			for part := range strings.SplitSeq(v, "/") {
				p, r, _ := strings.Cut(part, ":")
				topic.Assignment = append(topic.Assignment, Assignment{Partition: int32(transcript.Number(p)), Replicas: transcript.IDs(r)})
			}
		case "null":
			topic.Configs[v] = nil
		default:
			topic.Configs[k] = &v
		}
	}
	spoken := map[string]string{}
	for _, n := range w.cluster.image.Topics() {
		spoken[metricName(n)] = n
	}
	planner := planner{
		image: w.cluster.image, loads: w.cluster.loads.clone(), config: config.Default(), random: w.random,
		deleting: map[string]bool{"dying": true}, spoken: spoken, planned: map[string]string{},
		policy: func(t NewTopic) error {
			if t.Partitions == 13 {
				return fmt.Errorf("thirteen is not a number of partitions")
			}
			return nil
		},
	}
	plan, err := planner.planTopic(topic)
	if err != nil {
		return []string{err.Error()}
	}
	line := fmt.Sprintf("%d partition(s) on %v", len(plan.replicas), plan.replicas[:min(4, len(plan.replicas))])
	if len(plan.configs) > 0 {
		line += fmt.Sprint(" with ", plan.configs)
	}
	return []string{line}
}

func (w *world) grow(plain []string, named map[string]string) []string {
	g := Growth{Topic: plain[0], Count: int32(transcript.Number(plain[1]))}
	if text, ok := named["assign"]; ok {
		g.Assignment = [][]P.BrokerID{}
		for part := range strings.SplitSeq(text, "/") {
			g.Assignment = append(g.Assignment, transcript.IDs(part))
		}
	}
	replicas, err := planGrowth(w.cluster.image, w.cluster.loads, g, w.random)
	if err != nil {
		return []string{err.Error()}
	}
	return []string{fmt.Sprint("new partitions on ", replicas)}
}

// push fills the backlog of a broker, or takes a round of it.
func (w *world) push(command string, plain []string, named map[string]string) []string {
	image := w.cluster.image
	if command == "take" {
		return describeRound(w.backlog.take())
	}
	tp, _ := P.PartitionOfDir(plain[0])
	what := told{topicID: P.TopicID{byte(transcript.Number("0" + named["id"]))}, fresh: named["fresh"] != ""}
	what.state = &metadata.Partition{LeaderEpoch: P.LeaderEpoch(transcript.Number("0" + named["epoch"]))}
	switch command {
	case "tell":
		w.backlog.replica(image, tp, what)
	case "show":
		w.backlog.metadata(image, tp, what)
	case "hide":
		w.backlog.metadata(image, tp, told{topicID: what.topicID, old: what.state})
	case "stop":
		w.backlog.stop(image, tp, epochDuringDelete, named["erase"] != "")
	default:
		return []string{"unknown command " + command}
	}
	return nil
}

func describeRound(r *round) []string {
	if r == nil {
		return []string{"nothing"}
	}
	var lines []string
	for _, tp := range sorted(r.lead) {
		lines = append(lines, fmt.Sprintf("LeaderAndIsr %s id %d epoch %d new %v", tp, r.lead[tp].topicID[0], r.lead[tp].state.LeaderEpoch, r.lead[tp].fresh))
	}
	for _, tp := range sorted(r.show) {
		if t := r.show[tp]; t.state == nil {
			lines = append(lines, fmt.Sprintf("UpdateMetadata %s id %d deleted", tp, t.topicID[0]))
		} else {
			lines = append(lines, fmt.Sprintf("UpdateMetadata %s id %d epoch %d", tp, t.topicID[0], t.state.LeaderEpoch))
		}
	}
	for _, tp := range sorted(r.stop) {
		lines = append(lines, fmt.Sprint("StopReplica ", tp))
	}
	for _, tp := range sorted(r.erase) {
		lines = append(lines, fmt.Sprint("StopReplica and delete ", tp))
	}
	return lines
}
