// Package admin is what one can ask of a Kafka-compatible cluster and do to it, as operations over a
// franz-go client: topics, configurations, groups, offsets, log directories, records in and out.
//
// It prints nothing. An operation that concerns several things returns one result for each, with the
// error of that one; the error of the operation itself means that nothing is known about any of them.
// A thing's error is a *kerr.Error, or a [DetailedError] where the broker said more than the code.
//
// Connections are made when first needed, and only metadata that the operation needs is asked for. What a
// broker does not know yet (the eligible leader replicas of a topic, groups of the consumer protocol) is
// left out where the rest can still be told.
//
// # Reading to the end
//
// A [Reading] has an end for each partition, taken when it was planned, so that it ends on a topic that is
// written to all the time. The last record before an end may be missing: a transaction's marker stands
// there, compaction has taken a tombstone away, or records were deleted. A marker is seen by keeping
// control records; for the rest, a partition is done when its leader has answered several fetches in a row
// without a record, since a leader with a record before the end would have sent it.
package admin
