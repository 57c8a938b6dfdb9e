package server

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/barnabas-mq/barnabas/internal/invariant"
)

const (
	// lengthSize is the length in front of every frame.
	lengthSize = 4
	// smallBuffer is the buffer that frames up to this size share; it is not charged.
	smallBuffer = 16 << 10
	// firstStep is the first buffer of a longer frame of which only the beginning is there; each further
	// one is up to growth times what came.
	firstStep = 64 << 10
	growth    = 4
	// largestGuess bounds the buffer taken on the guess that frames go on being as long as the last one. Produce
	// requests of up to 1 MiB for each of a handful of partitions are within: with 2 MiB, moving the beginnings
	// of such requests to larger buffers was a sixth of a broker's work.
	largestGuess = 8 << 20
)

// reader cuts a connection's bytes into frames. It is pushed: a transport asks for space, fills it and
// says how much came; the reader serves what is complete. Only the connection's reading goroutine uses
// it.
//
//	buffer  [ served … | start ─ length, frame ─ | length, part of a frame ─ end | free ]
//
// Frames hold references on the buffer that they lie in. A frame that does not fit moves to a larger
// buffer with what came of it: at most one small buffer's worth where the last frame was small, and
// nothing where frames are of one size, because then a buffer of that size is read into from the start.
type reader struct {
	conn *Conn
	// greedy transports read whatever is there into a buffer. The others read exactly: a length, into head,
	// so that an idle connection holds no buffer, and then its frame.
	greedy bool
	head   [lengthSize]byte
	headed int // bytes in head

	buffer     *Buffer
	start, end int
	// need is the length of the frame at start with its length field, 0 while that is not there; last is
	// that of the frame before.
	need, last int
	total      int64 // bytes ever received
	// answered says that an answer was written since the last read, see socket.
	answered bool

	// spare is a Frame to use again, since most are not retained.
	spare *Frame
	// progress is where total stood when the window of the frame in arrival began.
	progress      int64
	progressSince time.Duration
}

// idle reports whether nothing of a frame is there.
func (r *reader) idle() bool { return r.start == r.end && r.headed == 0 }

// space is where the next bytes go; never empty. It waits for the budget where the buffer is charged.
//
// Behind a large frame nothing more is read into its buffer, although there is room: a frame that began there would
// have to be copied out of it.
func (r *reader) space() ([]byte, error) {
	if r.buffer == nil && !r.greedy && r.headed < lengthSize {
		return r.head[r.headed:], nil
	}
	if r.crowded() {
		if err := r.move(); err != nil {
			return nil, err
		}
	}
	limit := len(r.buffer.Bytes)
	if limit > smallBuffer || !r.greedy {
		// Not beyond this frame: what comes behind it would have to move.
		expected := max(r.need, lengthSize)
		if r.need == 0 {
			expected = max(r.last, lengthSize)
		}
		limit = min(limit, r.start+expected)
	}
	if r.end >= limit {
		invariant.Fail("no space: start %d, end %d, need %d, last %d, limit %d", r.start, r.end, r.need, r.last, limit)
	}
	return r.buffer.Bytes[r.end:limit], nil
}

// crowded reports whether the frame at start needs another buffer before more of it is read. One that is
// longer than its charged buffer fills that first: its next one grows with what came, not with its claim.
func (r *reader) crowded() bool {
	if r.buffer == nil {
		return true
	}
	room := len(r.buffer.Bytes)
	if r.start+max(r.need, lengthSize) <= room {
		return false
	}
	return r.start > 0 || r.end == room || room <= smallBuffer
}

// move gets a buffer in which the frame at start can go on, and takes along what there is of it.
//
//	have   of the frame that came so far          r.need 0: not even its length is known
//	what the next buffer is for                   its size
//	a frame after one of n bytes                  n, if the budget has it at once; else 16 KiB: it may not come
//	a frame of 1 MiB after small ones             64 KiB, then 4 times what came: 256 KiB, 1 MiB
//	a claim of 100 MiB with 10 bytes sent         64 KiB, for as long as no more comes
//
// Beyond 64 KiB a peer must send a quarter of what it makes us allocate. Where no frame lives in the buffer any
// more the beginning is moved to its start instead; else the frames' holders keep the old buffer.
func (r *reader) move() error {
	have := r.end - r.start
	size := r.wanted(have)
	old := r.buffer
	if old != nil && old.refs.Load() == 1 && len(old.Bytes) >= size && r.start > 0 {
		copy(old.Bytes, old.Bytes[r.start:r.end]) // no frame lives in it any more
		r.start, r.end = 0, have
		return nil
	}
	var held *claim
	if old != nil && old.claim.budget != nil && have > 0 {
		held = &old.claim
	}
	charge, ok := r.conn.tryCharge(size, held)
	if !ok && r.need == 0 {
		size = smallBuffer // it was a guess, and may be wrong: perhaps nothing comes
	} else if !ok {
		var err error
		if charge, err = r.conn.charge(size, held); err != nil {
			return err
		}
	}
	r.buffer = r.conn.server.buffers.Get(size)
	r.buffer.claim = charge
	if old != nil {
		copy(r.buffer.Bytes, old.Bytes[r.start:r.end])
		old.Release()
	}
	if r.headed > 0 {
		have = copy(r.buffer.Bytes, r.head[:r.headed])
		r.headed = 0
	}
	r.start, r.end = 0, have
	return nil
}

// wanted is the size of the buffer in which the frame at start, of which have bytes came, goes on: as much
// as it needs where that is known, but no more than what came, or the last frame, vouches for.
func (r *reader) wanted(have int) int {
	guess := min(r.last, largestGuess)
	if r.need == 0 {
		return max(guess, smallBuffer)
	}
	return max(min(r.need, max(guess, firstStep, growth*have)), smallBuffer)
}

// received takes the n bytes that space now holds and serves the frames that are complete.
func (r *reader) received(n int) error {
	r.total += int64(n)
	r.conn.acceptor.counters.bytesIn.Add(int64(n))
	if r.buffer == nil {
		r.headed += n
		if r.headed < lengthSize {
			return nil
		}
		return r.measure(r.head[:])
	}
	r.end += n
	err := r.serve()
	if flushed := r.conn.flush(); err == nil {
		err = flushed
	}
	return err
}

// serve hands over every complete frame.
func (r *reader) serve() error {
	var now time.Time
	for {
		if r.need == 0 && r.end-r.start >= lengthSize {
			if err := r.measure(r.buffer.Bytes[r.start:r.end]); err != nil {
				return err
			}
		}
		if r.need == 0 || r.end-r.start < r.need {
			return nil
		}
		if now.IsZero() {
			now = time.Now()
		}
		if err := r.conn.serve(r.cut(now)); err != nil {
			return err
		}
	}
}

// measure reads and judges the length at the head of first.
func (r *reader) measure(first []byte) error {
	n := int32(binary.BigEndian.Uint32(first))
	if n <= 0 || int64(n) > int64(r.conn.frameLimit) {
		return &badLength{length: n, limit: r.conn.frameLimit, first: bytes.Clone(first[:min(len(first), 16)])}
	}
	r.need = int(n) + lengthSize
	return nil
}

// cut takes the frame at start out of the buffer.
func (r *reader) cut(now time.Time) *Frame {
	f := r.spare
	r.spare = nil
	if f == nil {
		f = new(Frame)
	}
	from, to := r.start+lengthSize, r.start+r.need
	f.Bytes, f.Received, f.buffer = r.buffer.Bytes[from:to:to], now, r.buffer
	f.refs.Store(1)
	r.start, r.last, r.need = to, r.need, 0
	r.progressSince = 0
	if r.start == r.end {
		// The frame gets the reader's reference, so that the bytes are free when the handler lets them go and
		// not only when its answer has been written.
		r.buffer, r.start, r.end = nil, 0, 0
		return f
	}
	r.buffer.Retain()
	return f
}

// park is called before the goroutine waits for bytes: an idle connection holds no buffer.
func (r *reader) park() {
	if r.idle() {
		r.drop()
	}
}

// drop lets go of the buffer and what is in it.
func (r *reader) drop() {
	if r.buffer != nil {
		r.buffer.Release()
		r.buffer = nil
	}
	r.start, r.end, r.need = 0, 0, 0
}

// windowStart is when the window of the frame in arrival began; now where it had not.
func (r *reader) windowStart(now time.Duration) time.Duration {
	if r.progressSince == 0 {
		r.progressSince, r.progress = now, r.total
	}
	return r.progressSince
}

// stalled reports whether a frame has begun and, in a window that has ended, neither ended nor brought
// enough. Where it did, the next window starts.
func (r *reader) stalled(now, window time.Duration) bool {
	if r.idle() || now-r.windowStart(now) < window {
		return false
	}
	if r.total-r.progress < frameProgress {
		return true
	}
	r.progressSince, r.progress = now, r.total
	return false
}
