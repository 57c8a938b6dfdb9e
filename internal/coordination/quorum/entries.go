package quorum

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

// The payload of a frame in a log segment. Numbers are varints, unsigned except the time.
//
//	0  kind 1 byte
//	--- 1, entries, which follow each other ---
//	   first   index of the first
//	   count, then for each:
//	     term
//	     type      raft's: 0 command, 5 configuration, ...
//	     appended  ns since 1970, 0 for none; the only signed one
//	     data length, data            of a command: tree/command.go
//	     extensions length, extensions
//	--- 2, cut: entries from this index on are gone ---
//	   index
//
// An entry has no index of its own, so a frame cannot have gaps; minEntryBytes is five varints of one byte. A cut is
// written and not done: what it takes back stays in the file, and replaying forgets it at the same place.
const (
	frameEntries = 1
	frameCut     = 2
)

// minEntryBytes is the least that an entry takes.
const minEntryBytes = 5

// errBadEntry means bytes that no version of this program wrote.
var errBadEntry = errors.New("a frame holds no valid entries")

// appendEntry appends an entry without its index.
func appendEntry(dst []byte, l *raft.Log) []byte {
	dst = binary.AppendUvarint(dst, l.Term)
	dst = binary.AppendUvarint(dst, uint64(l.Type))
	var appended int64
	if !l.AppendedAt.IsZero() {
		appended = l.AppendedAt.UnixNano()
	}
	dst = binary.AppendVarint(dst, appended)
	dst = binary.AppendUvarint(dst, uint64(len(l.Data)))
	dst = append(dst, l.Data...)
	dst = binary.AppendUvarint(dst, uint64(len(l.Extensions)))
	return append(dst, l.Extensions...)
}

// entryReader takes values off a payload; after the first error it gives zeros.
type entryReader struct {
	all    []byte
	offset int
	bad    bool
}

func (r *entryReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.all[r.offset:])
	if n <= 0 {
		r.fail()
		return 0
	}
	r.offset += n
	return v
}

func (r *entryReader) varint() int64 {
	v, n := binary.Varint(r.all[r.offset:])
	if n <= 0 {
		r.fail()
		return 0
	}
	r.offset += n
	return v
}

// bytes is the next value with a length, of r's slice.
func (r *entryReader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.all)-r.offset) {
		r.fail()
		return nil
	}
	b := r.all[r.offset : r.offset+int(n)]
	r.offset += int(n)
	return b
}

// fail makes all that follows zero.
func (r *entryReader) fail() { r.bad, r.offset = true, len(r.all) }

// entry reads an entry without its index. Its data aliases the payload.
// GetLog reads an entry into a buffer of its own, so raft may keep what it gets.
func (r *entryReader) entry() raft.Log {
	l := raft.Log{Term: r.uvarint()}
	kind := r.uvarint()
	if kind > 0xff {
		r.fail()
	}
	l.Type = raft.LogType(kind)
	if appended := r.varint(); appended != 0 {
		l.AppendedAt = time.Unix(0, appended)
	}
	l.Data = r.bytes()
	if extensions := r.bytes(); len(extensions) > 0 {
		l.Extensions = extensions
	}
	return l
}

// logFrame is what a frame of a log segment says.
type logFrame struct {
	kind  byte
	index uint64 // of the first entry, or where the cut is
	spans []span // of the entries
}

// span is where an entry stands in a payload.
type span struct{ from, to int }

// parseLogFrame reads a payload.
//
// It bounds what it allocates by the bytes that are there, and accepts a frame only if its entries fill it: the CRC
// says that the bytes are those that were written, not that this version of the program wrote them.
func parseLogFrame(payload []byte) (logFrame, error) {
	if len(payload) == 0 {
		return logFrame{}, errBadEntry
	}
	r := entryReader{all: payload, offset: 1}
	f := logFrame{kind: payload[0], index: r.uvarint()}
	switch f.kind {
	case frameCut:
	case frameEntries:
		count := r.uvarint()
		if count > uint64((len(payload)-r.offset)/minEntryBytes) {
			return logFrame{}, errBadEntry
		}
		f.spans = make([]span, count)
		for i := range f.spans {
			from := r.offset
			r.entry()
			f.spans[i] = span{from, r.offset}
		}
	default:
		return logFrame{}, errBadEntry
	}
	if r.bad || r.offset != len(payload) || f.index == 0 || f.index+uint64(len(f.spans)) < f.index {
		return logFrame{}, errBadEntry
	}
	return f, nil
}
