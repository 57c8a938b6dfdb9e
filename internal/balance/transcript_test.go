package balance

import (
	"fmt"
	"slices"
	"testing"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/transcript"
)

// world is what the commands of one transcript act on.
type world struct {
	brokers    []Broker
	partitions []Partition
}

// Every file in testdata is a transcript: commands, a line of dashes, and what they printed. Commands:
//
//	broker 1,2 rack=a [closed]       brokers that live
//	gone 2                           one does not any more
//	topic t 1,2 2,3 bytes=100 isr=1  a topic with the replicas of each partition
//	many t 12 2 on=1,2,3             a topic of 12 partitions with 2 replicas each, in turn on some brokers
//	spread, fill 90, demote 1        what the package plans; the plan is carried out, and planned once more
//	evacuate 1,2 [onto=3] [of=t]
//	resize t 3
//
// A plan also says how many partitions it puts on fewer racks, where it does.
func TestTranscripts(t *testing.T) {
	transcript.PlayAll(t, func(t *testing.T) func(transcript.Command) []string {
		w := &world{}
		return func(c transcript.Command) []string { return w.run(t, c) }
	})
}

// run carries out one command.
func (w *world) run(t *testing.T, c transcript.Command) []string {
	plain, named := c.Plain, c.Named
	switch c.Name {
	case "broker":
		for _, id := range transcript.IDs(plain[0]) {
			w.brokers = append(w.brokers, Broker{ID: id, Rack: named["rack"], Closed: slices.Contains(plain, "closed")})
		}
		return nil
	case "gone":
		w.brokers = slices.DeleteFunc(w.brokers, func(b Broker) bool { return slices.Contains(transcript.IDs(plain[0]), b.ID) })
		return nil
	case "topic":
		for i, replicas := range plain[1:] {
			w.add(plain[0], i, transcript.IDs(replicas), named)
		}
		return nil
	case "many":
		on := transcript.IDs(named["on"])
		for i := range transcript.Number(plain[1]) {
			var replicas []P.BrokerID
			for r := range transcript.Number(plain[2]) {
				next := i
				if r > 0 {
					next += 1 + (i/len(on)+r-1)%(len(on)-1)
				}
				replicas = append(replicas, on[next%len(on)])
			}
			w.add(plain[0], i, replicas, named)
		}
		return nil
	}
	return w.plan(t, c.Name, plain, named)
}

func (w *world) add(topic string, partition int, replicas []P.BrokerID, named map[string]string) {
	p := Partition{TopicPartition: P.TopicPartition{Topic: topic, Partition: int32(partition)}, Replicas: replicas, InSync: replicas}
	if isr, ok := named["isr"]; ok {
		p.InSync = transcript.IDs(isr)
	}
	if bytes, ok := named["bytes"]; ok {
		p.Bytes = int64(transcript.Number(bytes))
	}
	w.partitions = append(w.partitions, p)
}

// plan plans, carries it out, and looks that nothing is left to do.
func (w *world) plan(t *testing.T, what string, plain []string, named map[string]string) []string {
	c := New(w.brokers, w.partitions)
	said, err := plan(c, what, plain, named)
	if err != nil {
		return []string{err.Error()}
	}
	var bytes int64
	moves := c.Moves()
	for _, m := range moves {
		said = append(said, fmt.Sprintf("%s %v -> %v", m.TopicPartition, m.From, m.To))
		bytes += m.Bytes
		i := slices.IndexFunc(w.partitions, func(p Partition) bool { return p.TopicPartition == m.TopicPartition })
		w.partitions[i].Replicas, w.partitions[i].InSync = m.To, m.To
	}
	said = append(said, fmt.Sprintf("%d moves, %d bytes", len(moves), bytes))
	if n := c.LosingRacks(); n > 0 {
		said = append(said, fmt.Sprintf("%d on fewer racks", n))
	}
	for _, b := range w.brokers {
		said = append(said, fmt.Sprintf("broker %d holds %d leads %d", b.ID, c.Holds(b.ID), c.Leads(b.ID)))
	}
	again := New(w.brokers, w.partitions)
	if _, err := plan(again, what, plain, named); err != nil || len(again.Moves()) > 0 {
		t.Errorf("%s %v: planned once more, it moves %v", what, plain, again.Moves())
	}
	return said
}

func plan(c *Cluster, what string, plain []string, named map[string]string) (said []string, err error) {
	switch what {
	case "spread":
		c.Spread()
	case "fill":
		c.Fill(transcript.Number(plain[0]))
	case "demote":
		if stuck := c.Demote(transcript.IDs(plain[0])[0]); len(stuck) > 0 {
			said = append(said, fmt.Sprintf("nobody else for %v", stuck))
		}
	case "evacuate":
		leaving, onto := transcript.IDs(plain[0]), transcript.IDs(named["onto"])
		err = c.Evacuate(func(tp P.TopicPartition) bool { return named["of"] == "" || tp.Topic == named["of"] },
			func(id P.BrokerID) bool { return slices.Contains(leaving, id) },
			func(id P.BrokerID) bool { return len(onto) == 0 || slices.Contains(onto, id) })
	case "resize":
		err = c.Resize(func(tp P.TopicPartition) bool { return tp.Topic == plain[0] }, transcript.Number(plain[1]))
	default:
		err = fmt.Errorf("unknown command %s", what)
	}
	return said, err
}
