package kafka

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// kind is what a flag's argument must be.
type kind int8

const (
	text kind = iota
	integer
	long
	decimal
)

// flag is one flag of a tool, in the conventions of the parser that Kafka's tools use: --name value and
// --name=value, also with one dash; a required argument is whatever comes next, even if it looks like a
// flag; an optional one is not taken where it does.
type flag struct {
	// names are the flag's names; errors call it by all of them.
	names []string
	// argument names the flag's argument in the help; empty where it takes none.
	argument string
	// optional says that the argument may be left out.
	optional bool
	kind     kind
	// fallback is the argument where the flag is not given.
	fallback string
	// plus says that the flag takes every word up to the next flag.
	plus bool
	// many says that the flag may be given several times.
	many bool
	// required says that the command line is refused without it.
	required bool
	// with are flags of which one must be given too.
	with []string
	doc  string
}

// common are the flags of every tool.
func common() []flag {
	return []flag{
		{names: []string{"help"}, doc: "print the flags"},
		{names: []string{"version"}, doc: "print the version"},
	}
}

// shown is how errors call the flag: [name], or [name, other].
func (f *flag) shown() string { return "[" + strings.Join(f.names, ", ") + "]" }

// arguments are a parsed command line.
type arguments struct {
	flags  []flag
	values map[string][]string
	// order are the main names of the flags in the order in which they were given.
	order []string
	// rest are the arguments that belong to no flag.
	rest []string
}

// parse reads a command line.
//
// Values are kept under a flag's first name, whichever of its names was given, so that the rest of a tool need
// not know older spellings. --help and --version excuse whatever else is missing.
func parse(flags []flag, given []string) (*arguments, error) {
	a := &arguments{flags: append(slices.Clone(flags), common()...), values: map[string][]string{}}
	for i := 0; i < len(given); i++ {
		word := given[i]
		if word == "--" {
			a.rest = append(a.rest, given[i+1:]...)
			break
		}
		if !looksLikeFlag(word) {
			a.rest = append(a.rest, word)
			continue
		}
		name, value, inline := strings.Cut(strings.TrimLeft(word, "-"), "=")
		f := a.find(name)
		if f == nil {
			return nil, usagef("%s is not a recognized option", name)
		}
		a.order = append(a.order, f.names[0])
		taken, err := a.take(f, value, inline, given[i+1:])
		if err != nil {
			return nil, err
		}
		i += taken
		for f.plus && i+1 < len(given) && !looksLikeFlag(given[i+1]) {
			i++
			a.values[f.names[0]] = append(a.values[f.names[0]], given[i])
		}
	}
	if a.has("help") || a.has("version") {
		return a, nil
	}
	return a, a.check()
}

// take stores a flag and returns how many further words were its argument.
func (a *arguments) take(f *flag, value string, inline bool, next []string) (int, error) {
	switch {
	// A value behind "=" is taken even by a flag that wants none.
	case f.argument == "" || inline:
	case f.optional:
		if len(next) == 0 || looksLikeFlag(next[0]) {
			if a.values[f.names[0]] == nil {
				a.values[f.names[0]] = []string{}
			}
			return 0, nil
		}
		value = next[0]
	case len(next) == 0:
		return 0, usagef("Option %s requires an argument", strings.Join(f.names, "/"))
	default:
		value = next[0]
	}
	if !f.kind.takes(value) {
		return 0, usagef("Cannot parse argument '%s' of option %s", value, f.names[0])
	}
	a.values[f.names[0]] = append(a.values[f.names[0]], value)
	if len(a.values[f.names[0]]) > 1 && !f.many && f.argument != "" {
		return 0, usagef("Found multiple arguments for option %s, but you asked for only one", f.names[0])
	}
	if f.argument == "" || inline {
		return 0, nil
	}
	return 1, nil
}

// check finds flags that are missing or do not go together.
func (a *arguments) check() error {
	for i := range a.flags {
		f := &a.flags[i]
		given := a.has(f.names[0])
		if f.required && !given {
			return usagef("Missing required option(s) %s", f.shown())
		}
		if given && len(f.with) > 0 && !slices.ContainsFunc(f.with, a.has) {
			return usagef("Option(s) %s are unavailable given other options on the command line", f.shown())
		}
	}
	return nil
}

// looksLikeFlag tells flags from arguments; a lone dash and negative numbers are arguments.
func looksLikeFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9')
}

func (k kind) takes(value string) bool {
	var err error
	switch k {
	case integer:
		_, err = strconv.ParseInt(value, 10, 32)
	case long:
		_, err = strconv.ParseInt(value, 10, 64)
	case decimal:
		_, err = strconv.ParseFloat(value, 64)
	}
	return err == nil
}

func (a *arguments) find(name string) *flag {
	for i := range a.flags {
		if slices.Contains(a.flags[i].names, name) {
			return &a.flags[i]
		}
	}
	return nil
}

// must is a flag that the tool's table has.
func (a *arguments) must(name string) *flag {
	f := a.find(name)
	if f == nil {
		invariant.Fail("kafka: no flag is called %s", name)
	}
	return f
}

// has reports whether a flag was given.
func (a *arguments) has(name string) bool { return a.values[a.must(name).names[0]] != nil }

// value is the argument of a flag, its fallback where it was not given.
func (a *arguments) value(name string) string {
	f := a.must(name)
	if values := a.values[f.names[0]]; len(values) > 0 {
		return values[0]
	}
	return f.fallback
}

// all are the arguments of a flag in the order that they were given in.
func (a *arguments) all(name string) []string { return a.values[a.must(name).names[0]] }

// number is the argument of a flag that counts, 0 where there is none.
func (a *arguments) number(name string) int64 {
	n, _ := strconv.ParseInt(a.value(name), 10, 64)
	return n
}

// count is how many of the flags were given.
func (a *arguments) count(names ...string) int {
	n := 0
	for _, name := range names {
		if a.has(name) {
			n++
		}
	}
	return n
}

// require demands flags, as most tools do after parsing.
func (a *arguments) require(names ...string) error {
	for _, name := range names {
		if !a.has(name) {
			return usagef("Missing required argument \"%s\"", a.must(name).shown())
		}
	}
	return nil
}

// exclude refuses flags beside another.
func (a *arguments) exclude(used string, others ...string) error {
	if !a.has(used) {
		return nil
	}
	for _, other := range others {
		if a.has(other) {
			return usagef("Option \"%s\" can't be used with option \"%s\"", a.must(used).shown(), a.must(other).shown())
		}
	}
	return nil
}

// printHelp lists flags.
func printHelp(w io.Writer, flags []flag) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "Option\tDescription")
	fmt.Fprintln(t, "------\t-----------")
	for _, f := range append(slices.Clone(flags), common()...) {
		name := "--" + strings.Join(f.names, ", --")
		switch {
		case f.optional:
			name += " [" + f.argument + "]"
		case f.argument != "":
			name += " <" + f.argument + ">"
		}
		doc := f.doc
		if f.fallback != "" {
			doc += " (default: " + f.fallback + ")"
		}
		fmt.Fprintf(t, "%s\t%s\n", name, doc)
	}
	t.Flush()
}
