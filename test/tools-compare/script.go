package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A script is a file of command lines, each for bash -c in an empty directory, in order:
//
//	# a comment
//	tools: java                                      the whole script is for sides with these tools only
//	kafka-topics.sh $AT --create --topic orders      is compared
//	any: COMMAND                                     is compared, in whatever order its lines come
//	form: COMMAND                                    is compared without its numbers, for measurements
//	status: COMMAND                                  only the exit status is compared
//	do: COMMAND                                      prepares, and is not compared, but must succeed
//	start: COMMAND                                   goes on in the background until the script ends
//	until PATTERN: COMMAND                           is run again until a line that it prints matches; not compared
//
// $AT is --bootstrap-server with the broker's address, $BROKER the address alone, $DATA the broker's directory.
type script struct {
	name string
	// tools are the ones that it is for; empty for all.
	tools string
	steps []step
}

// on are the sides that a script is for.
func (s *script) on(all []*side) []*side {
	if s.tools == "" {
		return all
	}
	var sides []*side
	for _, at := range all {
		if strings.HasPrefix(at.name, s.tools+"/") {
			sides = append(sides, at)
		}
	}
	return sides
}

// manner is what is done with a command.
type manner string

const (
	compared   manner = ""
	anyOrder   manner = "any"
	formOnly   manner = "form"
	statusOnly manner = "status"
	prepares   manner = "do"
	background manner = "start"
	repeated   manner = "until"
)

// step is one command line.
type step struct {
	manner  manner
	command string
	// until ends a repeated command.
	until *regexp.Regexp
}

var prefix = regexp.MustCompile(`^(any|form|status|do|start|until [^:]+): +(.*)$`)

// readScripts reads the scripts of a folder whose names match, sorted by name.
func readScripts(dir string, only *regexp.Regexp) ([]script, error) {
	files, err := filepath.Glob(filepath.Join(dir, "[0-9]*.txt"))
	if err != nil {
		return nil, err
	}
	var scripts []script
	for _, file := range files {
		s := script{name: strings.TrimSuffix(filepath.Base(file), ".txt")}
		if !only.MatchString(s.name) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
				continue
			}
			if tools, ok := strings.CutPrefix(line, "tools: "); ok {
				s.tools = tools
				continue
			}
			st, err := readStep(line)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			s.steps = append(s.steps, st)
		}
		scripts = append(scripts, s)
	}
	if len(scripts) == 0 {
		return nil, fmt.Errorf("no scripts in %s", dir)
	}
	return scripts, nil
}

func readStep(line string) (step, error) {
	m := prefix.FindStringSubmatch(line)
	if m == nil {
		return step{command: line}, nil
	}
	pattern, isUntil := strings.CutPrefix(m[1], "until ")
	if !isUntil {
		return step{manner: manner(m[1]), command: m[2]}, nil
	}
	until, err := regexp.Compile("(?m)" + pattern)
	return step{manner: repeated, command: m[2], until: until}, err
}
