package log

import (
	"encoding/binary"
	"io"
	"sort"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// The transaction index of a segment, big-endian, has an entry for each transaction whose abort marker is in the
// segment. Committed ones have none.
//
//	 0 version   int16   0
//	 2 producer  int64
//	10 first     int64   offset of the transaction's first record in this partition
//	18 last      int64   offset of its abort marker
//	26 stable    int64   last stable offset once the marker was there: the first offset of the oldest
//	                     transaction still open, or the offset behind the marker
//
// first may lie in an earlier segment, which retention may have deleted. There is no file until there is an entry,
// and no checksum: entries are compared with the segment where they are read.
//
// abortedSize is the size of an entry in a transaction index file.
const abortedSize = 34

// aborted is an entry of a transaction index: a transaction that was aborted.
type aborted struct {
	producer protocol.ProducerID
	first    protocol.Offset // of its first record in this partition
	last     protocol.Offset // of its abort marker
	stable   protocol.Offset // the last stable offset once the marker was there
}

// appendAborted encodes an entry.
func appendAborted(dst []byte, a aborted) []byte {
	dst = binary.BigEndian.AppendUint16(dst, 0)
	for _, v := range [...]int64{int64(a.producer), int64(a.first), int64(a.last), int64(a.stable)} {
		dst = binary.BigEndian.AppendUint64(dst, uint64(v))
	}
	return dst
}

// parseAborted decodes one.
func parseAborted(b []byte) aborted {
	at := func(i int) int64 { return int64(binary.BigEndian.Uint64(b[i:])) }
	return aborted{
		producer: protocol.ProducerID(at(2)),
		first:    protocol.Offset(at(10)),
		last:     protocol.Offset(at(18)),
		stable:   protocol.Offset(at(26)),
	}
}

// valid reports whether b holds an entry that can be true in a segment from base on.
func validAborted(b []byte, base protocol.Offset) bool {
	a := parseAborted(b)
	return binary.BigEndian.Uint16(b) == 0 && a.producer >= 0 && a.first >= 0 && a.last >= base && a.last > a.first
}

// abortedFile reads a transaction index of n entries, which stand in the order of their markers.
type abortedFile struct {
	file io.ReaderAt
	n    int
}

// entry reads one from the file.
func (f abortedFile) entry(i int) (aborted, error) {
	var b [abortedSize]byte
	if _, err := f.file.ReadAt(b[:], int64(i)*abortedSize); err != nil {
		return aborted{}, err
	}
	return parseAborted(b[:]), nil
}

// from is the first entry whose marker is at offset or behind it.
func (f abortedFile) from(offset protocol.Offset) (int, error) {
	var failed error
	i := sort.Search(f.n, func(i int) bool {
		a, err := f.entry(i)
		if err != nil {
			failed = err
		}
		return err == nil && a.last >= offset
	})
	return i, failed
}
