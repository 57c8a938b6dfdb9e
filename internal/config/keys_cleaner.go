package config

// cleanerKeys steer compaction.
var cleanerKeys = []Key{
	{Name: "log.cleaner.backoff.ms", Type: Long, Default: new("15000"), Rule: atLeast(0), Dynamic: ClusterWide,
		Doc: "Milliseconds to wait before looking again when no log needs compaction."},
	{Name: "log.cleaner.dedupe.buffer.size", Type: Long, Default: new("134217728"), Dynamic: ClusterWide,
		Doc: "Memory for the map of keys, over all threads of compaction."},
	{Name: "log.cleaner.delete.retention.ms", Type: Long, Default: new("86400000"), Rule: atLeast(0), Dynamic: ClusterWide,
		Doc: "Milliseconds that a tombstone stays in a compacted log. A consumer that starts at the beginning must get through within it to see every deletion."},
	{Name: "log.cleaner.enable", Type: Boolean, Default: new("true"),
		Doc: "Whether logs are compacted at all. Without it, compacted topics grow without end, the offsets topic too."},
	{Name: "log.cleaner.io.buffer.load.factor", Type: Double, Default: new("0.9"), Dynamic: ClusterWide,
		Doc: "How full the map of keys may get. More cleans more at once, with more collisions."},
	{Name: "log.cleaner.io.buffer.size", Type: Int, Default: new("524288"), Rule: atLeast(0), Dynamic: ClusterWide,
		Doc: "Memory for reading and writing, over all threads of compaction."},
	{Name: "log.cleaner.io.max.bytes.per.second", Type: Double, Default: new("1.7976931348623157E308"), Dynamic: ClusterWide,
		Doc: "Most bytes per second that compaction reads and writes, on average."},
	{Name: "log.cleaner.max.compaction.lag.ms", Type: Long, Default: new("9223372036854775807"), Rule: atLeast(1), Dynamic: ClusterWide,
		Doc: "Milliseconds after which a record of a compacted topic must be compacted, however little is dirty."},
	{Name: "log.cleaner.min.cleanable.ratio", Type: Double, Default: new("0.5"), Rule: between(0, 1), Dynamic: ClusterWide,
		Doc: "Share of a log that must be dirty before it is compacted, unless the maximum lag demands it."},
	{Name: "log.cleaner.min.compaction.lag.ms", Type: Long, Default: new("0"), Rule: atLeast(0), Dynamic: ClusterWide,
		Doc: "Milliseconds that a record stays uncompacted at least."},
	{Name: "log.cleaner.threads", Type: Int, Default: new("1"), Rule: atLeast(0), Dynamic: ClusterWide,
		Doc: "Threads that compact logs."},
}
