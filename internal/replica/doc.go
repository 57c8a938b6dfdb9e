// Package replica is this broker's partitions: it leads them in the epochs that the controller gives,
// appends, reads, and lets requests wait for a watermark.
//
// One lock a partition guards its leadership and its appends; it is a one-slot channel, since a file is
// written while it is held. Reads take no lock. Who waits for something to happen does so in one of two
// ways: a [Partition.Wait] for the high watermark to cover an append, and a [Watcher] that is told which
// of many partitions got new records, so that a long poll over a thousand partitions costs an append to
// one of them nothing but a flag.
//
// # A partition's life
//
//	not leading ── LeaderAndIsr names this broker, in an epoch above all that the log holds ──▶ leading
//	leading ────── LeaderAndIsr, the next epoch: waits for commits of the old one fail ───────▶ leading
//	leading ────── LeaderAndIsr names another, StopReplica, no log, a panic under the lock ───▶ not leading
//
// Requests carry no state of it: each looks at [Partition.CheckLeader], and an append looks again under
// the lock. While a partition does not lead, requests get the reason as their error.
//
// # What makes acks=all safe
//
// A wait names the epoch that its append was made in. Whatever ends the leadership of that epoch, even for
// the next epoch of this same broker, fails the wait before anything else can happen to the log: in
// between another leader may have cut the record and written others at its offset, which would then pass for
// it once the watermark moved.
package replica
