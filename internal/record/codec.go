package record

import "fmt"

// Codec is a compression type by its number in a batch's attributes.
type Codec int8

// The codecs; Zstd came with Kafka 2.1 (KIP-110).
const (
	None Codec = iota
	Gzip
	Snappy
	Lz4
	Zstd
)

// String is the name in the property compression.type.
func (c Codec) String() string {
	switch c {
	case None:
		return "none"
	case Gzip:
		return "gzip"
	case Snappy:
		return "snappy"
	case Lz4:
		return "lz4"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("codec %d", int8(c))
}

// ParseCodec reads a codec's name as the property compression.type has it; "uncompressed" is none's other
// name there. "producer" is not a codec, see [Validation].
func ParseCodec(name string) (Codec, error) {
	if name == "uncompressed" {
		return None, nil
	}
	for c := None; c <= Zstd; c++ {
		if c.String() == name {
			return c, nil
		}
	}
	return None, fmt.Errorf("unknown compression type %q", name)
}

// Known reports whether c is a codec at all.
// Three bits can name eight codecs; 5 to 7 have no meaning yet.
func (c Codec) Known() bool { return c >= None && c <= Zstd }
