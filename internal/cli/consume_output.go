package cli

import (
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// writer returns what prints a record.
//
//	-f LAYOUT    franz-go's record format, the same as rpk's and kcl's; no newline is added
//	-o json      one object a line (see jsonRecord), not one array: a reading may have no end
//	otherwise    the value and a newline; a null value is an empty line
//
// The returned function reuses one buffer, and so must not be called concurrently.
func (f *consumeFlags) writer(c *common, _ io.Writer) (func(io.Writer, *kgo.Record) error, error) {
	var line []byte
	switch {
	case f.layout != "":
		formatter, err := kgo.NewRecordFormatter(f.layout)
		if err != nil {
			return nil, usageError{fmt.Errorf("--layout: %w", err)}
		}
		return func(w io.Writer, r *kgo.Record) error {
			line = formatter.AppendRecord(line[:0], r)
			_, err := w.Write(line)
			return err
		}, nil
	case c.format == formatJSON:
		return func(w io.Writer, r *kgo.Record) (err error) {
			if line, err = appendJSON(line[:0], r); err != nil {
				return err
			}
			_, err = w.Write(line)
			return err
		}, nil
	}
	return func(w io.Writer, r *kgo.Record) error {
		line = append(append(line[:0], r.Value...), '\n')
		_, err := w.Write(line)
		return err
	}, nil
}

// filter returns which records are printed.
func (f *consumeFlags) filter() (func(*kgo.Record) bool, error) {
	var pattern *regexp.Regexp
	if f.grep != "" {
		var err error
		if pattern, err = regexp.Compile(f.grep); err != nil {
			return nil, usageError{fmt.Errorf("--grep: %w", err)}
		}
	}
	return func(r *kgo.Record) bool {
		return (f.key == "" || string(r.Key) == f.key) && (pattern == nil || pattern.Match(r.Value))
	}, nil
}

func ignoreStop(err error) error {
	if errors.Is(err, admin.ErrStop) {
		return nil
	}
	return err
}
