package record

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// The quick way over usual records takes no record that the other one refuses, and finds the same in it; and the records
// of ordinary producers go that way.
func TestSkimShort(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	taken := 0
	const rounds = 300_000
	for range rounds {
		b := usualRecord(rng)
		ordinary := len(b) < 4000
		b = append(b, make([]byte, rng.IntN(3))...)
		damaged := rng.IntN(2) == 0
		if damaged {
			b[rng.IntN(min(len(b), 12))] = byte(rng.Uint32())
			b = b[:len(b)-rng.IntN(min(len(b), 4))]
		}
		var quick, slow skimmed
		n := skimShort(b, &quick)
		if n == 0 {
			if !damaged && ordinary && len(b) > 8 {
				t.Fatalf("an ordinary record goes the long way: %x", b)
			}
			continue
		}
		taken++
		size, from := varint(b)
		if from <= 0 || from+int(size) != n || !skimBody(b[from:n], &slow) || quick != slow {
			t.Fatalf("%d bytes, %+v; the long way finds %+v: %x", n, quick, slow, b[:min(len(b), 64)])
		}
	}
	if taken < rounds/2 {
		t.Errorf("only %d of %d records were taken", taken, rounds)
	}
}

// usualRecord is a record without headers whose deltas take one byte or two.
func usualRecord(rng *rand.Rand) []byte {
	field := func(b []byte, most int) []byte {
		n := rng.IntN(most+1) - 1
		b = binary.AppendVarint(b, int64(n))
		return append(b, make([]byte, max(n, 0))...)
	}
	body := []byte{byte(rng.Uint32())}
	body = binary.AppendVarint(body, int64(rng.IntN(16000)-8000))
	body = binary.AppendVarint(body, int64(rng.IntN(8000)))
	body = field(body, 20)
	body = field(body, []int{0, 10, 100, 5000}[rng.IntN(4)])
	return append(binary.AppendVarint(nil, int64(len(body)+1)), append(body, 0)...)
}
