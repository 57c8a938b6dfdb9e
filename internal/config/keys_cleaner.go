package config

// cleanerKeys steer compaction.
var cleanerKeys = []Key{
	{Name: "log.cleaner.backoff.ms", Type: Long, Default: new("15000"), Rule: atLeast(0), Dynamic: ClusterWide,
		Doc: ""},
	{Name: "log.cleaner.dedupe.buffer.size", Type: Long, Default: new("134217728"), Dynamic: ClusterWide,
		Doc: ""},
	{Name: "log.cleaner.delete.retention.ms", Type: Long, Default: new("86400000"), Rule: atLeast(0), Dynamic: ClusterWide,
		Doc: ""},
	{Name: "log.cleaner.enable", Type: Boolean, Default: new("true"),
		Doc: ""},
	{Name: "log.cleaner.io.buffer.load.factor", Type: Double, Default: new("0.9"), Dynamic: ClusterWide,
		Doc: ""},
	{Name: "log.cleaner.io.buffer.size", Type: Int, Default: new("524288"), Rule: atLeast(0), Dynamic: ClusterWide,
		Doc: ""},
	{Name: "log.cleaner.io.max.bytes.per.second", Type: Double, Default: new("1.7976931348623157E308"), Dynamic: ClusterWide,
		Doc: ""},
	{Name: "log.cleaner.max.compaction.lag.ms", Type: Long, Default: new("9223372036854775807"), Rule: atLeast(1), Dynamic: ClusterWide,
		Doc: ""},
	{Name: "log.cleaner.min.cleanable.ratio", Type: Double, Default: new("0.5"), Rule: between(0, 1), Dynamic: ClusterWide,
		Doc: ""},
	{Name: "log.cleaner.min.compaction.lag.ms", Type: Long, Default: new("0"), Rule: atLeast(0), Dynamic: ClusterWide,
		Doc: ""},
	{Name: "log.cleaner.threads", Type: Int, Default: new("1"), Rule: atLeast(0), Dynamic: ClusterWide,
		Doc: ""},
}
