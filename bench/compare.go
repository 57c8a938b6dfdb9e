package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/bench/cluster"
	"github.com/barnabas-mq/barnabas/bench/results"
	"github.com/barnabas-mq/barnabas/bench/servers"
)

// comparison is a run of the program: the servers that it has started, and what it has measured.
type comparison struct {
	*options
	ctx   context.Context
	place *servers.Place
	set   *results.Set
	sides map[string]*servers.Server // that run, by the side's name
	topic int                        // how many names of topics have been given out
	pages pageCache
}

// compare runs the scenarios and prints what they have measured, also where one fails or is interrupted.
func compare(ctx context.Context, o *options) error {
	place, err := servers.NewPlace(o.dir, o.port)
	if err != nil {
		return err
	}
	c := &comparison{options: o, ctx: ctx, place: place, sides: map[string]*servers.Server{}, set: &results.Set{}}
	c.set.Runs = []results.Run{{
		Started: time.Now().UTC().Format(time.RFC3339), Command: commandLine(), Machine: machine(place.Dir),
		Versions: map[string]string{"commit": commit(place.Root), "Go": runtime.Version(), "Java": servers.Java()},
		Settings: servers.Settings() + "; each broker of a cluster has " + strings.Join(cluster.Properties(), " "),
		Scale:    o.scale, Quick: o.quick, Cold: !o.warmup,
	}}
	var errs []error
	for _, s := range o.scenarios {
		began := time.Now()
		fmt.Fprintf(os.Stderr, "%s: %s\n", s.name, s.what)
		// What servers of its own have left goes at once: all scenarios together would fill the disk.
		if err := errors.Join(s.run(c, s), c.place.RemoveEnded()); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
		}
		fmt.Fprintf(os.Stderr, "%s took %s\n", s.name, time.Since(began).Round(time.Second))
		if ctx.Err() != nil {
			break
		}
	}
	errs = append(errs, c.pages.close(), place.Close())
	if len(c.set.Results) > 0 {
		errs = append(errs, finish(c.set, o.json, o.svg))
	}
	return errors.Join(errs...)
}

// commandLine is the command as it would be typed.
func commandLine() string {
	return strings.Join(append([]string{"go run ./bench"}, os.Args[1:]...), " ")
}

// server returns the server of a side, started and warmed up where it does not run yet.
func (c *comparison) server(side string) (*servers.Server, error) {
	if s := c.sides[side]; s != nil && s.Running() {
		return s, nil
	}
	s, err := c.newServer(side, strings.ToLower(side))
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(os.Stderr, "  starting %s\n", side)
	if err := s.Start(c.ctx); err != nil {
		return nil, err
	}
	c.sides[side] = s
	if side == echo || !c.warmup {
		return s, nil
	}
	fmt.Fprintf(os.Stderr, "  warming up %s\n", side)
	return s, c.warmUp(side, s)
}

// newServer makes a server of a side, with a folder of that name and further properties.
func (c *comparison) newServer(side, name string, properties ...string) (s *servers.Server, err error) {
	switch side {
	case results.Kafka:
		s, err = c.place.Kafka(name, properties...)
	case results.Barnabas:
		if c.profile != "" {
			properties = append(properties, "http.listener="+c.profileAddress())
		}
		s, err = c.place.Barnabas(name, properties...)
	case before:
		own := c.place.Program
		c.place.Program = c.before
		s, err = c.place.Barnabas(name, properties...)
		c.place.Program = own
	default:
		s, err = c.place.Other(name, func(address, data string) []string { return floorCommand(side, address, data) })
	}
	if err == nil {
		c.set.Runs[0].Versions[side] = s.Version
	}
	return s, err
}

// chosen are the sides of a scenario that take part in this run.
func (c *comparison) chosen(sides []string) []string {
	if c.before != "" && slices.Contains(sides, results.Barnabas) {
		sides = append(slices.Clone(sides), before)
	}
	if c.options.sides == nil {
		return sides
	}
	return slices.DeleteFunc(slices.Clone(sides), func(side string) bool { return !slices.Contains(c.options.sides, side) })
}

// inTurns calls one for every side and round, in turns, with the servers of the sides running: round 0, which does not
// count, then 1 to rounds, every other one of them backwards. Before each the kernel writes what is dirty.
func (c *comparison) inTurns(sides []string, one func(side string, server *servers.Server, round int) error) error {
	for _, side := range c.chosen(sides) {
		if _, err := c.server(side); err != nil {
			return err
		}
	}
	return c.turns(sides, 0, func(side string, round int) error { return one(side, c.sides[side], round) })
}

// turns is inTurns for what starts its servers itself, from a round on.
func (c *comparison) turns(sides []string, first int, one func(side string, round int) error) error {
	sides = c.chosen(sides)
	for round := first; round <= c.rounds; round++ {
		order := slices.Clone(sides)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, side := range order {
			if err := c.settle(); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "  round %d of %d: %s\n", round, c.rounds, side)
			if err := one(side, round); err != nil {
				return fmt.Errorf("%s: %w", side, err)
			}
		}
	}
	return nil
}

// add notes samples of a round and what it took, cost{} where that was not measured; round 0 does not count.
func (c *comparison) add(s *scenario, side string, round int, k cost, measures ...measure) {
	if round == 0 {
		return
	}
	for _, m := range measures {
		c.set.Add(results.Result{
			Scenario: s.name, What: s.what, State: k.state(), Scale: c.scale, Measure: m.name, Unit: m.unit, More: m.more, Goals: m.goals,
		}, side, m.value)
	}
}

// measure is one value of a round.
type measure struct {
	name, unit string
	more       bool
	value      float64
	goals      []results.Goal
}

// size multiplies a number of things by the scale of the run.
func (c *comparison) size(n int64) int64 { return max(1000, int64(float64(n)*c.scale)) }

// duration multiplies a time by the scale of the run.
func (c *comparison) duration(d time.Duration) time.Duration {
	return max(time.Second, time.Duration(float64(d)*c.scale))
}

// profilePath is where the profile of a scenario goes.
func (c *comparison) profilePath(s *scenario) string {
	return filepath.Join(c.profile, s.name+".pprof")
}
