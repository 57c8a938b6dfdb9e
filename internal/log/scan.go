package log

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// scanBuffer is what a scan reads at once; batches that are larger are checked in pieces.
const scanBuffer = 256 << 10

// Where the CRC of a batch is and what it covers; see the layouts in package record.
const (
	batchCRCAt      = 17
	batchCRCFrom    = 21
	messageCRCAt    = 12
	messageCRCFrom  = 16
	magicAt         = 16
	batchLengthAt   = 8
	magicBatch      = 2
	filePageSize    = 4096
	searchBatchMax  = 1 << 30
	offsetDistance  = 1 << 31
	controlBatchMax = 64 << 10
)

// scanBytes is a buffer to scan length bytes with.
func scanBytes(length int64) []byte {
	return make([]byte, min(scanBuffer, max(length, record.HeaderSize)))
}

// errWrongCRC is why a whole batch is bad; it is a *record.CorruptError, as all such reasons are.
func errWrongCRC(h *record.Header) error {
	return &record.CorruptError{Code: protocol.CorruptMessage, Offset: h.BaseOffset, Reason: "wrong CRC"}
}

// errOrder is a batch whose offsets do not go on from what was expected, or reach beyond what they may.
func errOrder(h *record.Header, expected protocol.Offset) *record.CorruptError {
	return &record.CorruptError{
		Code: protocol.CorruptMessage, Offset: h.BaseOffset,
		Reason: fmt.Sprintf("offsets %d to %d, expected %d or more", h.BaseOffset, h.LastOffset, expected),
	}
}

// orderError is why a batch with a right CRC is bad: its offsets do not go on from those before. One of two
// batches has a wrong base offset, which the CRC does not cover; at is the one that stands out.
type orderError struct {
	record.CorruptError
	at place
}

// Unwrap makes it the *record.CorruptError that all bad batches have.
func (e *orderError) Unwrap() error { return &e.CorruptError }

// nextChecked is next, with the CRC of the batch checked and its offsets held against the ones before.
//
//	offsets of batches     blamed
//	10-19 20-29 5-14       the third: it goes back behind both
//	10-19 90-99 20-29      the second: the third goes on from the first
//
// Base offset and epoch are outside the CRC, so a flipped bit in them passes it; the order of the neighbours is all
// that tells. After an error the walker stands where it did before the batch.
func (w *walker) nextChecked(base protocol.Offset) (record.Header, error) {
	last := place{w.pos, max(base, w.expected)}
	w.skim = false
	h, err := w.next()
	if err != nil {
		return h, err
	}
	if err = w.checkCRC(&h); err == nil && (h.BaseOffset < last.expected || h.LastOffset-base > maxRelativeOffset) {
		at := place{w.pos, last.expected}
		if h.BaseOffset >= w.before.expected && h.BaseOffset < last.expected {
			at = w.before // it goes on from there, so the one between is wrong
		}
		err = &orderError{*errOrder(&h, last.expected), at}
	}
	if err != nil {
		w.to, w.expected = w.pos, last.expected
		return h, err
	}
	w.before = place{w.pos, last.expected}
	return h, nil
}

// checkCRC reads the batch at w.pos through, in pieces of the buffer.
func (w *walker) checkCRC(h *record.Header) error {
	crcFrom, table := int64(batchCRCFrom), castagnoli
	if h.Magic < magicBatch {
		crcFrom, table = messageCRCFrom, crc32.IEEETable
	}
	var sum uint32
	end := w.pos + int64(h.Size)
	for at := w.pos + crcFrom; at < end; {
		if at < w.at || at >= w.at+int64(w.n) {
			n := min(int64(len(w.buf)), w.end-at)
			if err := readFull(w.file, w.buf[:n], at); err != nil {
				return err
			}
			w.at, w.n = at, int(n)
		}
		part := w.buf[at-w.at : min(int64(w.n), end-w.at)]
		sum = crc32.Update(sum, table, part)
		at += int64(len(part))
	}
	if sum != h.CRC {
		return errWrongCRC(h)
	}
	return nil
}

// findBatch looks for a whole batch with a right CRC between from and end whose base offset is at least
// least, and returns its position or -1. It is how damage is told from a torn tail. A batch within the value
// of a torn record does not count: behind a real one stands another, or the end.
//
// Every byte is a candidate. plausible drops nearly all of them by three fields, so the search costs about as much
// as reading; a candidate that is left is checked by its CRC and by what stands behind it. A client can put the
// bytes of a batch into a value, but not choose that a write tears right behind them.
func findBatch(file io.ReaderAt, from, end int64, least protocol.Offset) (int64, error) {
	buf, probe := scanBytes(end-from), scanBytes(end-from)
	for at := from; at+record.HeaderSize <= end; {
		n := min(int64(len(buf)), end-at)
		if err := readFull(file, buf[:n], at); err != nil {
			return -1, err
		}
		for i := int64(0); i+record.HeaderSize <= n; i++ {
			if !plausible(buf[i:n], end-at-i, least) {
				continue
			}
			w := walk(file, at+i, end, probe)
			_, err := w.nextChecked(least)
			if err == nil {
				_, err = w.nextChecked(least)
			}
			if err == nil || ended(err) {
				return at + i, nil
			}
			if !isBadBatch(err) {
				return -1, err
			}
		}
		at += n - record.HeaderSize + 1
	}
	return -1, nil
}

// plausible is a cheap look at whether a batch of format 2 may begin at b with room bytes of file behind it.
func plausible(b []byte, room int64, least protocol.Offset) bool {
	if b[magicAt] != magicBatch {
		return false
	}
	size := record.LogOverhead + int64(int32(binary.BigEndian.Uint32(b[batchLengthAt:])))
	base := protocol.Offset(binary.BigEndian.Uint64(b))
	return size >= record.HeaderSize && size <= min(room, searchBatchMax) && base >= least && base-least < offsetDistance
}

// lostPage reports whether the bad bytes at position look as a power cut leaves them: pages that were never
// written back read as zeros, from the end of what had been synced to the end of its page, or whole pages.
// size is what the batch there claims, or 0, and expected the offset that it should have. A real batch does
// not begin with 17 zeros, nor with fewer where its offset has other digits. One may end with a zero or two;
// where just these are on the last page of a file, a lost page is still likelier than a flipped bit.
//
// The zeros are those of a file that was extended, whose size reached the disk before its data did.
func lostPage(file io.ReaderAt, position, end, size int64, expected protocol.Offset) (bool, error) {
	if size < record.HeaderSize || size > end-position {
		size = min(record.HeaderSize, end-position)
	}
	buf := make([]byte, filePageSize)
	for from := position; from < position+size; {
		to, enough := (from/filePageSize+1)*filePageSize, int64(1)
		if from == position {
			enough = zerosAtStart(expected) + 1
		}
		to = min(to, end)
		if err := readFull(file, buf[:to-from], from); err != nil {
			return false, err
		}
		if to-from >= enough && allZero(buf[:to-from]) {
			return true, nil
		}
		from = to
	}
	return false, nil
}

// zerosAtStart is how many zeros a batch at offset may begin with.
func zerosAtStart(offset protocol.Offset) int64 {
	if offset == 0 {
		return magicAt
	}
	return int64(bits.LeadingZeros64(uint64(offset)) / 8)
}

// batchAt reads the whole batch at w.pos, which must be small: a control batch.
func (w *walker) batchAt(h *record.Header) (record.Batch, error) {
	if h.Size > controlBatchMax {
		return nil, &record.CorruptError{Code: protocol.CorruptMessage, Offset: h.BaseOffset, Reason: "control batch is too large"}
	}
	b := make(record.Batch, h.Size)
	if err := readFull(w.file, b, w.pos); err != nil {
		return nil, err
	}
	return b, nil
}

// ended reports whether err is the regular end of a walk.
func ended(err error) bool { return errors.Is(err, io.EOF) }
