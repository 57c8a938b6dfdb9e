package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what a command found, in sections that are printed in order: as aligned text for people, as
// lines of tabs without any heading for scripts, or as one JSON object. All three have the same fields.
//
// An example, {"health":{"healthy":false},"problems":[{"topic":"t","partition":0}]}, as text:
//
//	healthy  false
//
//	TOPIC  PARTITION
//	t      0
//
// Field names are the contract with scripts: they are added to, and neither renamed nor moved. A nil value is
// what does not apply or is not known; it is null in JSON, a dash elsewhere. Sizes are bytes, durations in JSON
// milliseconds, times UTC with milliseconds.
type report struct{ sections []section }

// section is an object (one row, printed as lines of name and value) or a list (a table).
type section struct {
	name   string
	fields []string
	rows   [][]any
	object bool
}

// object begins a section of one thing, whose fields add fills.
func (r *report) object(name string) *section {
	r.sections = append(r.sections, section{name: name, object: true, rows: [][]any{nil}})
	return &r.sections[len(r.sections)-1]
}

// set adds a field to an object.
func (s *section) set(field string, value any) *section {
	s.fields = append(s.fields, field)
	s.rows[0] = append(s.rows[0], value)
	return s
}

// list begins a section of several things with the same fields.
func (r *report) list(name string, fields ...string) *section {
	r.sections = append(r.sections, section{name: name, fields: fields})
	return &r.sections[len(r.sections)-1]
}

// add appends a row to a list, one value a field.
func (s *section) add(values ...any) { s.rows = append(s.rows, values) }

// write prints the report.
func (r *report) write(w io.Writer, format string) error {
	switch format {
	case formatJSON:
		return r.writeJSON(w)
	case formatTSV:
		return r.writeTSV(w)
	}
	return r.writeText(w)
}

func (r *report) writeText(w io.Writer) error {
	printed := false
	for _, s := range r.sections {
		if len(s.rows) == 0 {
			continue
		}
		if printed {
			fmt.Fprintln(w)
		}
		printed = true
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		if s.object {
			for i, field := range s.fields {
				fmt.Fprintf(t, "%s\t%s\n", field, text(s.rows[0][i]))
			}
		} else {
			s.writeTable(t)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// writeTable prints a list with its heading. What no row has a value of is left out.
func (s *section) writeTable(w io.Writer) {
	used := make([]int, 0, len(s.fields))
	for i := range s.fields {
		if slices.ContainsFunc(s.rows, func(row []any) bool { return row[i] != nil }) {
			used = append(used, i)
		}
	}
	line := func(cell func(i int) string) {
		cells := make([]string, 0, len(used))
		for _, i := range used {
			cells = append(cells, cell(i))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	line(func(i int) string { return strings.ToUpper(strings.ReplaceAll(s.fields[i], "_", "-")) })
	for _, row := range s.rows {
		line(func(i int) string { return text(row[i]) })
	}
}

func (r *report) writeTSV(w io.Writer) error {
	var b bytes.Buffer
	for _, s := range r.sections {
		for i, row := range s.rows {
			if !s.object {
				fmt.Fprintln(&b, strings.Join(texts(row), "\t"))
				continue
			}
			for j, field := range s.fields {
				fmt.Fprintf(&b, "%s\t%s\n", field, text(s.rows[i][j]))
			}
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (r *report) writeJSON(w io.Writer) error {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, s := range r.sections {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:", s.name)
		if !s.object {
			b.WriteByte('[')
		}
		for j, row := range s.rows {
			if j > 0 {
				b.WriteByte(',')
			}
			if err := writeObject(&b, s.fields, row); err != nil {
				return err
			}
		}
		if !s.object {
			b.WriteByte(']')
		}
	}
	b.WriteString("}\n")
	_, err := w.Write(b.Bytes())
	return err
}

func writeObject(b *bytes.Buffer, fields []string, row []any) error {
	b.WriteByte('{')
	for i, field := range fields {
		value, err := json.Marshal(jsonValue(row[i]))
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, "%q:%s", field, value)
	}
	b.WriteByte('}')
	return nil
}

// jsonValue is what encoding/json makes the right thing of.
func jsonValue(value any) any {
	switch v := value.(type) {
	case time.Time:
		return text(v)
	case time.Duration:
		return v.Milliseconds()
	case []int32:
		return append([]int32{}, v...)
	case []string:
		return append([]string{}, v...)
	}
	return value
}

func texts(row []any) []string {
	all := make([]string, 0, len(row))
	for _, value := range row {
		all = append(all, text(value))
	}
	return all
}

// text is a value as a table shows it; what is not there is a dash.
func text(value any) string {
	switch v := value.(type) {
	case nil:
		return "-"
	case string:
		return cmp.Or(v, "-")
	case *string:
		if v == nil {
			return "-"
		}
		return *v
	case []int32:
		return joinNumbers(v, ",")
	case []string:
		return cmp.Or(strings.Join(v, ","), "-")
	case map[string]string:
		return cmp.Or(joinMap(v), "-")
	case time.Time:
		return v.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	}
	return fmt.Sprint(value)
}

func joinNumbers(numbers []int32, separator string) string {
	var b strings.Builder
	for i, n := range numbers {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(strconv.Itoa(int(n)))
	}
	return b.String()
}

func joinMap(m map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		pairs = append(pairs, key+"="+m[key])
	}
	return strings.Join(pairs, ",")
}
