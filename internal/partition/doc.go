// Package partition is the leader and the follower of one partition as pure machines: no goroutine, clock,
// lock, disk or socket. The driver (package replica) calls them under the partition's lock, tells them what
// happened and when, and does what they answer. Times are durations on a clock of the driver's that never
// goes back.
//
// # The leader
//
// A [Leader] lives for one leader epoch. It knows how far each follower is, from the offset that the follower
// fetches: whoever fetches from offset 8 has everything below 8. The high watermark is exclusive, and the
// smallest of these positions among the replicas that may count as in sync; records below it are committed.
//
//	in-sync replicas   1: ........|        log end 8, the leader
//	                   2: .....|           fetches from 5
//	high watermark          5 ─┘           offsets 0..4 are committed
//
// Who is in sync is decided by the controller, on the leader's proposal (AlterPartition, one at a time):
//
//	                         ┌─ taken ─────────────▶ the new set counts
//	propose ─▶ in flight ────┼─ refused ───────────▶ the old set counts, a later proposal may follow
//	                         ├─ no answer ─────────▶ the same again, since it may have been carried out
//	                         └─ epoch is over ─────▶ silence until the controller speaks, for a while
//
// While it is in flight the watermark asks for the members of both sets, because the controller may count by
// either: a record that only one of the sets has could be lost in an election by the other one.
//
// The watermark moves only
//
//   - on positions that were reported in this leader epoch: an older one may be of a log that has been cut since;
//   - with at least min.insync.replicas members;
//   - not while the controller holds replicas outside of the set for eligible to lead, because they left it when
//     nothing was committed without them (KIP-966). When the minimum is lowered, or the set has grown, the leader
//     proposes its unchanged set, and commits once the controller has answered that it holds nobody any more.
//
// A replica outside of the set that keeps up holds the watermark, too: otherwise the watermark would run ahead
// of it with every append, and it could never join.
//
// # The follower
//
// A [Follower] fetches from its log end, and names the epoch of its last record. Where the leader's log has
// another history, the leader answers where that epoch ended there (KIP-320, KIP-595), and the follower cuts.
// It never cuts because of a watermark, and refuses to cut below its own: what lies there was committed, so that
// only a leader that was elected uncleanly may lack it.
//
//	follower  epochs 1 1 1 3 3|        last record of epoch 3
//	leader    epochs 1 1 1 1 4 4|      "no 3 here; the epoch before it, 1, ended at 4"
//	follower  epochs 1 1 1|            its own epoch 1 ended at 3, so 3 is where both agree at most
//
// Records of formats 0 and 1 have no epoch. A log that ends with them is compared with the leader's from the watermark on
// (see package replica), and cut where the two differ.
package partition
