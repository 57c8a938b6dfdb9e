package cli

import (
	"context"
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/barnabas-mq/barnabas"
	"github.com/barnabas-mq/barnabas/internal/cli/kafka"
)

// The scripts in testdata run the program against a broker in memory. What those in testdata/kafka expect
// was printed by the tools of Apache Kafka 4.4 against its own broker:
//
//	BARNABAS_TEST_TOOLS=/opt/kafka/bin BARNABAS_TEST_BROKER=127.0.0.1:9092 go test ./internal/cli -run TestKafkaTools -parallel 1 -update
//
// runs those tools instead of ours, on a broker that must be empty, and writes what they print into the
// scripts. With only one of the two variables ours run on a real broker, or Kafka's tools on ours.
const (
	toolsVariable  = "BARNABAS_TEST_TOOLS"
	brokerVariable = "BARNABAS_TEST_BROKER"
)

var update = flag.Bool("update", false, "write what is printed into the scripts")

func TestMain(m *testing.M) {
	programs := map[string]func(){"barnabas": runProgram}
	for _, name := range kafka.Names() {
		programs[name+".sh"] = runProgram
	}
	testscript.Main(m, programs)
}

func runProgram() { os.Exit(Main(os.Args, os.Stdin, os.Stdout, os.Stderr)) }

func TestCommands(t *testing.T) { runScripts(t, "testdata/script") }

func TestKafkaTools(t *testing.T) { runScripts(t, "testdata/kafka") }

func runScripts(t *testing.T, dir string) {
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setUp,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"settle":  settle,
			"await":   await,
			"address": address,
		},
	})
}

// setUp gives a script a broker of its own, and Kafka's tools where they are asked for.
func setUp(env *testscript.Env) error {
	address := os.Getenv(brokerVariable)
	if address == "" {
		b, err := barnabas.Start(context.Background(), barnabas.Options{Properties: map[string]string{
			"num.partitions": "1", "group.initial.rebalance.delay.ms": "0",
			// Scripts write records with times of years ago: a broker that is half a minute old would delete them.
			"log.initial.task.delay.ms": "3600000",
		}})
		if err != nil {
			return err
		}
		env.Defer(func() { b.Stop(context.Background()) })
		address = b.Address()
	}
	env.Setenv("BROKER", address)
	env.Setenv(bootstrapVariable, address)
	env.Setenv("TZ", "UTC")
	if tools := os.Getenv(toolsVariable); tools != "" {
		env.Setenv("PATH", tools+string(os.PathListSeparator)+env.Getenv("PATH"))
		env.Setenv("HOME", os.Getenv("HOME"))
	}
	return nil
}

// settle writes what the last program printed, without what differs from run to run, into the file printed,
// for cmp. With -any its lines are sorted.
func settle(ts *testscript.TestScript, neg bool, args []string) {
	anyOrder := len(args) == 1 && args[0] == "-any"
	if neg || len(args) > 0 && !anyOrder {
		ts.Fatalf("usage: settle [-any]")
	}
	text := settled(ts.ReadFile("stdout"), ts.Getenv("BROKER"), ts.Getenv("WORK"))
	if anyOrder {
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		slices.Sort(lines)
		text = strings.Join(lines, "\n") + "\n"
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		// The files of a script end with the end of a line.
		text += "\n"
	}
	ts.Check(os.WriteFile(ts.MkAbs("printed"), []byte(text), 0o644))
}

// settled is a text without ids, times, addresses and the widths that follow from them, and without what
// depends on the broker rather than on the tool.
func settled(text, broker, work string) string {
	text = strings.ReplaceAll(text, broker, "HOST:PORT")
	if _, port, ok := strings.Cut(broker, ":"); ok {
		text = regexp.MustCompile(`\b`+port+`\b`).ReplaceAllString(text, "PORT")
	}
	text = strings.ReplaceAll(text, work, "$WORK")
	for _, rule := range [][2]string{
		{`TopicId: \S+`, "TopicId: ID"},
		{`\b(id|cluster)(["=: ]+)[A-Za-z0-9_-]{22}\b`, "$1${2}ID"},
		{`([ \t])[A-Za-z0-9_-]{22}([ \t])`, "${1}ID$2"},
		{`"topicId":"[^"]+"`, `"topicId":"ID"`},
		{`Cluster ID: \S+`, "Cluster ID: ID"},
		{`(directory.id=)[A-Za-z0-9_-]{22}`, "${1}ID"},
		{`(?m)^[A-Za-z0-9_-]{22}$`, "ID"},
		{`(CreateTime|LogAppendTime): ?\d+`, "$1:TIME"},
		{`("timestamp"|[tT]imestamp(Ms)?"): ?\d+`, "$1:TIME"},
		{`(?m)^ *min\.insync\.replicas=1 sensitive=.*\n`, ""},
		{`min\.insync\.replicas=1,?`, ""},
		{`Elr: [^\t\n]*`, "Elr: -"},
		{`[a-z-]+-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`, "MEMBER"},
		{`\d+\.\d+ (records/sec|MB/sec|ms)`, "N $1"},
		{`\d+ ms (\d+)`, "N ms $1"},
		{`(?m)[ \t]+$`, ""},
		{` {2,}`, "  "},
	} {
		text = regexp.MustCompile(rule[0]).ReplaceAllString(text, rule[1])
	}
	return text
}

// address lets the commands that follow talk to the broker that wrote a ready file.
func address(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: address file")
	}
	ts.Setenv(bootstrapVariable, strings.TrimSpace(ts.ReadFile(args[0])))
}

// patience bounds a wait; it is far above what anything takes.
const patience = 2 * time.Minute

// await waits until a file is there.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await file")
	}
	deadline := time.Now().Add(patience)
	for {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s has not appeared", args[0])
		}
		<-time.After(10 * time.Millisecond)
	}
}
