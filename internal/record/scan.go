package record

import (
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// frame is what the records of one batch have in common.
type frame struct {
	baseOffset    protocol.Offset
	baseTimestamp int64
	// appendTime replaces the timestamps where useAppendTime is set.
	appendTime    int64
	useAppendTime bool
}

// frameOf takes the frame from a batch's header.
func frameOf(b Batch) frame {
	return frame{b.BaseOffset(), b.BaseTimestamp(), b.MaxTimestamp(), b.TimestampType() == LogAppendTime}
}

// There are two parsers of records. This one materialises them for whoever reads, and says what is wrong with
// bad ones; the one in skim.go only looks at what validation needs and runs for every record that clients
// produce. A fuzz target holds them to the same judgement.

// scan reads the record at the start of b into r and returns its length in bytes; it allocates only for an
// error. The whole record must be in b.
func (f *frame) scan(b []byte, r *Record) (int, error) {
	size, n := varint(b)
	if n <= 0 {
		return 0, invalid(f.baseOffset, "record without a length")
	}
	if size < 0 || int(size) > len(b)-n {
		return 0, invalid(f.baseOffset, "record of %d bytes where %d are left", size, len(b)-n)
	}
	end := n + int(size)
	if err := f.scanBody(b[n:end:end], r); err != nil {
		return 0, err
	}
	r.Size = end
	return end, nil
}

// scanBody reads a record without its length field; body is exactly the record.
func (f *frame) scanBody(body []byte, r *Record) error {
	if len(body) == 0 {
		return invalid(f.baseOffset, "record of 0 bytes")
	}
	r.Attributes = int8(body[0])
	p := 1
	timestampDelta, n := varlong(body[p:])
	if n <= 0 {
		return invalid(f.baseOffset, "record without a timestamp")
	}
	p += n
	offsetDelta, n := varint(body[p:])
	if n <= 0 {
		return invalid(f.baseOffset, "record without an offset")
	}
	p += n
	r.Offset = f.baseOffset + protocol.Offset(offsetDelta)
	r.Timestamp = f.baseTimestamp + timestampDelta
	if f.useAppendTime {
		r.Timestamp = f.appendTime
	}
	if r.Key, n = cutBytes(body[p:]); n <= 0 {
		return invalid(r.Offset, "record's key does not fit")
	}
	p += n
	if r.Value, n = cutBytes(body[p:]); n <= 0 {
		return invalid(r.Offset, "record's value does not fit")
	}
	p += n
	if p+1 == len(body) && body[p] == 0 {
		r.Headers = Headers{}
		return nil
	}
	return f.scanHeaders(body[p:], r)
}

// scanHeaders checks the count and every header of a record; they must fill b.
//
// They are kept as bytes: most readers of records want none of them, and [Headers.All] decodes them when asked.
func (f *frame) scanHeaders(b []byte, r *Record) error {
	count, p := varint(b)
	if p <= 0 || count < 0 || int(count) > len(b)-p {
		return invalid(r.Offset, "record with %d headers in %d bytes", count, len(b))
	}
	r.Headers = Headers{count: count, raw: b[p:]}
	for i := range count {
		_, _, n := cutHeader(b[p:])
		if n <= 0 {
			return invalid(r.Offset, "header %d of %d does not fit", i, count)
		}
		p += n
	}
	if p != len(b) {
		return invalid(r.Offset, "record is %d bytes longer than its fields", len(b)-p)
	}
	return nil
}
