package log

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// DumpOptions say what Dump prints; the names are those of kafka-dump-log's flags. The zero value prints
// batches, and the entries of indexes.
type DumpOptions struct {
	// DeepIteration prints the records of each batch, PrintDataLog also their keys and values.
	DeepIteration, PrintDataLog bool
	// SkipRecordMetadata prints nothing of a record but key and value.
	SkipRecordMetadata bool
	// IndexSanityCheck only tells whether an index would be rebuilt; VerifyIndexOnly checks its entries
	// against the log without printing them.
	IndexSanityCheck, VerifyIndexOnly bool
	// MaxBytes is how much of a log file is read; 0 is all of it.
	MaxBytes int64
	// Decode makes text of a key and a value; nil where there is none to print. Without it they are UTF-8,
	// as Java reads it.
	Decode func(key, value []byte) (k, v *string)
	// Errors gets what does not fit together: wrong index entries, missing offsets. Kafka's tool prints
	// these after all files; nil drops them.
	Errors io.Writer
}

// Dump prints a file of a partition in the format of kafka-dump-log: segments of all message formats,
// indexes, producer snapshots and, which Kafka's does not, leader epochs and the topic id. path is printed as
// given.
func Dump(w io.Writer, files vfs.FS, path string, o DumpOptions) error {
	if o.Decode == nil {
		o.Decode = decodeText
	}
	if o.Errors == nil {
		o.Errors = io.Discard
	}
	out := bufio.NewWriter(w)
	d := dumper{out: out, files: files, path: path, options: o}
	d.printf("Dumping %s\n", path)
	err := d.dump()
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	return err
}

// dumper prints one file.
type dumper struct {
	out     *bufio.Writer
	files   vfs.FS
	path    string
	options DumpOptions
}

// printf prints; its error comes with the flush.
func (d *dumper) printf(format string, args ...any) { _, _ = fmt.Fprintf(d.out, format, args...) }

// complain writes to the errors; a writer that fails there has nothing to tell.
func (d *dumper) complain(format string, args ...any) {
	_, _ = fmt.Fprintf(d.options.Errors, format, args...)
}

// dump prints the file after what its name says that it is.
func (d *dumper) dump() error {
	name := filepath.Base(d.path)
	switch name {
	case epochsName:
		return d.dumpEpochs()
	case metadataName:
		return d.dumpMetadata()
	}
	base, kind, state, ok := parseFileName(name)
	if !ok || state != "" {
		d.complain("Ignoring unknown file %s\n", d.path)
		return nil
	}
	switch kind {
	case logSuffix:
		return d.dumpLog(base)
	case indexSuffix:
		return d.dumpIndex(base)
	case timeIndexSuffix:
		return d.dumpTimeIndex(base)
	case txnIndexSuffix:
		return d.dumpTxnIndex()
	}
	return d.dumpSnapshot()
}

// open opens the file, or another of the same segment, and measures it.
func (d *dumper) open(path string) (vfs.File, int64, error) {
	f, err := d.files.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, 0, err
	}
	size, err := f.Size()
	if err != nil {
		_ = f.Close() // it was only read
		return nil, 0, err
	}
	return f, size, nil
}

// sibling is the path of another file of the segment.
func (d *dumper) sibling(suffix string) string {
	return d.path[:len(d.path)-len(filepath.Ext(d.path))] + suffix
}

// dumpEpochs prints leader-epoch-checkpoint.
func (d *dumper) dumpEpochs() error {
	text, err := readSmall(d.files, d.path)
	if err != nil {
		return err
	}
	list, err := parseEpochs(text)
	if err != nil {
		return err
	}
	for _, e := range list {
		d.printf("epoch: %d startOffset: %d\n", e.epoch, e.start)
	}
	return nil
}

// dumpMetadata prints partition.metadata.
func (d *dumper) dumpMetadata() error {
	text, err := readSmall(d.files, d.path)
	if err != nil {
		return err
	}
	id, err := parseMetadata(string(text))
	if err == nil {
		d.printf("version: 0 topicId: %s\n", id)
	}
	return err
}

// dumpTxnIndex prints the aborted transactions of a segment.
func (d *dumper) dumpTxnIndex() error {
	b, err := readFile(d.files, d.path)
	if err != nil {
		return err
	}
	for ; len(b) >= abortedSize; b = b[abortedSize:] {
		a := parseAborted(b)
		d.printf("version: 0 producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d\n", a.producer, a.first, a.last, a.stable)
	}
	return nil
}

// dumpSnapshot prints the producers of a snapshot in the order of the file.
func (d *dumper) dumpSnapshot() error {
	b, err := readFile(d.files, d.path)
	if err != nil {
		return err
	}
	if _, err := decodeSnapshot(b); err != nil {
		d.complain("%v\n", err)
		return nil
	}
	for b = b[snapshotHeaderSize:]; len(b) > 0; b = b[snapshotEntrySize:] {
		id, p := decodeProducer(b)
		d.printf("producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %s lastTimestamp: %d ",
			id, p.epoch, p.coordinatorEpoch, optional(p.txnStart >= 0, int64(p.txnStart)), p.lastTimestamp)
		if p.n > 0 {
			m := p.last()
			d.printf("firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d",
				m.firstSequence(), m.lastSequence, m.lastOffset, m.offsetDelta, m.timestamp)
		}
		d.printf("\n")
	}
	return nil
}

// optional prints a number as Java's OptionalLong does.
func optional(present bool, value int64) string {
	if !present {
		return "OptionalLong.empty"
	}
	return fmt.Sprintf("OptionalLong[%d]", value)
}

// decodeText reads key and value as UTF-8.
func decodeText(key, value []byte) (k, v *string) {
	text := func(b []byte) *string {
		if b == nil {
			return nil
		}
		s := javaText(b)
		return &s
	}
	return text(key), text(value)
}

// javaText decodes UTF-8 as Java does: each longest beginning of a character that does not go on becomes one
// U+FFFD, and so does a surrogate, where Go makes one of every byte.
//
//	bytes         Go's conversion     Java's, and ours
//	e2 82 41      U+FFFD U+FFFD 'A'   U+FFFD 'A'
//	ed a0 80      three U+FFFD        one U+FFFD
func javaText(b []byte) string {
	var out strings.Builder
	for len(b) > 0 {
		n, ok := cutCharacter(b)
		if ok {
			out.Write(b[:n])
		} else {
			out.WriteRune('\uFFFD')
		}
		b = b[n:]
	}
	return out.String()
}

// cutCharacter is the length of the UTF-8 character that b begins with, or of what can be the beginning of
// one.
func cutCharacter(b []byte) (n int, ok bool) {
	low, high := byte(0x80), byte(0xbf)
	var size int
	switch c := b[0]; {
	case c < 0x80:
		return 1, true
	case c >= 0xc2 && c <= 0xdf:
		size = 2
	case c >= 0xe0 && c <= 0xef:
		size = 3
		if c == 0xe0 {
			low = 0xa0
		}
	case c >= 0xf0 && c <= 0xf4:
		size = 4
		if c == 0xf0 {
			low = 0x90
		} else if c == 0xf4 {
			high = 0x8f
		}
	default:
		return 1, false
	}
	for n = 1; n < size; n++ {
		if n >= len(b) || b[n] < low || b[n] > high {
			return n, false
		}
		low, high = 0x80, 0xbf
	}
	surrogate := b[0] == 0xed && b[1] >= 0xa0 // of UTF-16, which UTF-8 does not have
	return size, !surrogate
}
