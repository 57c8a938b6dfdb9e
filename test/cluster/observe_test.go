package main

import (
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

func TestTreeViewFindsContradictions(t *testing.T) {
	tp := protocol.TopicPartition{Topic: orders, Partition: 1}
	state := func(controller, leader, epoch, isr string) string {
		return `{"controller_epoch":` + controller + `,"leader":` + leader + `,"version":1,"leader_epoch":` + epoch + `,"isr":[` + isr + `]}`
	}
	for name, c := range map[string]struct {
		epochs, states []string
		want           string
	}{
		"all is well":            {[]string{"1", "1", "2"}, []string{state("1", "1", "3", "1,2"), state("1", "1", "3", "1"), state("2", "2", "4", "2")}, ""},
		"no leader":              {[]string{"1"}, []string{state("1", "-1", "3", "1")}, ""},
		"controller epoch falls": {[]string{"2", "1"}, []string{state("1", "1", "3", "1"), state("1", "1", "3", "1")}, "controller epoch"},
		"leader epoch falls":     {[]string{"1", "1"}, []string{state("1", "1", "3", "1"), state("1", "2", "2", "2")}, "after leader epoch 3"},
		"older controller wrote": {[]string{"2", "2"}, []string{state("2", "1", "3", "1"), state("1", "2", "4", "2")}, "controller epoch 2"},
		"two lead in one epoch":  {[]string{"1", "1"}, []string{state("1", "1", "3", "1,2"), state("1", "2", "3", "1,2")}, "brokers 1 and 2 lead in epoch 3"},
		"nobody is in sync":      {[]string{"1"}, []string{state("1", "1", "3", "")}, "in-sync set"},
		"the leader is not":      {[]string{"1"}, []string{state("1", "1", "3", "2")}, "in-sync set"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newTreeView(newHistory())
			for i, text := range c.states {
				v.look([]protocol.TopicPartition{tp}, []coordination.GetResult{{Data: []byte(c.epochs[i])}, {Data: []byte(text)}})
			}
			if got := v.history.contradiction(); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
