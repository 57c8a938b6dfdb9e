// Package metadata is the image of the cluster: brokers, topics, partitions and configurations as one
// immutable value, and the deltas between two images.
//
// Whoever holds an [Image] may read it without a lock for as long as it likes. A change makes a new image
// that shares everything untouched with the old one:
//
//	Image ── topics ──▶ [256]shard ──▶ map name → *Topic ──▶ []*Partition
//	      ├─ ids ─────▶ [256]shard ──▶ map id → *Topic
//	      ├─ configs ─▶ [256]shard ──▶ map entity → map key → value
//	      └─ brokers ─▶ map id → *Broker
//
// One changed partition copies one shard, the pointers of its topic's partitions and one partition, so a
// change in a cluster of 100,000 partitions costs microseconds, and lookups are two map accesses.
//
// Two images that descend from one another differ exactly where their pointers do; [Diff] and
// [Image.With] say where as a [Delta].
package metadata
