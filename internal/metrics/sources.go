package metrics

import (
	"context"
	"iter"
	"time"

	"github.com/barnabas-mq/barnabas/internal/server"
)

// Options are what a [Registry] reads. Sources that are nil, and what they would give, are left out. They
// are called at each scrape, at most two at a time, from goroutines of their own.
type Options struct {
	// Version is the program's, and ClusterID and BrokerID who it is.
	Version, ClusterID string
	BrokerID           int32
	// Server is the network's counters.
	Server func() server.Stats
	// Topics is the traffic by topic.
	Topics func() iter.Seq[Topic]
	// Partitions are the replicas on this broker.
	Partitions func() iter.Seq[Partition]
	// Directories are the log directories.
	Directories func() iter.Seq[Directory]
	// Groups are the groups that this broker coordinates.
	Groups func(context.Context) iter.Seq[Group]
	// Cluster is what this broker knows of the cluster.
	Cluster func() Cluster
	// Replication is how this broker follows and is followed.
	Replication func() Replication
	// Store is how this broker stands with the store of the cluster's metadata.
	Store func() Store
	// SeriesLimit bounds the topics, the partitions, the groups and the offsets of groups, each by itself;
	// 0 means DefaultSeriesLimit.
	SeriesLimit int
	// PartitionNames adds Kafka's and kafka_exporter's names for single partitions.
	PartitionNames bool
	// Panicked is told of a source that panicked; its metrics are missing in that scrape. It may be nil.
	Panicked func(source string, cause any, stack []byte)
}

// DefaultSeriesLimit is the largest cluster that is promised to work: 10,000 partitions.
const DefaultSeriesLimit = 10_000

// Topic is the traffic of one topic through this broker. The numbers only rise.
type Topic struct {
	Name string
	// BytesIn and RecordsIn are what producers appended; BytesOut and RecordsOut what consumers were sent.
	// RecordsOut below zero says that nobody counts them: fetched batches are not looked into.
	BytesIn, RecordsIn, BytesOut, RecordsOut int64
	// FailedProduces and FailedFetches count refused partitions of requests.
	FailedProduces, FailedFetches int64
}

// Partition is one replica on this broker.
type Partition struct {
	Topic     string
	Partition int32
	// Size is the log's bytes on disk. The offsets are Kafka's; all but Start are exclusive.
	Size                      int64
	Start, HighWatermark, End int64
	// Leads says that this broker is the leader, Preferred that it should be. Leader is who is, -1 nobody.
	Leads, Preferred bool
	Leader           int32
	// Replicas, InSync and MinInSync are counts; they hold where Leads. Replicas that are being added count in InSync only,
	// as in Kafka.
	Replicas, InSync, MinInSync int
	// Offline says that the log cannot be used.
	Offline bool
}

// Directory is one log directory.
type Directory struct {
	Path   string
	Online bool
	// Total and Free are the volume's bytes.
	Total, Free uint64
}

// Group is one group that this broker coordinates.
type Group struct {
	Name, State string
	Members     int
	Offsets     []GroupOffset
}

// GroupOffset is how far a group is in one partition.
type GroupOffset struct {
	Topic     string
	Partition int32
	// Committed is where it goes on reading.
	Committed int64
	// Lag is how many records it has not read, below zero where this broker does not know (another one leads
	// the partition); Behind is for how long the first of them has been there, below zero likewise.
	Lag    int64
	Behind time.Duration
}

// Cluster is what a broker knows of the cluster.
type Cluster struct {
	// Brokers are the living ones.
	Brokers []Broker
	// ControllerEpoch is that of the newest controller that this broker has heard.
	ControllerEpoch int32
	// Controller says that this broker is the active controller. Topics, Partitions, Offline (without a leader), Astray
	// (not led by the preferred replica), Moving (being reassigned) and Awaited (for which an unclean election will be
	// held) are shown by it alone.
	Controller                                           bool
	Topics, Partitions, Offline, Astray, Moving, Awaited int
	// Elections and Unclean count the leaders that this broker has elected as controller since its start, and those of
	// them that may lack acknowledged records.
	Elections, Unclean int64
}

// Broker is one living broker.
type Broker struct {
	ID      int32
	Address string
}

// Lag is how many records are between what a group has committed and the high watermark. What retention or
// a DeleteRecords has taken away is not waited for; and after an unclean election a commit may be ahead.
func Lag(committed, start, highWatermark int64) int64 {
	return max(highWatermark-max(committed, start), 0)
}
