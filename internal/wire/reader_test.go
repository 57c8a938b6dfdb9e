package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kbin"
	"pgregory.net/rapid"
)

func TestReaderReadsWhatWasAppended(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(0, 200, 300).Draw(t, "text")
		number := rapid.Int64().Draw(t, "number")
		length := rapid.IntRange(-1, 3).Draw(t, "length")
		var b []byte
		b = AppendInt16(b, int16(number))
		b = AppendInt32(b, int32(number))
		b = AppendInt64(b, number)
		b = AppendBool(b, number > 0)
		b = AppendUvarint(b, uint32(number))
		b = AppendString(b, text)
		b = AppendNullableString(b, nil)
		b = AppendNullableString(b, &text)
		b = AppendCompactString(b, text)
		b = AppendCompactNullableString(b, nil)
		b = AppendCompactNullableString(b, &text)
		b = AppendArrayLen(b, length)
		b = AppendCompactLen(b, length)
		b = AppendNoTags(b)
		b = append(b, "tail"...)
		r := NewReader(b)
		ok := r.Int16() == int16(number) && r.Int32() == int32(number) && r.Int64() == number &&
			r.Bool() == (number > 0) && r.Uvarint() == uint32(number) && r.String() == text &&
			r.NullableBytes16() == nil && string(r.NullableBytes16()) == text && r.CompactString() == text &&
			r.NullableCompactBytes() == nil && string(r.NullableCompactBytes()) == text &&
			r.ArrayLen(1) == length && r.CompactArrayLen(1) == length
		r.SkipTags()
		if !ok || r.Err() != nil || string(r.Rest()) != "tail" {
			t.Fatalf("%v, %v, %q", ok, r.Err(), r.Rest())
		}
	})
}

func TestReaderStopsAtTheFirstFault(t *testing.T) {
	r := NewReader([]byte{0, 0, 0, 9, 1, 2, 3})
	if got := r.NullableBytes32(); got != nil || r.Err() == nil {
		t.Fatalf("%x, %v", got, r.Err())
	}
	if r.Int8() != 0 || r.Int16() != 0 || r.Int64() != 0 || r.String() != "" || r.CompactString() != "" || r.Rest() != nil ||
		r.UUID() != [16]byte{} || r.ArrayLen(1) != 0 || r.Varint() != 0 || r.NullableCompactBytes() != nil {
		t.Fatal("a reader gives values after a fault")
	}
}

func TestArrayLengthsAreBoundedByTheInput(t *testing.T) {
	for _, n := range []int32{5, math.MaxInt32} {
		r := NewReader(append(AppendInt32(nil, n), 1, 2, 3, 4, 5, 6, 7, 8))
		if got := r.ArrayLen(2); r.Err() == nil {
			t.Errorf("%d elements of 2 bytes in 8: %d", n, got)
		}
	}
	r := NewReader(append(AppendInt32(nil, 4), 1, 2, 3, 4, 5, 6, 7, 8))
	if r.ArrayLen(2) != 4 || r.Err() != nil {
		t.Error("4 elements of 2 bytes in 8 are refused")
	}
	r = NewReader(append(binary.AppendUvarint(nil, math.MaxUint32), 1))
	if r.CompactArrayLen(1); r.Err() == nil {
		t.Error("a huge compact array is taken")
	}
}

func TestUvarintSize(t *testing.T) {
	for shift := range 32 {
		for _, v := range []uint32{1 << shift, 1<<shift - 1} {
			if got, want := UvarintSize(v), len(AppendUvarint(nil, v)); got != want {
				t.Errorf("%d: %d, want %d", v, got, want)
			}
		}
	}
	if CompactLenSize(-1) != 1 || CompactLenSize(127) != 2 {
		t.Error("CompactLenSize is wrong")
	}
}

// FuzzReader reads the same bytes with kbin, which is the second opinion.
func FuzzReader(f *testing.F) {
	f.Add([]byte("hello, world"), []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{0, 2, 'a', 'b', 3, 'x', 'y', 0xff, 0xff}, []byte{4, 5, 4})
	f.Add([]byte{0, 0, 0, 1, 1, 2, 3}, []byte{7, 6, 8})
	f.Fuzz(func(t *testing.T, b, ops []byte) {
		mine, theirs := NewReader(b), kbin.Reader{Src: b}
		for _, op := range ops {
			same := readBoth(op, &mine, &theirs)
			if (mine.Err() == nil) != theirs.Ok() {
				t.Fatalf("op %d: %v, kbin %v", op%10, mine.Err(), theirs.Ok())
			}
			if mine.Err() != nil {
				return
			}
			if !same || !bytes.Equal(mine.Rest(), theirs.Src) {
				t.Fatalf("op %d read something else", op%10)
			}
		}
	})
}

// readBoth reads one value with both readers and reports whether they gave the same.
func readBoth(op byte, mine *Reader, theirs *kbin.Reader) bool {
	switch op % 10 {
	case 0:
		return mine.Int8() == theirs.Int8()
	case 1:
		return mine.Int16() == theirs.Int16()
	case 2:
		return mine.Int32() == theirs.Int32()
	case 3:
		return mine.Int64() == theirs.Int64()
	case 4:
		return mine.String() == theirs.String()
	case 5:
		return mine.CompactString() == theirs.CompactString()
	case 6:
		return bytes.Equal(mine.NullableBytes32(), theirs.NullableBytes())
	case 7:
		return mine.UUID() == theirs.Uuid()
	case 8:
		return mine.Bool() == theirs.Bool()
	}
	return mine.Uvarint() == theirs.Uvarint()
}
