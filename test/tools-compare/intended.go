package main

import (
	"fmt"
	"os"
	"strings"
)

// exception is a line that may differ: on which sides, at which commands, which line, and why. A "*" in a cell
// stands for any text.
type exception struct {
	side, command, line, why string
	used                     bool
}

// readIntended reads the file of exceptions: "side | command | line | why"; # begins a comment.
func readIntended(path string) ([]*exception, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []*exception
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		cells := strings.Split(line, " | ")
		if len(cells) != 4 {
			return nil, fmt.Errorf("%s: not four cells: %s", path, line)
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		all = append(all, &exception{side: cells[0], command: cells[1], line: cells[2], why: cells[3]})
	}
	return all, nil
}

// meant reports whether a line of a side's command may differ.
func meant(all []*exception, s *side, command, line string) bool {
	for _, e := range all {
		if like(s.name, e.side) && like(command, e.command) && like(line, e.line) {
			e.used = true
			return true
		}
	}
	return false
}

// like matches a whole text with a pattern.
func like(text, pattern string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return text == pattern
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) || len(text) < len(first)+len(last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return true
}
