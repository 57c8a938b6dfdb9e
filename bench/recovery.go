package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/bench/results"
	"github.com/barnabas-mq/barnabas/bench/servers"
	"github.com/barnabas-mq/barnabas/internal/perf"
)

// recoveryPartitions share recoveryRecords of 1 KiB, which are to be recovered.
const recoveryPartitions, recoveryRecords = 100, 20_000_000

// laterPowerCut is, at full scale, how long after a start the second power cut comes. Ours has synced by then what it got, and noted so:
// syncs begin after 30 s, and log.flush.offset.checkpoint.interval.ms is 60 s.
const laterPowerCut = 3 * time.Minute

// recovered is what a side recovers.
type recovered struct {
	server *servers.Server
	topic  string
}

// runRecovery fills servers of its own, and kills and starts them: right behind the load, and after some time in which
// they had nothing to do. The files of both sides together may be more than the page cache holds: how much came from the
// disk is among what is told.
func runRecovery(c *comparison, s *scenario) error {
	sides := c.chosen([]string{results.Kafka, results.Barnabas})
	if err := errors.Join(c.needDisk(int64(len(sides))*c.size(recoveryRecords)*1125), c.stopAll()); err != nil {
		return err
	}
	all := map[string]*recovered{}
	for _, side := range sides {
		r, err := c.fillForRecovery(side)
		if err != nil {
			return err
		}
		defer r.server.Kill()
		all[side] = r
		r.server.Kill() // in its turn, a side has the machine for itself
	}
	if err := c.recover(s, all, "behind the load"); err != nil {
		return err
	}
	for _, r := range all {
		if err := r.server.Start(c.ctx); err != nil {
			return err
		}
	}
	if err := c.pass(c.duration(laterPowerCut)); err != nil {
		return err
	}
	for _, r := range all {
		r.server.Kill()
	}
	return c.recover(s, all, "three minutes later")
}

// fillForRecovery starts a server, and writes what is to be recovered. The kernel has written it when it returns.
func (c *comparison) fillForRecovery(side string) (*recovered, error) {
	server, err := c.newServer(side, "recovery-"+side)
	if err != nil {
		return nil, err
	}
	if err := server.Start(c.ctx); err != nil {
		return nil, err
	}
	topic, err := c.newTopic(server, recoveryPartitions, nil)
	if err != nil {
		return nil, err
	}
	load := writing{records: recoveryRecords, size: 1 << 10, values: perf.Noise, options: []kgo.Opt{kgo.RecordPartitioner(kgo.RoundRobinPartitioner())}}
	if _, _, err := load.write(c, server, topic, unprofiled); err != nil {
		return nil, err
	}
	return &recovered{server, topic}, c.settle()
}

// recover starts and kills the servers in turns.
func (c *comparison) recover(s *scenario, all map[string]*recovered, when string) error {
	return c.turns([]string{results.Kafka, results.Barnabas}, 1, func(side string, round int) error {
		r := all[side]
		if err := forgetBoot(r.server); err != nil {
			return err
		}
		began := time.Now()
		if err := r.server.Start(c.ctx); err != nil {
			return err
		}
		if err := c.awaitPartitions(r.server, r.topic, recoveryPartitions); err != nil {
			return err
		}
		took := time.Since(began).Seconds()
		u, err := r.server.Usage()
		if err != nil {
			return err
		}
		r.server.Kill()
		c.add(s, side, round, cost{},
			measure{name: when + ": start until the last partition serves", unit: "s", value: took, goals: []results.Goal{results.AtMost(0.2, results.Kafka)}},
			measure{name: when + ": broker CPU", unit: "s", value: u.CPU},
			measure{name: when + ": read from a disk", unit: "MB", value: float64(u.Read) / 1e6},
			measure{name: when + ": memory, peak", unit: "MB", value: float64(u.Peak) / 1e6})
		return nil
	})
}

// manyPartitions is how many runManyPartitions has. Kafka cannot take part: it keeps three files of each open, which is
// more than many systems let a process have.
const manyPartitions = 10_000

// runManyPartitions starts a broker again and again that was stopped in order.
func runManyPartitions(c *comparison, s *scenario) error {
	if err := c.stopAll(); err != nil {
		return err
	}
	for _, side := range c.chosen([]string{results.Barnabas}) {
		server, err := c.newServer(side, "many-"+side)
		if err != nil {
			return err
		}
		defer server.Kill()
		if err := server.Start(c.ctx); err != nil {
			return err
		}
		load := requests{partitions: int(c.size(manyPartitions)), connections: 4, inFlight: 4, batch: 1 << 10, record: 1 << 10, acks: 1}
		if load.topic, err = c.newTopic(server, load.partitions, nil); err != nil {
			return err
		}
		if err := c.fill(server, load); err != nil {
			return err
		}
		for round := range c.rounds + 1 {
			if err := errors.Join(server.Stop(), c.settle()); err != nil {
				return err
			}
			began := time.Now()
			if err := server.Start(c.ctx); err != nil {
				return err
			}
			if err := c.awaitPartitions(server, load.topic, load.partitions); err != nil {
				return err
			}
			c.add(s, side, round, cost{}, measure{
				name: "start until the last partition serves", unit: "s", value: time.Since(began).Seconds(), goals: []results.Goal{results.AtMost(2, "")},
			})
		}
	}
	return nil
}

// forgetBoot makes a log directory of Barnabas one that another boot of the kernel has left. Kafka knows no boots.
func forgetBoot(server *servers.Server) error {
	path := filepath.Join(server.Data(), ".barnabas-boot")
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	_, rest, found := bytes.Cut(text, []byte("boot.id="))
	end := bytes.IndexByte(rest, '\n')
	if !found || end < 0 {
		return fmt.Errorf("%s has no boot.id", path)
	}
	return os.WriteFile(path, bytes.Replace(text, rest[:end], []byte("00000000-0000-4000-8000-000000000000"), 1), 0o644)
}

// awaitPartitions waits until every partition of a topic tells its end.
func (c *comparison) awaitPartitions(server *servers.Server, topic string, partitions int) error {
	cl, err := client(server)
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(c.ctx, 10*time.Minute)
	defer cancel()
	return awaitLeaders(ctx, cl, topic, partitions, 5*time.Millisecond)
}
