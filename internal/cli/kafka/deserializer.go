package kafka

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
)

// deserializer reads bytes as one of Kafka's serializers wrote them, into the text that Java prints.
type deserializer func([]byte) (string, error)

// deserializerOf is the deserializer of a Java class; nil leaves the bytes as they are. A class of
// somebody else's cannot be run here.
//
//	String, ByteArray, Bytes, ByteBuffer   as they are
//	Short, Integer, Long                   2, 4, 8 bytes, big-endian, two's complement
//	Float, Double                          4, 8 bytes, IEEE 754
//	Boolean                                1 byte
//	UUID                                   its text
//
// A size that does not fit is an error of the record, which --skip-message-on-error passes over.
func deserializerOf(class string) (deserializer, error) {
	switch simpleName(class) {
	case "", "StringDeserializer", "ByteArrayDeserializer", "BytesDeserializer", "ByteBufferDeserializer":
		return nil, nil
	case "ShortDeserializer":
		return sizedNumber("ShortDeserializer", 2, func(b []byte) string { return strconv.Itoa(int(int16(binary.BigEndian.Uint16(b)))) }), nil
	case "IntegerDeserializer":
		return sizedNumber("IntegerDeserializer", 4, func(b []byte) string { return strconv.Itoa(int(int32(binary.BigEndian.Uint32(b)))) }), nil
	case "LongDeserializer":
		return sizedNumber("LongDeserializer", 8, func(b []byte) string { return strconv.FormatInt(int64(binary.BigEndian.Uint64(b)), 10) }), nil
	case "FloatDeserializer":
		return sizedNumber("Deserializer", 4, func(b []byte) string {
			return javaFloat(float64(math.Float32frombits(binary.BigEndian.Uint32(b))), 32)
		}), nil
	case "DoubleDeserializer":
		return sizedNumber("Deserializer", 8, func(b []byte) string { return javaFloat(math.Float64frombits(binary.BigEndian.Uint64(b)), 64) }), nil
	case "BooleanDeserializer":
		return sizedNumber("BooleanDeserializer", 1, func(b []byte) string { return strconv.FormatBool(b[0] == 1) }), nil
	case "UUIDDeserializer":
		return func(b []byte) (string, error) { return strings.ToLower(string(b)), nil }, nil
	case "VoidDeserializer":
		return func([]byte) (string, error) { return "", sentence("Data should be null for a VoidDeserializer.") }, nil
	}
	return nil, usagef("There is no deserializer %s here: only Kafka's own are", class)
}

// sizedNumber reads numbers of a fixed size.
func sizedNumber(name string, size int, read func([]byte) string) deserializer {
	return func(b []byte) (string, error) {
		if len(b) != size {
			return "", sentencef("Size of data received by %s is not %d: %s", name, size, hex.EncodeToString(b))
		}
		return read(b), nil
	}
}

// javaFloat writes a number as Java does: at least one decimal, an exponent only for very small and very
// large ones.
func javaFloat(x float64, bits int) string {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	case x == 0:
		if math.Signbit(x) {
			return "-0.0"
		}
		return "0.0"
	}
	if size := math.Abs(x); size >= 1e-3 && size < 1e7 {
		text := strconv.FormatFloat(x, 'f', -1, bits)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	}
	text := strconv.FormatFloat(x, 'E', -1, bits)
	mantissa, exponent, _ := strings.Cut(text, "E")
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	n, _ := strconv.Atoi(exponent)
	return mantissa + "E" + strconv.Itoa(n)
}
