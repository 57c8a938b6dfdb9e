package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/barnabas-mq/barnabas/bench/cluster"
	"github.com/barnabas-mq/barnabas/bench/results"
	"github.com/barnabas-mq/barnabas/bench/servers"
)

// clusterScenarios are three brokers on a ZooKeeper, ours beside Apache Kafka 3.9, which is the last to have one. Sides do
// not take turns, as they would be in each other's way: each has its rounds on one cluster, after the other's has ended, and
// nothing else of ours runs meanwhile.
func clusterScenarios() []*scenario {
	var all []*scenario
	for _, one := range cluster.Scenarios() {
		all = append(all, &scenario{name: one.Name, what: one.What, run: func(c *comparison, s *scenario) error {
			if err := c.stopAll(); err != nil {
				return err
			}
			for _, side := range c.chosen([]string{results.Kafka, results.Barnabas}) {
				if err := c.runCluster(s, one, side); err != nil {
					return err
				}
			}
			return nil
		}})
	}
	return all
}

// runCluster measures one side on a cluster of its own, whose files are gone afterwards.
func (c *comparison) runCluster(s *scenario, one cluster.Scenario, side string) (err error) {
	three, err := c.threeBrokers(s.name, side)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, three.Stop(), c.place.RemoveEnded()) }()
	fmt.Fprintf(os.Stderr, "  starting three brokers of %s\n", side)
	if err := three.Start(c.ctx); err != nil {
		return err
	}
	return one.Measure(c.ctx, three, c.rounds, func(round int, measured func() ([]cluster.Figure, error)) error {
		if err := c.settle(); err != nil {
			return err
		}
		if one.WritesMuch {
			if err := c.fillPageCache(); err != nil {
				return err
			}
		}
		fmt.Fprintf(os.Stderr, "  round %d of %d: %s\n", round, c.rounds, side)
		var figures []cluster.Figure
		k, err := c.watched(func() (err error) {
			figures, err = measured()
			return err
		})
		if err != nil {
			return err
		}
		for _, f := range figures {
			c.add(s, side, round, k, clusterMeasure(f))
		}
		return nil
	})
}

func clusterMeasure(f cluster.Figure) measure {
	m := measure{name: f.Name, unit: f.Unit, more: f.More, value: f.Value}
	if f.Goal != (results.Goal{}) {
		m.goals = []results.Goal{f.Goal}
	}
	return m
}

// threeBrokers makes the cluster of a side.
func (c *comparison) threeBrokers(name, side string) (three *servers.Cluster, err error) {
	folder, properties := strings.ToLower(side)+"-"+name, cluster.Properties()
	switch side {
	case results.Kafka:
		three, err = c.place.KafkaCluster(folder, 3, properties...)
	case results.Barnabas:
		three, err = c.place.BarnabasCluster(folder, 3, properties...)
	default: // another program of ours
		own := c.place.Program
		c.place.Program = c.before
		three, err = c.place.BarnabasCluster(folder, 3, properties...)
		c.place.Program = own
	}
	if err == nil {
		c.set.Runs[0].Versions[side+" in a cluster"] = three.Brokers[0].Version
		c.set.Runs[0].Versions["ZooKeeper"] = three.ZooKeeper.Version
	}
	return three, err
}
