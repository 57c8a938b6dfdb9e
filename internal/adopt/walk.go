package adopt

import (
	"errors"
	"io"

	"github.com/barnabas-mq/barnabas/internal/record"
)

// walkBuffer is how much of a segment is read at once.
const walkBuffer = 64 << 10

// walker walks over the headers of the batches of a segment, reading no more than it must where they are
// large. It takes whatever is no whole batch for the end: what a crash has left is for the log to judge.
//
// It is used by one goroutine. Batches that are larger than the buffer cost one read of their header, not of
// their records.
type walker struct {
	file     io.ReaderAt
	buffer   []byte
	at       int64 // where in the file buffer begins
	filled   int
	position int64 // of the batch that next returned last
	next     int64 // of the one after it
	size     int64
}

func newWalker(file io.ReaderAt, from, size int64) *walker {
	return &walker{file: file, buffer: make([]byte, min(walkBuffer, max(size-from, 0))), next: from, size: size}
}

// step is the header of the next batch; ok is false at the end.
func (w *walker) step() (h record.Header, ok bool, err error) {
	w.position = w.next
	need := min(record.HeaderSize, w.size-w.position)
	if need <= 0 {
		return h, false, nil
	}
	if w.position < w.at || w.position+need > w.at+int64(w.filled) {
		w.at = w.position
		w.filled, err = readAt(w.file, w.buffer[:min(int64(len(w.buffer)), w.size-w.position)], w.position)
		if err != nil {
			return h, false, err
		}
	}
	h, err = record.ParseHeader(w.buffer[w.position-w.at : w.filled])
	if err != nil || int64(h.Size) > w.size-w.position {
		return h, false, nil
	}
	w.next = w.position + int64(h.Size)
	return h, true, nil
}

// entry is the whole batch that step returned last.
func (w *walker) entry(h record.Header) (record.Entry, error) {
	b := make([]byte, h.Size)
	if _, err := readAt(w.file, b, w.position); err != nil {
		return record.Entry{}, err
	}
	return record.Entry{Header: h, Bytes: b}, nil
}

// readAt fills b; the end of the file is no error.
func readAt(file io.ReaderAt, b []byte, position int64) (int, error) {
	n, err := file.ReadAt(b, position)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
