// Package replica is this broker's partitions: it leads them in the epochs that the controller gives,
// appends, reads, and lets requests wait for a watermark.
//
// One lock a partition guards its leadership and its appends; it is a one-slot channel, since a file is
// written while it is held. Reads take no lock. Who waits for something to happen does so in one of two
// ways: a [Partition.Wait] for the high watermark to cover an append, and a [Watcher] that is told which
// of many partitions got new records, so that a long poll over a thousand partitions costs an append to
// one of them nothing but a flag.
package replica
