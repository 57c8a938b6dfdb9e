package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"pgregory.net/rapid"
)

var allCodecs = []Codec{Gzip, Snappy, Lz4, Zstd}

// decompress reads a whole payload.
func decompress(d *Decompressor, codec Codec, payload []byte, mode openMode) ([]byte, error) {
	s, err := d.open(codec, payload, mode)
	if err != nil {
		return nil, err
	}
	defer d.close(s)
	var all []byte
	for {
		if err := s.fill(); err == io.EOF {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all = append(all, s.chunk...)
	}
}

// sample is n bytes that compress somewhat.
func sample(n int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	var b []byte
	for len(b) < n {
		if rng.IntN(3) == 0 {
			b = binary.BigEndian.AppendUint64(b, rng.Uint64())
		} else {
			b = append(b, "lorem ipsum dolor sit amet "[:1+rng.IntN(26)]...)
		}
	}
	return b[:n]
}

func TestCompressAndDecompress(t *testing.T) {
	var c Compressor
	var d Decompressor
	rapid.Check(t, func(t *rapid.T) {
		codec := rapid.SampledFrom(allCodecs).Draw(t, "codec")
		level := rapid.IntRange(-3, 25).Draw(t, "level")
		size := rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(0, 300_000)).Draw(t, "size")
		src := sample(size, rapid.Uint64().Draw(t, "seed"))
		packed := c.Compress([]byte("head"), src, codec, level)
		if !bytes.HasPrefix(packed, []byte("head")) {
			t.Fatal("dst is lost")
		}
		got, err := decompress(&d, codec, packed[4:], ordinary)
		if err != nil || !bytes.Equal(got, src) {
			t.Fatalf("%s level %d: %d of %d bytes, %v", codec, level, len(got), len(src), err)
		}
	})
}

// TestOtherEncoders reads what other implementations write.
func TestOtherEncoders(t *testing.T) {
	var d Decompressor
	src := sample(200_000, 7)
	check := func(name string, codec Codec, payload []byte) {
		t.Helper()
		if got, err := decompress(&d, codec, payload, ordinary); err != nil || !bytes.Equal(got, src) {
			t.Errorf("%s: %d of %d bytes, %v", name, len(got), len(src), err)
		}
	}
	check("bare snappy", Snappy, snappy.Encode(nil, src))
	half := len(src) / 2
	var c Compressor
	joined := c.Compress(c.Compress(nil, src[:half], Snappy, 0), src[half:], Snappy, 0)
	check("two framed snappy streams", Snappy, joined)
	check("two gzip members", Gzip, c.Compress(c.Compress(nil, src[:half], Gzip, 0), src[half:], Gzip, 0))
	check("two zstd frames", Zstd, c.Compress(c.Compress(nil, src[:half], Zstd, 0), src[half:], Zstd, 0))
	for _, size := range []lz4.BlockSize{lz4.Block64Kb, lz4.Block4Mb} {
		var out bytes.Buffer
		w := lz4.NewWriter(&out)
		err := w.Apply(lz4.BlockSizeOption(size), lz4.BlockChecksumOption(true), lz4.ChecksumOption(true), lz4.SizeOption(uint64(len(src))))
		if _, werr := w.Write(src); errors.Join(err, werr, w.Close()) != nil {
			t.Fatal(err, werr)
		}
		check(fmt.Sprint("lz4 with blocks of ", size), Lz4, out.Bytes())
	}
	var z bytes.Buffer
	w, _ := zstd.NewWriter(&z, zstd.WithWindowSize(64<<20), zstd.WithEncoderCRC(true))
	_, err := w.Write(src)
	if errors.Join(err, w.Close()) != nil {
		t.Fatal(err)
	}
	check("zstd with a large window", Zstd, z.Bytes())
}

func TestOldLz4HeaderChecksum(t *testing.T) {
	var c Compressor
	var d Decompressor
	packed := c.Compress(nil, []byte("text"), Lz4, 0)
	packed[6] = byte(xxh32(packed[:6]) >> 8) // as clients of format 0 computed it
	if _, err := decompress(&d, Lz4, packed, ordinary); !errors.Is(err, errLz4) {
		t.Errorf("wrong header checksum: %v", err)
	}
	if got, err := decompress(&d, Lz4, packed, legacy); err != nil || string(got) != "text" {
		t.Errorf("format 0: %q, %v", got, err)
	}
}

func TestXXH32(t *testing.T) {
	for text, want := range map[string]uint32{
		"": 0x02cc5d05, "a": 0x550d7456, "abc": 0x32d153ff, "Nobody inspects the spammish repetition": 0xe2293b2f,
	} {
		if got := xxh32([]byte(text)); got != want {
			t.Errorf("%q: %#x, want %#x", text, got, want)
		}
	}
}

func TestDamagedPayloads(t *testing.T) {
	var c Compressor
	var d Decompressor
	src := sample(20_000, 3)
	for _, codec := range allCodecs {
		good := c.Compress(nil, src, codec, 0)
		for _, cut := range []int{0, 1, 3, 7, 15, len(good) / 2, len(good) - 1} {
			got, err := decompress(&d, codec, good[:cut], ordinary)
			if err == nil && bytes.Equal(got, src) {
				t.Errorf("%s: %d of %d bytes are enough", codec, cut, len(good))
			}
		}
		rng := rand.New(rand.NewPCG(1, uint64(codec)))
		for range 100 {
			bad := bytes.Clone(good)
			bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
			if got, err := decompress(&d, codec, bad, ordinary); err == nil && len(got) > 10*len(src) {
				t.Errorf("%s: a flipped bit gives %d bytes", codec, len(got))
			}
		}
		// The buffers must be as good as new after all that.
		if got, err := decompress(&d, codec, good, ordinary); err != nil || !bytes.Equal(got, src) {
			t.Errorf("%s after damage: %v", codec, err)
		}
	}
}

func TestSnappyExtensionsAreRefused(t *testing.T) {
	// "aaaa", then a copy with offset 0, which means "the last offset" to our decoder and nothing to others.
	block := []byte{8, 3 << 2, 'a', 'a', 'a', 'a', 0x01, 0x00}
	if _, err := decompress(nil, Snappy, block, guarded); !errors.Is(err, errSnappy) {
		t.Errorf("a copy with offset 0: %v", err)
	}
	lying := append(binary.AppendUvarint(nil, 1<<31), 0, 'a')
	if _, err := decompress(nil, Snappy, lying, guarded); !errors.Is(err, errSnappy) {
		t.Errorf("a length that cannot be: %v", err)
	}
}

// bomb is size zeros, compressed as well as the codec can.
func bomb(t testing.TB, codec Codec, size int) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch codec {
	case Gzip:
		w, _ = gzip.NewWriterLevel(&out, 9)
	case Zstd:
		w, _ = zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	default:
		var c Compressor
		w = c.writer(codec, 0, &out)
	}
	zeros := make([]byte, 1<<20)
	for range size >> 20 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestBombsTakeBoundedMemory skips over 24 MiB of zeros in every codec.
func TestBombsTakeBoundedMemory(t *testing.T) {
	const size = 24 << 20
	for _, codec := range allCodecs {
		payload := bomb(t, codec, size)
		var d Decompressor
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := d.open(codec, payload, guarded)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.skip(size); err != nil {
			t.Fatalf("%s: %v", codec, err)
		}
		if done, err := s.finished(); !done || err != nil {
			t.Fatalf("%s: %v, %v", codec, done, err)
		}
		d.close(s)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 12<<20 {
			t.Errorf("%s: %d bytes of payload made us allocate %d MiB", codec, len(payload), used>>20)
		}
	}
}

// TestZstdOfEverySize decompresses frames on both sides of the size up to which that happens at once, each with one
// decompressor, so that every payload finds the buffer that the one before left.
func TestZstdOfEverySize(t *testing.T) {
	var d Decompressor
	plain := sample(wholeMax+1, 9)
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 1000, wholeMin, wholeMax, wholeMax + 1, 7} {
		streamed := streamedZstd(t, encoder, plain[:n])
		dense := bytes.Repeat([]byte{'x'}, n) // expands beyond the room that is made without a size
		for _, c := range []struct {
			name          string
			payload, want []byte
		}{
			{"with its size", encoder.EncodeAll(plain[:n], nil), plain[:n]},
			{"without", streamed, plain[:n]},
			{"two frames", append(encoder.EncodeAll(plain[:n], nil), streamed...), append(bytes.Clone(plain[:n]), plain[:n]...)},
			{"dense", encoder.EncodeAll(dense, nil), dense},
			{"dense, no size", streamedZstd(t, encoder, dense), dense},
			{"behind the first", append(encoder.EncodeAll(plain[:1], nil), encoder.EncodeAll(dense, nil)...), append(bytes.Clone(plain[:1]), dense...)},
		} {
			got, err := decompress(&d, Zstd, c.payload, guarded)
			if err != nil || !bytes.Equal(got, c.want) {
				t.Errorf("%d bytes %s: %d bytes, %v", n, c.name, len(got), err)
			}
			if n > 0 {
				if _, err := decompress(&d, Zstd, c.payload[:len(c.payload)-2], guarded); err == nil {
					t.Errorf("%d bytes %s: a cut payload is taken", n, c.name)
				}
			}
		}
	}
}

// A reader that has seen enough of a large payload leaves its stream; the decoder must do for the next payload, which is
// decompressed at once.
func TestZstdStreamLeftEarly(t *testing.T) {
	var d Decompressor
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	large, small := encoder.EncodeAll(sample(2*wholeMax, 1), nil), sample(1000, 2)
	for range 2 {
		s, err := d.open(Zstd, large, guarded)
		if err != nil {
			t.Fatal(err)
		}
		if chunk, err := s.source.next(); err != nil || len(chunk) == 0 {
			t.Fatal(len(chunk), err)
		}
		d.close(s)
		if got, err := decompress(&d, Zstd, encoder.EncodeAll(small, nil), guarded); err != nil || !bytes.Equal(got, small) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
}

// streamedZstd compresses without saying the size.
func streamedZstd(t *testing.T, encoder *zstd.Encoder, plain []byte) []byte {
	var out bytes.Buffer
	encoder.Reset(&out)
	_, err := encoder.Write(plain)
	if err := errors.Join(err, encoder.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestZstdWindowsAreBounded(t *testing.T) {
	for _, exponent := range []byte{18, 21, 31} { // windows of 256 MiB, 2 GiB, 2 TiB
		frame := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3}, 1, 0, 0)
		if got, err := decompress(nil, Zstd, frame, guarded); err == nil {
			t.Errorf("a window of 2^%d bytes is taken: %d bytes", 10+exponent, len(got))
		}
	}
	single := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xe0}, binary.LittleEndian.AppendUint64(nil, 1<<40)...)
	if _, err := decompress(nil, Zstd, append(single, 1, 0, 0), guarded); err == nil {
		t.Error("a frame that claims 1 TiB of content is taken")
	}
}

func TestCodecNames(t *testing.T) {
	for c := None; c <= Zstd; c++ {
		if got, err := ParseCodec(c.String()); err != nil || got != c {
			t.Errorf("%s: %v, %v", c, got, err)
		}
	}
	if c, err := ParseCodec("uncompressed"); c != None || err != nil {
		t.Errorf("uncompressed: %v, %v", c, err)
	}
	if _, err := ParseCodec("producer"); err == nil || Codec(5).Known() || !strings.Contains(Codec(5).String(), "5") {
		t.Error("unknown codecs are known")
	}
}

func BenchmarkDecompress(b *testing.B) {
	var c Compressor
	src := sample(256<<10, 5)
	for _, codec := range allCodecs {
		payload := c.Compress(nil, src, codec, 0)
		b.Run(codec.String(), func(b *testing.B) {
			var d Decompressor
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				s, err := d.open(codec, payload, guarded)
				if err != nil {
					b.Fatal(err)
				}
				if err := s.skip(len(src)); err != nil {
					b.Fatal(err)
				}
				d.close(s)
			}
		})
	}
}

func BenchmarkCompress(b *testing.B) {
	src := sample(256<<10, 5)
	for _, codec := range allCodecs {
		b.Run(codec.String(), func(b *testing.B) {
			var c Compressor
			var dst []byte
			b.SetBytes(int64(len(src)))
			b.ReportAllocs()
			for b.Loop() {
				dst = c.Compress(dst[:0], src, codec, 0)
			}
		})
	}
}
