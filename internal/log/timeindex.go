package log

import (
	"encoding/binary"
	"io"
	"slices"
	"sort"

	"github.com/barnabas-mq/barnabas/internal/record"
)

// The time index of a segment with base offset 4711, in its file: 12 bytes an entry, big-endian, timestamps rising
// strictly.
//
//	00 00 01 8f 0d 5a 2c 00  00 00 00 2a     up to offset 4711+42 nothing is younger than 0x018f0d5a2c00 ms
//	00 00 01 8f 0d 5a 40 10  00 00 00 61     the same up to 4711+97
//
// An entry is written along with one of the offset index where the largest timestamp has risen since the last, so
// a segment whose clock stood still has few. The last entry of a closed segment is its largest timestamp: retention
// by time and ListOffsets by time look at nothing else to pass over a segment.
//
// timeEntrySize is the size of an entry in a time index file.
const timeEntrySize = 12

// timeEntry is an entry of a time index: no batch up to the relative offset has a timestamp above.
type timeEntry struct {
	timestamp int64
	relative  int32
}

// noTimeEntry is the last entry of an empty time index, as Kafka sees it: nothing without a timestamp is
// ever added.
var noTimeEntry = timeEntry{timestamp: record.NoTimestamp}

// appendTimeEntries encodes entries as in the file.
func appendTimeEntries(dst []byte, entries []timeEntry) []byte {
	dst = slices.Grow(dst, len(entries)*timeEntrySize)
	for _, e := range entries {
		dst = binary.BigEndian.AppendUint64(dst, uint64(e.timestamp))
		dst = binary.BigEndian.AppendUint32(dst, uint32(e.relative))
	}
	return dst
}

// parseTimeEntry decodes one.
func parseTimeEntry(b []byte) timeEntry {
	return timeEntry{
		timestamp: int64(binary.BigEndian.Uint64(b)),
		relative:  int32(binary.BigEndian.Uint32(b[8:])),
	}
}

// timeFile reads a time index file that has been opened. Time indexes are looked at rarely, so they are
// never kept in memory.
type timeFile struct {
	file io.ReaderAt
	n    int // whole entries, a preallocated tail of zeros not counted
}

// openTimeFile finds out how many entries a file of size bytes holds: whole ones, without the zeros at the
// end of a preallocated file. Timestamps rise, so zeros begin once, and the place is found by halving; an
// entry of zeros can be real only where it is the first.
//
//	entries   t1 t2 t3 0 0 0 0 ...       n = 3, found in log2(size/12) reads
//	          0 0 0 ...                  n = 0: preallocated, nothing written
//	          0                          n = 1: a record of the year 1970
func openTimeFile(file io.ReaderAt, size int64) (timeFile, error) {
	t := timeFile{file: file, n: int(size / timeEntrySize)}
	if t.n < 2 {
		return t, nil
	}
	var failed error
	zeros := func(i int) bool {
		e, err := t.entry(i)
		if err != nil {
			failed = err
		}
		return e == timeEntry{}
	}
	n := 1 + sort.Search(t.n-1, func(i int) bool { return zeros(i + 1) })
	if n == 1 && zeros(0) {
		n = 0
	}
	t.n = n
	return t, failed
}

// entry reads one from the file.
func (t timeFile) entry(i int) (timeEntry, error) {
	var b [timeEntrySize]byte
	if _, err := t.file.ReadAt(b[:], int64(i)*timeEntrySize); err != nil {
		return timeEntry{}, err
	}
	return parseTimeEntry(b[:]), nil
}

// last is the last entry, noTimeEntry where there is none.
func (t timeFile) last() (timeEntry, error) {
	if t.n == 0 {
		return noTimeEntry, nil
	}
	return t.entry(t.n - 1)
}

// floor is the greatest entry whose timestamp is below target, or noTimeEntry: the first batch with target
// or more is behind it.
func (t timeFile) floor(target int64) (timeEntry, error) {
	var failed error
	i := sort.Search(t.n, func(i int) bool {
		e, err := t.entry(i)
		if err != nil {
			failed = err
		}
		return e.timestamp >= target
	})
	if failed != nil || i == 0 {
		return noTimeEntry, failed
	}
	return t.entry(i - 1)
}
