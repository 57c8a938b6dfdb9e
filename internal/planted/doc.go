// Package planted names bugs that replication must not have, and plants one of them where a test asks for it: a
// simulator that finds nothing proves something only if it finds these.
//
//	go test -tags planted ./internal/sim -run TestPlantedBugsAreFound
//	BARNABAS_PLANTED='open shard' go test -tags planted ./internal/sim -run TestSeeds -seed 1 -seeds 50
//
// Each has a kind of faults in the simulator that tells its story. With only those faults the first or the second seed
// finds it, from 1, 1001, 2001 and 3001 on; SameEpoch, whose brokers are killed with no story behind it, took up to four.
//
// Without the build tag there are none, and the compiler leaves nothing of the places that ask.
package planted

// Bug is one of them.
type Bug string

// The bugs, each with what it loses.
const (
	// EarlyAck acknowledges when the watermark has reached a record's offset, and not passed it: the record is
	// not on all in-sync replicas yet.
	EarlyAck Bug = "early ack"
	// SameEpoch lets a broker that has restarted lead on in the epoch that it led before: one epoch has two
	// histories.
	SameEpoch Bug = "same epoch"
	// WatermarkCut cuts a follower's log to its own watermark, which lags behind the leader's: committed records
	// go with the next leader.
	WatermarkCut Bug = "watermark cut"
	// OldLife takes a replica into the in-sync set for what an earlier life of its broker had.
	OldLife Bug = "old life"
	// StaleEligible keeps replicas eligible as leaders while records are committed without them: the leader neither waits
	// until they are forgotten nor asks for that, and the controller keeps them when the in-sync set grows again.
	StaleEligible Bug = "stale eligible"
	// OpenShard lets a coordinator answer from records that may still be cut.
	OpenShard Bug = "open shard"
)
