package group

import "unicode/utf16"

// PartitionFor is the partition of __consumer_offsets that holds a group: Java's hash of the group id without
// its sign, modulo the number of partitions. Every broker, and many a tool, computes it.
func PartitionFor(group string, partitions int32) int32 {
	return int32(uint32(javaHash(group))&0x7fffffff) % partitions
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
