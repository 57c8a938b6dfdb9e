package perf

import (
	"fmt"
	"math/rand/v2"
)

// Letters makes values of random letters, as Kafka's tool does, cut out of one long text.
func Letters(size int, seed uint64) func(i int64) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	// Making each value anew would cost more than sending it.
	text := make([]byte, size+1<<16)
	for i := range text {
		text[i] = byte('A' + random.IntN(26))
	}
	return func(i int64) []byte {
		from := int(uint64(i) * 7919 % (1 << 16))
		return text[from : from+size]
	}
}

// Noise makes values of random bytes, cut out of one long piece. No codec makes one of them smaller; of a batch longer than
// some tens of KiB it finds parts twice, as values overlap.
func Noise(size int, seed uint64) func(i int64) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	noise := make([]byte, size+1<<16)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	return func(i int64) []byte {
		from := int(uint64(i) * 7919 % (1 << 16))
		return noise[from : from+size]
	}
}

// variety is how many different values JSON makes.
const variety = 1024

// JSON makes values that look like messages of an application, and compress like them.
func JSON(size int, seed uint64) func(i int64) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	values := make([][]byte, variety)
	for i := range values {
		value := make([]byte, 0, size+128)
		for len(value) < size {
			value = fmt.Appendf(value, `{"id":%d,"user":"user-%d","amount":%d.%02d,"currency":"EUR","status":"accepted"},`,
				random.IntN(1e9), random.IntN(1e5), random.IntN(1000), random.IntN(100))
		}
		values[i] = value[:size]
	}
	return func(i int64) []byte { return values[uint64(i)%variety] }
}
