package record

import (
	"encoding/binary"
	"io"
)

// rewriter writes the records of a batch into a new one, with another codec or other offsets.
//
//	old batch ─▶ stream or bytes ─▶ copy: judge, renumber ─▶ sink: compressor ─▶ out: limited
//	             one record at a time                        or straight to out   max.message.bytes
//
// What it holds is the new batch and one record. A batch that fails leaves nothing behind but garbage: the caller's
// bytes are not touched.
type rewriter struct {
	// out is the new batch.
	out limitedBuffer
	// sink is out, or the compressor in front of it.
	sink io.Writer
	// renumber gives the records offset deltas from 0 on.
	renumber bool
	// scratch is the start of a record.
	scratch []byte
}

// rewrite walks the records of b and gives a copy with the codec that the topic wants; the header still has
// the timestamps of b. The bytes of the records stay, but for the offsets where renumber is set. It stops at
// max.message.bytes, so that what decompresses into more than is allowed costs no more than that.
func (v *Validation) rewrite(b Batch, w *walker, renumber bool) (Batch, error) {
	target := v.target(b)
	w.reset()
	if b.TimestampType() == LogAppendTime {
		w.appendTimed(b)
	}
	r := rewriter{renumber: renumber, out: limitedBuffer{limit: int(v.MaxMessageBytes)}}
	r.out.bytes = append(make([]byte, 0, len(b)+len(b)/4), b[:HeaderSize]...)
	r.sink = &r.out
	var packer compression
	if target != None {
		packer = v.Compressor.writer(target, v.Level, &r.out)
		defer packer.release()
		r.sink = packer
	}
	err := r.records(b, w, v.Decompressor)
	if err == nil && target != None {
		err = packer.Close()
	}
	if err != nil {
		return nil, v.inside(b, err)
	}
	stored := Batch(r.out.bytes)
	binary.BigEndian.PutUint32(stored[lengthAt:], uint32(len(stored)-LogOverhead))
	stored.setAttributes(b.Attributes()&^codecMask | Attributes(target))
	return stored, nil
}

// records copies the records one by one.
func (r *rewriter) records(b Batch, w *walker, d *Decompressor) error {
	if b.Codec() == None {
		return r.plain(b, w)
	}
	s, err := d.open(b.Codec(), b[HeaderSize:], guarded)
	if err != nil {
		return err
	}
	defer d.close(s)
	for i := range b.Count() {
		body, _, err := s.recordBody()
		if err != nil {
			return err
		}
		if err := r.copy(i, body, w); err != nil {
			return err
		}
	}
	return b.finish(s)
}

// plain copies uncompressed records. They are cut by their lengths; copy looks inside.
func (r *rewriter) plain(b Batch, w *walker) error {
	rest := []byte(b[HeaderSize:])
	for i := range b.Count() {
		size, n := varint(rest)
		if n <= 0 || size <= 0 || int(size) > len(rest)-n {
			return explain(b, rest)
		}
		end := n + int(size)
		if err := r.copy(i, rest[n:end], w); err != nil {
			return err
		}
		rest = rest[end:]
	}
	if len(rest) > 0 {
		return invalid(b.BaseOffset(), "%d bytes behind the last of %d records", len(rest), b.Count())
	}
	return nil
}

// copy judges one record and writes it. Its bytes are not decoded and encoded again: headers in an odd order,
// varints longer than they need be and the like arrive as they were sent. Only renumbering replaces the
// offset delta, and with it the length.
func (r *rewriter) copy(index int32, body []byte, w *walker) error {
	var s skimmed
	if !skimBody(body, &s) {
		return errRecord
	}
	w.see(index, &s)
	tail := body
	var head [1 + varlongMax + varintMax]byte
	prefix := head[:0]
	if r.renumber {
		_, time := varlong(body[1:])
		_, offset := varint(body[1+time:])
		prefix = append(prefix, body[:1+time]...)
		prefix = appendVarint(prefix, int64(index))
		tail = body[1+time+offset:]
	}
	r.scratch = appendVarint(r.scratch[:0], int64(len(prefix)+len(tail)))
	r.scratch = append(r.scratch, prefix...)
	if _, err := r.sink.Write(r.scratch); err != nil {
		return err
	}
	_, err := r.sink.Write(tail)
	return err
}
