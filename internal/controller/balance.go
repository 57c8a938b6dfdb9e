package controller

import (
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// firstBalance is how long after its election a controller looks for the first time whether leadership is
// where it belongs.
const firstBalance = 5 * time.Second

// late is by how much a look may be late before it is put off: the process was stopped meanwhile, and what
// it knows of the cluster is as old.
const late = 2 * time.Second

// balance moves leadership back to the preferred replicas of brokers that lead too few of theirs.
func (t *term) balance() error {
	now := time.Now()
	paused := now.Sub(t.balanceAt) > late
	settings := t.controller.options.Config()
	t.armBalance(time.Duration(settings.Long("leader.imbalance.check.interval.seconds")) * time.Second)
	switch {
	case paused:
		t.armBalance(firstBalance)
		return nil
	case !settings.Bool("auto.leader.rebalance.enable") || t.cluster.settling || t.looking():
		return nil
	}
	busy := func(tp P.TopicPartition) bool {
		return t.moving[tp] || t.ending[tp] != nil || t.deletions[tp.Topic] != nil
	}
	all := imbalanced(&t.cluster, int(settings.Int("leader.imbalance.per.broker.percentage")), busy)
	if len(all) == 0 {
		return nil
	}
	t.controller.options.Logger.Info("controller: moving leadership to preferred replicas", "partitions", len(all))
	_, err := t.electLeaders(PreferredElection, all)
	return err
}

// armBalance sets when to look next.
func (t *term) armBalance(after time.Duration) {
	t.balancing, t.balanceAt = time.After(after), time.Now().Add(after)
}

// imbalanced lists the partitions whose preferred replica shall lead again: those of brokers that lead less
// than they should by more than so many per cent of the partitions that prefer them, as far as they may
// lead.
func imbalanced(c *cluster, percent int, busy func(P.TopicPartition) bool) []P.TopicPartition {
	preferring := map[P.BrokerID]int{}
	astray := map[P.BrokerID][]P.TopicPartition{}
	for _, name := range c.image.Topics() {
		for i, p := range c.image.Topic(name).Partitions {
			id := p.Preferred()
			if id == P.NoBroker || !c.image.Alive(id) || c.departs(id) {
				continue
			}
			preferring[id]++
			if tp := (P.TopicPartition{Topic: name, Partition: int32(i)}); p.Leader != id && !busy(tp) {
				astray[id] = append(astray[id], tp)
			}
		}
	}
	var all []P.TopicPartition
	for id, partitions := range astray {
		if len(partitions)*100 <= percent*preferring[id] {
			continue
		}
		for _, tp := range partitions {
			if p := c.image.Partition(tp); mayLeadAgain(c, p) {
				all = append(all, tp)
			}
		}
	}
	slices.SortFunc(all, comparePartitions)
	return all
}

// mayLeadAgain reports whether the preferred replica of a partition is in sync and steady.
func mayLeadAgain(c *cluster, p *metadata.Partition) bool {
	return p.Leader != P.NoBroker && slices.Contains(p.ISR, p.Preferred()) && c.standing(p, p.Preferred()) == steady
}
