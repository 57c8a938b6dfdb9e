package balance

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

var rewrite = flag.Bool("rewrite", false, "write what the transcripts should say; then look at the difference")

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
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { transcript(t, file) })
	}
}

func transcript(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{}
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n\n") {
		input, _, found := strings.Cut(block, "\n----")
		if !found { // a comment
			fmt.Fprintf(&out, "%s\n\n", block)
			continue
		}
		fmt.Fprintf(&out, "%s\n----\n", input)
		for line := range strings.SplitSeq(input, "\n") {
			if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
				for _, said := range w.run(t, words) {
					fmt.Fprintf(&out, "%s\n", said)
				}
			}
		}
		out.WriteString("\n")
	}
	got := strings.TrimSpace(out.String()) + "\n"
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != string(data) {
		t.Errorf("the transcript says something else now; run with -rewrite and look at the difference:\n%s", got)
	}
}

// run carries out one command.
func (w *world) run(t *testing.T, words []string) []string {
	var plain []string
	named := map[string]string{}
	for _, word := range words[1:] {
		if k, v, ok := strings.Cut(word, "="); ok {
			named[k] = v
		} else {
			plain = append(plain, word)
		}
	}
	switch words[0] {
	case "broker":
		for _, id := range ids(plain[0]) {
			w.brokers = append(w.brokers, Broker{ID: id, Rack: named["rack"], Closed: slices.Contains(plain, "closed")})
		}
		return nil
	case "gone":
		w.brokers = slices.DeleteFunc(w.brokers, func(b Broker) bool { return slices.Contains(ids(plain[0]), b.ID) })
		return nil
	case "topic":
		for i, replicas := range plain[1:] {
			w.add(plain[0], i, ids(replicas), named)
		}
		return nil
	case "many":
		on := ids(named["on"])
		for i := range number(plain[1]) {
			var replicas []P.BrokerID
			for r := range number(plain[2]) {
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
	return w.plan(t, words[0], plain, named)
}

func (w *world) add(topic string, partition int, replicas []P.BrokerID, named map[string]string) {
	p := Partition{TopicPartition: P.TopicPartition{Topic: topic, Partition: int32(partition)}, Replicas: replicas, InSync: replicas}
	if isr, ok := named["isr"]; ok {
		p.InSync = ids(isr)
	}
	if bytes, ok := named["bytes"]; ok {
		p.Bytes = int64(number(bytes))
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
		c.Fill(number(plain[0]))
	case "demote":
		if stuck := c.Demote(ids(plain[0])[0]); len(stuck) > 0 {
			said = append(said, fmt.Sprintf("nobody else for %v", stuck))
		}
	case "evacuate":
		leaving, onto := ids(plain[0]), ids(named["onto"])
		err = c.Evacuate(func(tp P.TopicPartition) bool { return named["of"] == "" || tp.Topic == named["of"] },
			func(id P.BrokerID) bool { return slices.Contains(leaving, id) },
			func(id P.BrokerID) bool { return len(onto) == 0 || slices.Contains(onto, id) })
	case "resize":
		err = c.Resize(func(tp P.TopicPartition) bool { return tp.Topic == plain[0] }, number(plain[1]))
	default:
		err = fmt.Errorf("unknown command %s", what)
	}
	return said, err
}

func ids(text string) []P.BrokerID {
	var all []P.BrokerID
	for one := range strings.SplitSeq(text, ",") {
		if one != "" {
			all = append(all, P.BrokerID(number(one)))
		}
	}
	return all
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}
