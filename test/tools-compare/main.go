// Command tools-compare runs the same command lines with Kafka's own tools and with ours, against Apache Kafka
// and against Barnabas, and compares exit statuses and what was printed.
//
//	go run ./test/tools-compare -side NAME,TOOLS,HOST:PORT,DATA -side … [-run REGEXP] [-v]
//
// A side is a folder of tools, a broker and the broker's data directory; the first one is what the others are
// held to. Each wants a broker of its own, fresh, with node.id=1 and group.initial.rebalance.delay.ms=0:
//
//	java/kafka          Kafka's tools, Kafka's broker: the truth
//	java/barnabas       Kafka's tools, our broker: what the broker does
//	barnabas/barnabas   our tools, our broker: what people see
//	barnabas/kafka      our tools, Kafka's broker: what the tools do
//
// The part of a side's name before the slash is compared too: sides with the same tools must also print the same
// on standard error, which says little across tools, since Java prints stack traces there.
//
// The command lines are in testdata/*.txt (script.go says how they are written). Before lines are compared,
// ids, times, addresses, widths of columns and measurements are taken out (normal.go). Differences that are
// meant are in testdata/intended.txt, line by line, with the reason. Any other one makes the exit status 1.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
)

func main() {
	var o options
	flag.Func("side", "`name,tools,address,data` of a side; the first is the reference", o.addSide)
	flag.StringVar(&o.dir, "commands", "test/tools-compare/testdata", "the `folder` of command lines")
	flag.BoolVar(&o.verbose, "v", false, "print every command and what the first side printed")
	only := flag.String("run", "", "only scripts whose name matches this regular expression")
	flag.Parse()
	if len(o.sides) < 2 {
		flag.Usage()
		os.Exit(2)
	}
	o.only = regexp.MustCompile(*only)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	different, err := o.compare(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tools-compare:", err)
		os.Exit(2)
	}
	if different > 0 {
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	sides   []*side
	dir     string
	only    *regexp.Regexp
	verbose bool
}

func (o *options) addSide(given string) error {
	cells := strings.Split(given, ",")
	if len(cells) != 4 || !strings.Contains(cells[0], "/") {
		return fmt.Errorf("want tools/broker,folder of tools,host:port,data directory")
	}
	o.sides = append(o.sides, &side{name: cells[0], tools: cells[1], broker: cells[2], data: cells[3]})
	return nil
}
