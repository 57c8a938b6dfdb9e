package record

// skimmed is what validation needs to know of a record. It refers to no bytes, so it outlives the chunk that the
// record was in.
type skimmed struct {
	timestampDelta int64
	offsetDelta    int32
	nullKey        bool
}

// skim reads the record at the start of b, checks that its fields fill it, and returns its length in bytes; 0
// where it is wrong, and then scan says why. It is the inner loop of every produce request.
func skim(b []byte, s *skimmed) int {
	if n := skimShort(b, s); n > 0 {
		return n
	}
	size, n := varint(b)
	if n <= 0 || size <= 0 || int(size) > len(b)-n {
		return 0
	}
	end := n + int(size)
	if !skimBody(b[n:end], s) {
		return 0
	}
	return end
}

// skimShort is skim for the usual record: no length or delta in it takes more than two bytes, it has no headers, and
// something follows it or its value is not empty. 0 says nothing of other records.
func skimShort(b []byte, s *skimmed) int {
	last := len(b) - 2 // up to here a varint of two bytes can be read
	if last < 0 {
		return 0
	}
	size, p := short(b, 0)
	end := p + int(size)
	if size <= 0 || end > len(b) || p >= last {
		return 0
	}
	timestamp, p := short(b, p+1)
	if p > last {
		return 0
	}
	offset, p := short(b, p)
	if p > last {
		return 0
	}
	key, p := short(b, p)
	if p += max(int(key), 0); p > last {
		return 0
	}
	value, p := short(b, p)
	if p += max(int(value), 0); p != end-1 || b[p] != 0 {
		return 0
	}
	s.timestampDelta, s.offsetDelta, s.nullKey = int64(timestamp), offset, key < 0
	return end
}

// skimBody is skim for a record without its length field.
//
// Its fields, and the order in which they can be wrong:
//
//	attributes | timestamp delta | offset delta | key | value | headers     they must fill b exactly
//
// Attributes are not looked at: no bit has a meaning in format 2, and clients may set any. A record without headers
// ends with one zero byte, which is tested first since nearly all do.
func skimBody(b []byte, s *skimmed) bool {
	if len(b) == 0 {
		return false
	}
	p := 1
	var n int
	if s.timestampDelta, n = varlong(b[p:]); n <= 0 {
		return false
	}
	p += n
	if s.offsetDelta, n = varint(b[p:]); n <= 0 {
		return false
	}
	p += n
	// A negative length is null, whatever its value; n is checked behind the sum, where one test does
	// for both.
	key, n := varint(b[p:])
	s.nullKey = key < 0
	if p += n + max(int(key), 0); n <= 0 || p > len(b) {
		return false
	}
	value, n := varint(b[p:])
	if p += n + max(int(value), 0); n <= 0 || p > len(b) {
		return false
	}
	if p == len(b)-1 && b[p] == 0 {
		return true
	}
	return skimHeaders(b[p:])
}

// skimHeaders checks that b is headers and nothing else.
//
// A count that exceeds the bytes is refused before the loop, so that no claim makes it run longer than b is.
func skimHeaders(b []byte) bool {
	count, p := varint(b)
	if p <= 0 || count < 0 || int(count) > len(b)-p {
		return false
	}
	for range count {
		key, n := varint(b[p:])
		if n <= 0 || key < 0 || int(key) > len(b)-p-n {
			return false
		}
		p += n + int(key)
		value, n := varint(b[p:])
		if n <= 0 || int(value) > len(b)-p-n {
			return false
		}
		p += n + max(int(value), 0)
	}
	return p == len(b)
}

// skimLarge is skimBody for a record of size bytes that is too large to be held: only its lengths are looked
// at while it streams by. It returns errRecord where its fields do not fill it.
func (s *stream) skimLarge(size int, r *skimmed) error {
	if _, err := s.byte(); err != nil {
		return unexpected(err)
	}
	delta, n, err := s.varlong()
	if err != nil {
		return unexpected(err)
	}
	r.timestampDelta = delta
	offset, m, err := s.varint()
	if err != nil {
		return unexpected(err)
	}
	r.offsetDelta = offset
	key, left, err := s.skipField(size - 1 - n - m)
	if err != nil {
		return err
	}
	r.nullKey = key < 0
	if _, left, err = s.skipField(left); err != nil {
		return err
	}
	return s.skimLargeHeaders(left)
}

// skimLargeHeaders checks that the last of a record, left bytes, is headers and nothing else.
func (s *stream) skimLargeHeaders(left int) error {
	count, n, err := s.varint()
	if err != nil {
		return unexpected(err)
	}
	if left -= n; count < 0 || int(count) > left {
		return errRecord
	}
	for range count {
		var key int32
		if key, left, err = s.skipField(left); err != nil {
			return err
		}
		if key < 0 {
			return errRecord
		}
		if _, left, err = s.skipField(left); err != nil {
			return err
		}
	}
	if left != 0 {
		return errRecord
	}
	return nil
}

// skipField passes over a length and its bytes, of which there are left, and tells the length and what is
// left after it.
func (s *stream) skipField(left int) (size int32, rest int, err error) {
	size, n, err := s.varint()
	if err != nil {
		return 0, 0, unexpected(err)
	}
	rest = left - n - max(int(size), 0)
	if rest < 0 {
		return 0, 0, errRecord
	}
	return size, rest, s.skip(max(int(size), 0))
}
