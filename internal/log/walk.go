package log

import (
	"errors"
	"fmt"
	"io"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// walkBuffer is what a walker reads at once: all headers between two index entries at the default interval,
// as the last of them begins no more than one interval behind the first.
const walkBuffer = 4096 + record.HeaderSize

// walker walks over the headers of the batches of a segment, skipping the records.
//
//	file   | b1                | b2      | b3                          |
//	        ▲ pos               ▲ to                                    ▲ end
//	buf    [at ............ at+n)        read again only where the next header is not in it
//
// It is a value without a finaliser or a lock; file and buf are lent to it, and headers that it gives refer to
// neither. With skim, batches larger than the buffer cost one read of walkBuffer each. After an error
// pos is where the bad bytes begin, and another next would give the same.
type walker struct {
	file io.ReaderAt
	buf  []byte
	at   int64 // where in the file buf begins
	n    int   // how much of it is filled
	pos  int64 // of the batch that next returned last
	to   int64 // of the next batch
	end  int64 // of the segment
	skim bool  // only headers are wanted: of large batches nothing else is read

	expected protocol.Offset // the offset after the last batch
	before   place           // of the last batch but one, for nextChecked to blame
}

// place is where a batch is: its position, and the offset that was expected there.
type place struct {
	position int64
	expected protocol.Offset
}

// walk makes a walker from a place where a batch begins; buf is lent to it.
func walk(file io.ReaderAt, from, end int64, buf []byte) walker {
	return walker{file: file, buf: buf, to: from, end: end, skim: true}
}

// next is the header of the next batch, whose place is then w.pos. It returns io.EOF behind the last one,
// and record.ErrShort or a *record.CorruptError for bytes that are no whole batch, which begin at w.pos.
func (w *walker) next() (record.Header, error) {
	w.pos = w.to
	if w.pos >= w.end {
		return record.Header{}, io.EOF
	}
	head, err := w.peek()
	if err != nil {
		return record.Header{}, err
	}
	h, err := record.ParseHeader(head)
	if err != nil {
		return h, err
	}
	if int64(h.Size) > w.end-w.pos {
		return h, record.ErrShort
	}
	w.to, w.expected = w.pos+int64(h.Size), h.NextOffset()
	return h, nil
}

// peek is what the buffer holds from w.pos on, at least a header where the segment has that much.
func (w *walker) peek() ([]byte, error) {
	need := min(record.HeaderSize, w.end-w.pos)
	if w.pos >= w.at && w.pos+need <= w.at+int64(w.n) {
		return w.buf[w.pos-w.at : w.n], nil
	}
	want := min(int64(len(w.buf)), w.end-w.pos)
	if w.skim && w.pos >= w.at+int64(w.n)+walkBuffer {
		want = min(want, walkBuffer)
	}
	if err := readFull(w.file, w.buf[:want], w.pos); err != nil {
		return nil, err
	}
	w.at, w.n = w.pos, int(want)
	return w.buf[:w.n], nil
}

// readFull reads len(b) bytes at off, or fails; a file that ends earlier than it was measured to be is an
// error with its position.
func readFull(file io.ReaderAt, b []byte, off int64) error {
	n, err := file.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(b), off, err)
}

// isBadBatch reports whether err says that bytes are no batch, rather than that they could not be read.
func isBadBatch(err error) bool {
	var corrupt *record.CorruptError
	return errors.Is(err, record.ErrShort) || errors.As(err, &corrupt)
}
