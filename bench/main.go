// Command bench compares Barnabas with Apache Kafka on the machine that it runs on: the same loads by the same generator
// (that of "barnabas perf") on both, in turns, with what each takes read from /proc.
//
//	go run ./bench                            the nine core loads, about 15 minutes
//	go run ./bench -scenario p1k,c1k          some scenarios; -scenario all; -list tells what there is
//	go run ./bench -scenario p1k -quick       one small round, to see what a change does
//	go run ./bench report FILE.json...        one table and one picture of several runs
//
// A scenario runs every side once without counting, then -rounds times in turns (A B, B A, …), each time after the kernel has
// written what is dirty. Starts and recoveries have no round that does not count, and clusters take no turns. The table has
// medians with the smallest and the largest round. Besides Kafka and Barnabas there are references: floors (bench/floor), an
// echo, and with -before another barnabas program.
//
// It needs Linux, Java 17 and Maven, which fetches Kafka's jars from Maven Central once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/barnabas-mq/barnabas/bench/results"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == serveCommand { // a process of its own, which signals end
		if err := serveFloor(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command(ctx, os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, arguments []string) error {
	if len(arguments) > 0 && arguments[0] == "report" {
		return report(arguments[1:])
	}
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	// The generator shares the machine with the broker: it collects its garbage less often, and has threads to spare for
	// calls that block.
	debug.SetGCPercent(400)
	runtime.GOMAXPROCS(2 * runtime.NumCPU())
	return compare(ctx, o)
}

// options are the command line.
type options struct {
	scenarios []*scenario
	rounds    int
	scale     float64
	quick     bool
	sides     []string // only these; nil for all
	before    string   // another barnabas program
	json, svg string
	dir       string
	port      int
	profile   string
	warmup    bool
}

func parse(arguments []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	names := f.String("scenario", "core", "scenarios, with commas; core, or all")
	list := f.Bool("list", false, "tell what scenarios there are, and end")
	f.IntVar(&o.rounds, "rounds", 5, "rounds that count")
	f.Float64Var(&o.scale, "scale", 1, "multiplies the sizes of the loads")
	f.BoolVar(&o.quick, "quick", false, "one round of a fifth of the size: for a look, not for a claim")
	sides := f.String("sides", "", "only these sides, with commas, as Barnabas,floor")
	f.StringVar(&o.before, "before", "", "another barnabas program, as a side called before")
	f.StringVar(&o.json, "json", "", "write the samples to this file, for report")
	f.StringVar(&o.svg, "svg", "", "draw a picture to this file")
	f.StringVar(&o.dir, "dir", "", "folder for the servers' data (default: the system's temporary one)")
	f.IntVar(&o.port, "port", 29000, "first port")
	f.StringVar(&o.profile, "profile", "", "folder for a CPU profile of Barnabas in each scenario")
	f.BoolVar(&o.warmup, "warmup", true, "warm everything up first; without it the program can be tried, and nothing claimed")
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: go run ./bench [flags], or go run ./bench report [flags] FILE.json...")
		f.PrintDefaults()
	}
	if err := f.Parse(arguments); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("%q is no flag: scenarios go with -scenario", f.Arg(0))
	}
	if *list {
		for _, s := range scenarios() {
			fmt.Printf("%-18s %s\n", s.name, s.what)
		}
		return nil, flag.ErrHelp
	}
	if o.quick {
		o.rounds, o.scale = 1, o.scale/5
	}
	if o.rounds < 1 || o.scale <= 0 {
		return nil, errors.New("-rounds and -scale must be positive")
	}
	var err error
	if o.scenarios, err = choose(*names); err != nil {
		return nil, err
	}
	return o, o.chooseSides(*sides)
}

// chooseSides takes -sides and -before.
func (o *options) chooseSides(names string) error {
	known := []string{results.Kafka, results.Barnabas, discard, floored, echo}
	if o.before != "" {
		known = append(known, before)
		path, err := filepath.Abs(o.before) // it runs in a folder of its own
		if err != nil {
			return err
		}
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("-before: %w", err)
		}
		o.before = path
	}
	if names == "" {
		return nil
	}
	o.sides = strings.Split(names, ",")
	for _, side := range o.sides {
		if !slices.Contains(known, side) {
			return fmt.Errorf("-sides: there is no side %q; there are %s", side, strings.Join(known, ", "))
		}
	}
	return nil
}

// report prints one table of several files, and draws one picture.
func report(arguments []string) error {
	f := flag.NewFlagSet("report", flag.ContinueOnError)
	svg := f.String("svg", "", "draw a picture to this file")
	merged := f.String("json", "", "write the merged samples to this file")
	if err := f.Parse(arguments); err != nil {
		return err
	}
	if f.NArg() == 0 {
		return errors.New("report needs files that -json has written")
	}
	set, err := results.Read(f.Args()...)
	if err != nil {
		return err
	}
	return finish(set, *merged, *svg)
}

// finish prints the table, and writes the files that were asked for.
func finish(set *results.Set, json, svg string) error {
	err := set.Table(os.Stdout)
	if json != "" {
		err = errors.Join(err, set.Write(json))
	}
	if svg == "" {
		return err
	}
	file, failed := os.Create(svg)
	if failed != nil {
		return errors.Join(err, failed)
	}
	return errors.Join(err, set.Plot(file, "Barnabas and Apache Kafka on the same machine"), file.Close())
}
