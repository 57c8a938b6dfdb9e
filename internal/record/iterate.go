package record

import (
	"errors"
	"io"
	"iter"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Records walks the records of b; compressed ones are decompressed as the walk goes on, in bounded memory.
// d may be nil, at the price of fresh buffers. The walk ends after the first error: a *CorruptError where
// the records or the compressed bytes are damaged, fewer or more than the header says. A record is valid
// until the next one; the walk may be left early.
//
//	for r, err := range batch.Records(d) {
//		if err != nil { ... }            // the last round
//		keep(bytes.Clone(r.Value))       // r is gone with the next round
//	}
//
// The count is the header's word, which the CRC covers; the bytes must agree with it.
func (b Batch) Records(d *Decompressor) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if b.Count() < 0 {
			yield(Record{}, invalid(b.BaseOffset(), "count %d", b.Count()))
			return
		}
		var err error
		if b.Codec() == None {
			err = b.plainRecords(yield)
		} else {
			err = b.compressedRecords(d, yield)
		}
		if err != nil && err != errLeft {
			yield(Record{}, err)
		}
	}
}

// errLeft says that the walk was left early: the consumer of an iterator must not be called again after it has
// said no, so this is no error to report.
var errLeft = errors.New("walk was left")

// plainRecords walks uncompressed records in place.
func (b Batch) plainRecords(yield func(Record, error) bool) error {
	f := frameOf(b)
	rest := b[HeaderSize:]
	var r Record
	for range b.Count() {
		n, err := f.scan(rest, &r)
		if err != nil {
			return err
		}
		if !yield(r, nil) {
			return errLeft
		}
		rest = rest[n:]
	}
	if len(rest) > 0 {
		return invalid(b.BaseOffset(), "%d bytes behind the last of %d records", len(rest), b.Count())
	}
	return nil
}

// compressedRecords streams compressed records. An emptied batch keeps its codec but has no payload.
//
// The loan of the stream ends with the walk, also where the walk is left early: yield's answer and the deferred close
// see to it. Nothing waits for a token here, since these batches have been validated.
func (b Batch) compressedRecords(d *Decompressor, yield func(Record, error) bool) error {
	if b.Count() == 0 {
		return nil
	}
	s, err := d.open(b.Codec(), b[HeaderSize:], ordinary)
	if err != nil {
		return b.damaged(err)
	}
	defer d.close(s)
	f := frameOf(b)
	var r Record
	for range b.Count() {
		body, size, err := s.recordBody()
		if err != nil {
			return b.damaged(err)
		}
		if err := f.scanBody(body, &r); err != nil {
			return err
		}
		r.Size = size
		if !yield(r, nil) {
			return errLeft
		}
	}
	return b.finish(s)
}

// finish checks that a stream has nothing left behind the last record.
func (b Batch) finish(s *stream) error {
	switch done, err := s.finished(); {
	case err != nil:
		return b.damaged(err)
	case !done:
		return invalid(b.BaseOffset(), "more than %d records", b.Count())
	}
	return nil
}

// damaged turns a decompressor's error into one that names the batch.
func (b Batch) damaged(err error) error {
	corrupt := &CorruptError{Code: protocol.InvalidRecord, Offset: b.BaseOffset(), Cause: err}
	switch {
	case err == io.ErrUnexpectedEOF:
		corrupt.Reason = "fewer records than the header says"
	case err == errTooLarge:
		corrupt.Code, corrupt.Reason = protocol.MessageTooLarge, err.Error()
	case protocol.CodeOf(err) == protocol.UnsupportedCompressionType:
		corrupt.Code, corrupt.Reason = protocol.UnsupportedCompressionType, err.Error()
	default:
		corrupt.Reason = b.Codec().String() + ": " + err.Error()
	}
	return corrupt
}
