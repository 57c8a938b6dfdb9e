// Package protocol is the vocabulary: offsets, epochs and ids as distinct types that cannot be mixed by
// accident, topic names and ids, and errors as values that carry Kafka's error code.
package protocol
