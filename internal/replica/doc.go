// Package replica is this broker's partitions: it leads them in the epochs that the controller gives,
// appends, reads, and lets requests wait for a watermark.
//
// One lock a partition guards its leadership and its appends; it is a one-slot channel, since a file is
// written while it is held, though not synced where it leads. Reads take no lock. Who waits for something to
// happen does so in one of two ways: a [Partition.Wait] for the high watermark to cover an append, and a
// [Watcher] that is told which of many partitions got new records, so that a long poll over a thousand
// partitions costs an append to one of them nothing but a flag.
//
// # A partition's life
//
//	not leading ── LeaderAndIsr names this broker, in an epoch above all that the log holds ──▶ leading
//	leading ────── LeaderAndIsr, the epoch after the present one ─────────────────────────────▶ leading, unbroken
//	leading ────── LeaderAndIsr, a later epoch: waits for commits of the old one fail ────────▶ leading
//	leading ────── LeaderAndIsr names another ────────────────────────────────────────────────▶ following
//	either ─────── StopReplica, no log, a failed disk, a panic under the lock ────────────────▶ neither
//
// Requests carry no state of it: each looks at [Partition.CheckLeader], and an append looks again under
// the lock. While a partition does not lead, requests get the reason as their error.
//
// # What makes acks=all safe
//
// A wait names the epoch that its append was made in. Whatever breaks the leadership since that epoch fails
// the wait before anything else can happen to the log: in between another leader may have cut the record and
// written others at its offset, which would then pass for it once the watermark moved. The very next epoch of
// the same leader does not break it, since nobody else can have led in between.
//
// # Followers
//
// What a leader and a follower decide is in package partition; here is what carries it out.
//
//	leader                                         follower
//	api: Fetch ─▶ Followed ─▶ partition.Leader     fetchers ─▶ fetcher ── Fetch ──▶ the leader
//	                │ watermark     │ proposal         ▲            └─▶ replicate ─▶ partition.Follower
//	                ▼               ▼                  │                              append, cut, halt
//	             waiters    AlterPartition ─▶ controller ─▶ Apply
//
// Appends wake the followers that wait for records; they fetch them, and their next fetch says that they have
// them. A follower appends only what it has checked, and cuts only where the leader's epochs say so.
package replica
