// Package transcript plays the transcripts by which tests hold pure machines. A transcript is a text file: commands, a
// line of dashes, and what they printed; blocks are separated by empty lines, and one without dashes is prose.
//
//	# A member is cut off and leaves.
//
//	lead 1 isr=1,2 end=10
//	check
//	----
//	nothing to propose
//
// "go test -rewrite" writes what the machine says now; the difference is then read like any other.
package transcript

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

// Command is one line of a transcript: "alter 1 t-0 isr=1,2" has the name alter, the plain words 1 and t-0, and isr.
type Command struct {
	Name  string
	Plain []string
	Named map[string]string
}

func parse(words []string) Command {
	c := Command{Name: words[0], Named: map[string]string{}}
	for _, word := range words[1:] {
		if k, v, ok := strings.Cut(word, "="); ok {
			c.Named[k] = v
		} else {
			c.Plain = append(c.Plain, word)
		}
	}
	return c
}

// PlayAll plays every transcript in testdata/*.txt, in a test of its own. begin makes a new machine, and returns what
// carries out one command and gives the lines that it prints. A line that begins with "#" alone is no command.
func PlayAll(t *testing.T, begin func(*testing.T) func(Command) []string) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { play(t, file, begin(t)) })
	}
}

func play(t *testing.T, file string, run func(Command) []string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n\n") {
		input, _, found := strings.Cut(block, "\n----")
		fmt.Fprintf(&out, "%s\n", input)
		if found {
			out.WriteString("----\n")
			for line := range strings.SplitSeq(input, "\n") {
				if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
					for _, said := range run(parse(words)) {
						fmt.Fprintf(&out, "%s\n", said)
					}
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

// IDs reads brokers, as 1,2,3; none is nil.
func IDs(text string) []P.BrokerID {
	if text == "" {
		return nil
	}
	var all []P.BrokerID
	for word := range strings.SplitSeq(text, ",") {
		all = append(all, P.BrokerID(Number(word)))
	}
	return slices.Clip(all)
}

// Number reads a number; where it is none it panics, since the transcript is wrong.
func Number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}
