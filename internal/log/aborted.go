package log

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// AbortedTransaction names a transaction whose records a read_committed consumer must skip, from First until
// the producer's abort marker.
type AbortedTransaction struct {
	ProducerID protocol.ProducerID
	First      protocol.Offset
}

// Aborted lists the aborted transactions that have records or a marker at or behind from and a first record
// before to, in the order of their first offsets. The transactions that are open are not among them: what a
// read_committed consumer gets ends before them.
//
// One that began before from counts as long as its marker is at or behind from: a consumer that starts within it
// must drop what is left of it too.
//
//	offsets       10 ..... 20 .......... 30
//	transaction   [first .. from ..... marker]     Aborted(20, 25) has {producer, 10}
//
// The indexes begin to be searched at the segment of from, since an entry stands in the segment of its marker.
// Clients get the list only with read_committed: some drop data where it comes unasked.
func (l *Log) Aborted(from, to protocol.Offset) ([]AbortedTransaction, error) {
	for {
		v := l.view()
		out, err := l.abortedIn((*v.list)[v.list.floor(from):], from, to)
		if err == nil || !l.again(v, err) {
			slices.SortFunc(out, func(a, b AbortedTransaction) int { return cmp.Compare(a.First, b.First) })
			return out, l.readError(err)
		}
	}
}

// abortedIn goes through transaction indexes until an entry says that nothing before to is open any more.
//
// That is what the stable field is for. It is the last stable offset right behind the marker, so every
// transaction that was still open then begins there or later. Once it has reached to, no later entry can begin
// before to, and the search ends: mostly in the first segment, however long the log is. Entries are in the order
// of their markers and not of their first offsets, so nothing else would say so.
func (l *Log) abortedIn(list segments, from, to protocol.Offset) ([]AbortedTransaction, error) {
	var out []AbortedTransaction
	for _, s := range list {
		n := int(s.aborted.Load())
		if n == 0 {
			continue
		}
		complete, err := l.abortedInSegment(s, n, from, func(a aborted) (more bool) {
			if a.last >= from && a.first < to {
				out = append(out, AbortedTransaction{ProducerID: a.producer, First: a.first})
			}
			return a.stable < to
		})
		if err != nil || complete {
			return out, l.readError(err)
		}
	}
	return out, nil
}

// abortedInSegment shows the entries of one index with a marker at or behind from, until visit has enough.
//
// The first entry is found by halving; the rest is read about 4 KiB at a time. n is what was published when the segment
// was looked at: entries that are written meanwhile belong to markers behind the reader's limit.
func (l *Log) abortedInSegment(s *segment, n int, from protocol.Offset, visit func(aborted) bool) (enough bool, err error) {
	path := l.path(s.base, txnIndexSuffix)
	file, err := l.openSide(s, txnIndexSuffix)
	if err != nil {
		return false, err
	}
	defer file.Close()
	index := abortedFile{file: file, n: n}
	first, err := index.from(from)
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	b := make([]byte, min(walkBuffer, (n-first)*abortedSize)/abortedSize*abortedSize)
	for first < n {
		b = b[:min(len(b), (n-first)*abortedSize)]
		if err := readFull(file, b, int64(first)*abortedSize); err != nil {
			return false, fmt.Errorf("%s: %w", path, err)
		}
		for rest := b; len(rest) > 0; rest = rest[abortedSize:] {
			if !visit(parseAborted(rest)) {
				return true, nil
			}
		}
		first += len(b) / abortedSize
	}
	return false, nil
}
