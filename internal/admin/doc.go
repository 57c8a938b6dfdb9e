// Package admin is what one can ask of a Kafka-compatible cluster and do to it, as operations over a
// franz-go client: topics, configurations, groups, offsets, log directories, records in and out.
//
// It prints nothing. An operation that concerns several things returns one result for each, with the
// error of that one; the error of the operation itself means that nothing is known about any of them.
// A thing's error is a *kerr.Error, or a [DetailedError] where the broker said more than the code.
//
// Connections are made when first needed, and only metadata that the operation needs is asked for.
package admin
