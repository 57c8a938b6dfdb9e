package group

import (
	"math"
	"unicode/utf16"
)

// PartitionFor is the partition of __consumer_offsets that holds a group: the absolute value of Java's hash of
// the group id (0 for the one that has none, the smallest int32), modulo the number of partitions. Every
// broker, and many a tool, computes it.
//
// It is Kafka's Utils.abs(hash) % n. Were it anything else, an adopted __consumer_offsets would have its groups
// in partitions where nobody looks for them.
func PartitionFor(group string, partitions int32) int32 {
	hash := javaHash(group)
	switch {
	case hash == math.MinInt32:
		return 0
	case hash < 0:
		hash = -hash
	}
	return hash % partitions
}

// javaHash is java.lang.String.hashCode, which runs over UTF-16.
func javaHash(text string) int32 {
	var hash int32
	for _, r := range text {
		if r <= 0xffff {
			hash = 31*hash + r
			continue
		}
		high, low := utf16.EncodeRune(r)
		hash = 31*(31*hash+high) + low
	}
	return hash
}

// javaLength is java.lang.String.length: the number of UTF-16 units.
func javaLength(text string) int {
	n := 0
	for _, r := range text {
		if n++; r > 0xffff {
			n++
		}
	}
	return n
}
