package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
)

// outcome is what a command did, as far as it is compared.
type outcome struct {
	status        int
	lines, errors []string
}

// compare runs all scripts on all sides, prints the differences, and returns how many commands differ.
func (o *options) compare(ctx context.Context) (different int, err error) {
	scripts, err := readScripts(o.dir, o.only)
	if err != nil {
		return 0, err
	}
	exceptions, err := readIntended(filepath.Join(o.dir, "intended.txt"))
	if err != nil {
		return 0, err
	}
	commands := 0
	for _, s := range scripts {
		asked, differ, err := o.script(ctx, s, exceptions)
		if err != nil {
			return different, err
		}
		fmt.Printf("%s: %d commands, %d differ\n", s.name, asked, differ)
		commands += asked
		different += differ
	}
	intended := 0
	for _, e := range exceptions {
		if e.used {
			intended++
		} else if o.only.String() == "" {
			fmt.Printf("not seen: %s | %s | %s\n", e.side, e.command, e.line)
		}
	}
	fmt.Printf("%d commands on %d sides, %d differ, %d intended differences seen\n", commands, len(o.sides), different, intended)
	return different, nil
}

// script runs one script on all sides, step by step, and counts the commands and those that differ.
func (o *options) script(ctx context.Context, s script, exceptions []*exception) (asked, differ int, err error) {
	sides := s.on(o.sides)
	for _, at := range sides {
		defer at.end()
		if err := at.begin(); err != nil {
			return 0, 0, err
		}
	}
	for _, st := range s.steps {
		outcomes, err := run(ctx, sides, st)
		if err != nil {
			return asked, differ, fmt.Errorf("%s: %s: %w", s.name, st.command, err)
		}
		if outcomes[0] == nil {
			continue
		}
		asked++
		if o.verbose {
			fmt.Printf("$ %s\n", st.command)
			show("  ", outcomes[0])
		}
		if !same(sides, st, outcomes, exceptions) {
			differ++
		}
	}
	return asked, differ, nil
}

// run runs one command on all sides at once.
func run(ctx context.Context, sides []*side, st step) ([]*outcome, error) {
	outcomes, errs := make([]*outcome, len(sides)), make([]error, len(sides))
	var all sync.WaitGroup
	for i, at := range sides {
		all.Go(func() { outcomes[i], errs[i] = at.run(ctx, st) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sides[i].name, err)
		}
	}
	return outcomes, nil
}

// same compares the other sides with the first, and prints what differs and is not meant.
func same(sides []*side, st step, outcomes []*outcome, exceptions []*exception) bool {
	same := true
	for i, at := range sides[1:] {
		said := false
		for _, line := range differences(sides, outcomes, i+1) {
			if meant(exceptions, at, st.command, line[1:]) {
				continue
			}
			if !said {
				fmt.Printf("%s: %s\n", at.name, st.command)
			}
			said, same = true, false
			fmt.Printf("  %s\n", line)
		}
	}
	return same
}

// differences are the lines in which a side differs from the first, and on standard error from the first one with
// the same tools.
func differences(sides []*side, outcomes []*outcome, i int) []string {
	want, got := outcomes[0], outcomes[i]
	var lines []string
	if want.status != got.status {
		lines = append(lines, fmt.Sprintf("-status %d", want.status), fmt.Sprintf("+status %d", got.status))
	}
	lines = append(lines, difference(want.lines, got.lines)...)
	for j, other := range sides[:i] {
		if !sides[i].sameTools(other) {
			continue
		}
		for _, line := range difference(outcomes[j].errors, got.errors) {
			lines = append(lines, line[:1]+"stderr: "+line[1:])
		}
		break
	}
	return lines
}

// difference is what the longest common subsequence of lines leaves, as -want and +got, in order.
func difference(want, got []string) []string {
	longest := make([][]int, len(want)+1)
	for i := range longest {
		longest[i] = make([]int, len(got)+1)
	}
	for i := len(want) - 1; i >= 0; i-- {
		for j := len(got) - 1; j >= 0; j-- {
			if want[i] == got[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var lines []string
	i, j := 0, 0
	for i < len(want) || j < len(got) {
		switch {
		case i < len(want) && j < len(got) && want[i] == got[j]:
			i, j = i+1, j+1
		case j == len(got) || i < len(want) && longest[i+1][j] >= longest[i][j+1]:
			lines = append(lines, "-"+want[i])
			i++
		default:
			lines = append(lines, "+"+got[j])
			j++
		}
	}
	return lines
}

// show prints an outcome.
func show(indent string, o *outcome) {
	for _, line := range o.lines {
		fmt.Println(indent + line)
	}
	for _, line := range o.errors {
		fmt.Println(indent + "stderr: " + line)
	}
	fmt.Printf("%sstatus %d\n", indent, o.status)
}
