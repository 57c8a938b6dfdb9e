package log

import (
	"encoding/binary"
	"fmt"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// dumpIndex prints an offset index and checks that its entries name the last offsets of the batches that
// they point to.
//
// An entry of an offset index that names another offset than its batch ends with is a mismatch. In ours there is
// none after a clean stop; in Kafka's there is none either, except behind the last entry of a preallocated file.
func (d *dumper) dumpIndex(base protocol.Offset) error {
	b, err := readFile(d.files, d.path)
	if err != nil {
		return err
	}
	f, size, err := d.open(d.sibling(logSuffix))
	if err != nil {
		return err
	}
	defer f.Close()
	b = b[:len(b)-len(b)%indexEntrySize]
	if len(b) == 0 {
		d.printf("%s is empty.\n", d.path)
		return nil
	}
	if d.options.IndexSanityCheck {
		if _, ok := parseIndex(b, size); !ok {
			return fmt.Errorf("%s: entries do not rise within the log's %d bytes", d.path, size)
		}
		d.printf("%s passed sanity check.\n", d.path)
		return nil
	}
	var wrong []pair
	buf := make([]byte, record.HeaderSize)
	for i := 0; i < len(b); i += indexEntrySize {
		e := indexEntry(binary.BigEndian.Uint64(b[i:]))
		offset := base + protocol.Offset(e.relative())
		if offset == base && i > 0 {
			break // the zeros of a preallocated file
		}
		w := walk(f, e.position(), size, buf)
		h, err := w.next()
		if err != nil {
			return fmt.Errorf("%s: offset %d points to position %d: %w", d.path, offset, e.position(), err)
		}
		if h.LastOffset != offset {
			wrong = append(wrong, pair{offset, h.LastOffset})
		}
		if !d.options.VerifyIndexOnly {
			d.printf("offset: %d position: %d\n", offset, e.position())
		}
	}
	d.complainPairs("Mismatches in :%s\n", "  Index offset: %d, log offset: %d\n", wrong)
	return nil
}

// timeFaults are what is wrong with a time index.
type timeFaults struct {
	timestamps []string
	order      []string
	offsets    []string
}

// dumpTimeIndex prints a time index and checks its entries against the batches.
func (d *dumper) dumpTimeIndex(base protocol.Offset) error {
	b, err := readFile(d.files, d.path)
	if err != nil {
		return err
	}
	index, err := readFile(d.files, d.sibling(indexSuffix))
	if err != nil {
		return err
	}
	f, size, err := d.open(d.sibling(logSuffix))
	if err != nil {
		return err
	}
	defer f.Close()
	entries, _ := parseIndex(index, size)
	if d.options.IndexSanityCheck {
		d.printf("%s passed sanity check.\n", d.path)
		return nil
	}
	var faults timeFaults
	previous := record.NoTimestamp
	for i := 0; i+timeEntrySize <= len(b); i += timeEntrySize {
		e := parseTimeEntry(b[i:])
		offset := base + protocol.Offset(e.relative)
		if offset == base && i > 0 {
			break // the zeros of a preallocated file
		}
		w := walk(f, lookupOffset(entries, int64(e.relative)), size, make([]byte, walkBuffer))
		if err := d.checkTime(&w, offset, e, previous, &faults); err != nil {
			return err
		}
		if !d.options.VerifyIndexOnly {
			d.printf("timestamp: %d offset: %d\n", e.timestamp, offset)
		}
		previous = e.timestamp
	}
	d.complainTimes(faults)
	return nil
}

// checkTime looks for the batch that ends at offset.
//
// An entry names the last offset of the batch that had the largest timestamp so far. Kafka's message for an offset
// that is in no batch says -1; the three kinds of faults are gathered, and printed together at the end.
func (d *dumper) checkTime(w *walker, offset protocol.Offset, e timeEntry, previous int64, faults *timeFaults) error {
	var h record.Header
	for {
		var err error
		h, err = w.next()
		if ended(err) || isBadBatch(err) {
			faults.offsets = append(faults.offsets, fmt.Sprintf("Indexed offset: %d, found log offset: -1", offset))
			return nil
		}
		if err != nil {
			return err
		}
		if h.LastOffset >= offset {
			break
		}
	}
	if h.LastOffset != offset {
		faults.offsets = append(faults.offsets, fmt.Sprintf("Indexed offset: %d, found log offset: %d", offset, h.LastOffset))
		return nil
	}
	largest, err := largestOf(w, &h)
	if err != nil {
		return err
	}
	if largest != e.timestamp {
		faults.timestamps = append(faults.timestamps, fmt.Sprintf("  Index timestamp: %d, log timestamp: %d", e.timestamp, largest))
	}
	if previous >= e.timestamp {
		faults.order = append(faults.order, fmt.Sprintf("  Index timestamp: %d, Previously indexed timestamp: %d", e.timestamp, previous))
	}
	return nil
}

// largestOf is the largest timestamp of the records of the batch at w.pos; like Kafka's tool it is not that of
// the header, which a batch keeps when compaction takes its records.
func largestOf(w *walker, h *record.Header) (int64, error) {
	var b []byte
	b, err := w.whole(h, &b)
	if err != nil {
		return 0, err
	}
	largest := record.NoTimestamp
	for r, err := range (record.Entry{Header: *h, Bytes: b}).Records(nil) {
		if err != nil {
			return 0, err
		}
		largest = max(largest, r.Timestamp)
	}
	return largest, nil
}

// complainTimes lists the faults by kind, in Kafka's words.
func (d *dumper) complainTimes(faults timeFaults) {
	for _, part := range []struct {
		title string
		lines []string
	}{
		{"Found timestamp mismatch in :" + d.path, faults.timestamps},
		{"Found out of order timestamp in :" + d.path, faults.order},
		{"The following indexed offsets are not found in :" + d.path, faults.offsets},
	} {
		if len(part.lines) == 0 {
			continue
		}
		d.complain("%s\n", part.title)
		for _, line := range part.lines {
			d.complain("%s\n", line)
		}
	}
}
