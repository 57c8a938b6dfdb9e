package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

// lineMax bounds a line of input; a record cannot be larger than what a request may hold.
const lineMax = 128 << 20

// recordFlags say how records are read from the input.
//
// Precedence, for each record: what the input says, then --key where it has no key, then --tombstone for an
// empty value; fixed headers come behind those of the input.
type recordFlags struct {
	input, layout, keySeparator, key string
	headers                          []string
	tombstone                        bool
}

func (f *recordFlags) register(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.input, "input", "lines", "lines, or json for an object a line")
	flags.StringVarP(&f.layout, "layout", "f", "", "layout of a record, such as '%k %v\\n' (the words of rpk and kcl)")
	flags.StringVar(&f.keySeparator, "key-separator", "", "text between key and value of a line")
	flags.StringVarP(&f.key, "key", "k", "", "key of every record that has none")
	flags.StringArrayVarP(&f.headers, "header", "H", nil, "a header of every record as key=value; may be repeated")
	flags.BoolVarP(&f.tombstone, "tombstone", "Z", false, "an empty value is null")
}

// reader returns a function that reads one record after another, and io.EOF behind the last.
func (f *recordFlags) reader(in io.Reader) (func() (*kgo.Record, error), error) {
	next, err := f.bare(in)
	if err != nil {
		return nil, err
	}
	headers, err := f.fixedHeaders()
	if err != nil {
		return nil, err
	}
	return func() (*kgo.Record, error) {
		record, err := next()
		if err != nil {
			return nil, err
		}
		if record.Key == nil && f.key != "" {
			record.Key = []byte(f.key)
		}
		if f.tombstone && len(record.Value) == 0 {
			record.Value = nil
		}
		record.Headers = append(record.Headers, headers...)
		return record, nil
	}, nil
}

// bare reads records without what the other flags add.
func (f *recordFlags) bare(in io.Reader) (func() (*kgo.Record, error), error) {
	switch {
	case f.layout != "" && f.keySeparator != "":
		return nil, usageError{errors.New("--layout already says where the key is: leave out --key-separator")}
	case f.layout != "":
		reader, err := kgo.NewRecordReader(bufio.NewReaderSize(in, 1<<16), f.layout)
		if err != nil {
			return nil, usageError{fmt.Errorf("--layout: %w", err)}
		}
		return reader.ReadRecord, nil
	case f.input == "lines":
		return lines(in, []byte(f.keySeparator)), nil
	case f.input == "json":
		return jsonRecords(in), nil
	}
	return nil, usageError{fmt.Errorf("--input %q is neither lines nor json", f.input)}
}

func (f *recordFlags) fixedHeaders() ([]kgo.RecordHeader, error) {
	var headers []kgo.RecordHeader
	for _, pair := range f.headers {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("--header %q is not key=value", pair)}
		}
		headers = append(headers, kgo.RecordHeader{Key: key, Value: []byte(value)})
	}
	return headers, nil
}

// lines reads a record a line.
func lines(in io.Reader, separator []byte) func() (*kgo.Record, error) {
	scan := newLineScanner(in)
	return func() (*kgo.Record, error) {
		line, err := scan()
		if err != nil {
			return nil, err
		}
		if len(separator) == 0 {
			return &kgo.Record{Value: slices.Clone(line)}, nil
		}
		key, value, ok := bytes.Cut(line, separator)
		if !ok {
			return nil, fmt.Errorf("there is no key separator %q in %q", separator, shortened(line))
		}
		return &kgo.Record{Key: slices.Clone(key), Value: slices.Clone(value)}, nil
	}
}

// newLineScanner returns a function that reads lines without their ends. A line is valid until the next.
func newLineScanner(in io.Reader) func() ([]byte, error) {
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 0, 1<<16), lineMax)
	return func() ([]byte, error) {
		if scan.Scan() {
			return scan.Bytes(), nil
		}
		if err := scan.Err(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
}

// shortened is the beginning of a line for an error.
func shortened(line []byte) []byte {
	const most = 60
	if len(line) <= most {
		return line
	}
	return append(slices.Clone(line[:most]), "..."...)
}
