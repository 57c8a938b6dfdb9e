package main

import (
	"context"
	"testing"

	"github.com/barnabas-mq/barnabas"
)

// TestAnswersAreKafkas holds an embedded broker to the answers that Apache Kafka 4.4 gave.
func TestAnswersAreKafkas(t *testing.T) {
	want, err := readAnswers("testdata/kafka-4.4.txt")
	if err != nil {
		t.Fatal(err)
	}
	meant, err := readIntended("testdata/intended.txt")
	if err != nil {
		t.Fatal(err)
	}
	b, err := barnabas.Start(t.Context(), barnabas.Options{Properties: map[string]string{
		"node.id": "1", "group.initial.rebalance.delay.ms": "0",
		"log.initial.task.delay.ms": "3600000", // no retention, no compaction between a question and the next
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	s, err := newSide(b.Address(), "test")
	if err != nil {
		t.Fatal(err)
	}
	used := map[difference]bool{}
	for _, c := range cases(s) {
		kafka, ok := want[c.name]
		if !ok {
			t.Errorf("%s: there is no answer of Kafka's; record them again", c.name)
			continue
		}
		if got := c.answer(s, codes); got != kafka {
			d, ok := meant.find(c.name, kafka, got)
			if !ok {
				t.Errorf("%s\n  Kafka: %s\n  here:  %s", c.name, kafka, got)
			}
			used[d] = true
		}
	}
	for _, d := range meant {
		if !used[d] {
			t.Errorf("a difference that is meant is none any more: %v", d)
		}
	}
}

func TestHolds(t *testing.T) {
	for _, c := range []struct {
		text, pattern string
		want          bool
	}{
		{"Fetch v12", "Fetch", true}, {"Fetch v12", "v12", false}, {"Fetch v12", "*v12", true},
		{"Fetch v12", "F*2", true}, {"Fetch v12", "F*3", false}, {"", "*", true}, {"a", "", true},
	} {
		if got := holds(c.text, c.pattern); got != c.want {
			t.Errorf("holds(%q, %q) = %v", c.text, c.pattern, got)
		}
	}
}
