package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// recordAnswers writes a broker's answers down, a line "name<TAB>answer" for each case.
func recordAnswers(s *side, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for _, c := range cases(s) {
		fmt.Fprintf(w, "%s\t%s\n", c.name, c.answer(s, codes))
	}
	return w.Flush()
}

// readAnswers reads them back, by the names of the cases.
func readAnswers(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	answers := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, answer, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t"); ok {
			answers[name] = answer
		}
	}
	return answers, nil
}

// intended are the differences that are meant: prefixes of names of cases, and what the answers contain.
type intended []difference

// difference is one row of the file: name, Kafka's answer, ours, why; a part of a name or an answer is enough,
// and "*" stands for any.
//
//	case | Kafka's answer | ours | why
//
// A row says why on purpose: a difference that nobody can give a reason for is a bug, and belongs into the
// code.
type difference struct{ name, kafka, ours string }

// readIntended reads the file of differences; lines that begin with # are comments.
func readIntended(path string) (intended, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all intended
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			return nil, fmt.Errorf("%s: not four cells: %s", path, line)
		}
		all = append(all, difference{strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])})
	}
	return all, nil
}

// find looks for the row that a difference is meant by.
func (in intended) find(name, kafka, ours string) (difference, bool) {
	for _, d := range in {
		if holds(name, d.name) && holds(kafka, d.kafka) && holds(ours, d.ours) {
			return d, true
		}
	}
	return difference{}, false
}

// holds reports whether all parts of a pattern, split at "*", are in a text in their order; a pattern that
// does not begin with "*" must begin the text.
func holds(text, pattern string) bool {
	for i, part := range strings.Split(pattern, "*") {
		at := strings.Index(text, part)
		if at < 0 || i == 0 && at > 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}
