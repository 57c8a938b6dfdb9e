// Package log keeps one partition on disk, in Apache Kafka's exact format: segments, their indexes, leader
// epochs and producer state; append, read, truncate, retain, compact, recover.
//
// A partition is a directory:
//
//	topic-0/
//	├ 00000000000000000000.log        segment: batches one behind the other; the name is its base offset
//	├ 00000000000000000000.index      sparse offset index of that segment
//	├ 00000000000000000000.timeindex  sparse time index
//	├ 00000000000000000000.txnindex   aborted transactions; only where there are any
//	├ 00000000000000004711.log        the active segment: the one with the highest base offset
//	├ 00000000000000004711.snapshot   producer state before offset 4711
//	├ leader-epoch-checkpoint         where each leader's records begin
//	└ partition.metadata              the topic's id
//
// Suffixes on segment files: ".cleaned" is unfinished work of the log cleaner, ".swap" its finished work
// that was being renamed, ".deleted" waits for file.delete.delay.ms.
//
// Offset index, big-endian, one entry per index.interval.bytes (4096) of log. Binary search for the
// greatest entry at or below an offset, then a walk over batch headers from its position:
//
//	0 offset    int32   the last offset of a batch, less the segment's base offset
//	4 position  int32   where that batch begins in the segment
//
// Time index, written with the same entries, timestamps rising:
//
//	0 timestamp int64   the largest so far in the segment, in ms
//	8 offset    int32   the last offset of the first batch that had it, less the base offset
//
// Transaction index, in the order of the markers:
//
//	0 version   int16   0
//	2 producer  int64
//	10 first    int64   offset of the transaction's first record here
//	18 last     int64   offset of its abort marker
//	26 stable   int64   last stable offset once the marker was there
//
// Producer snapshot (Kafka's ProducerSnapshot, version 1):
//
//	0 version   int16   1
//	2 CRC       uint32  Castagnoli, over what follows
//	6 count     int32
//	10 entries, 46 bytes each: producer id int64 | epoch int16 | last sequence int32 | last offset int64 |
//	   offset delta int32 | timestamp int64 | coordinator epoch int32 | first offset of the transaction int64
//
// leader-epoch-checkpoint is text: version 0, the number of entries, then "epoch startOffset" a line.
// partition.metadata is text: "version: 0", "topic_id: <base64>", without a newline at its end.
//
// # Order of things
//
// One append lock a partition (a one-slot channel) orders everything that changes the log; it may span file
// I/O. Reads take no lock. They load the list of segments, then a segment's published size, then the log end
// offset; appends publish in the opposite order, so that what the size covers is never beyond the end. A
// segment's open file is counted: a [Slice] keeps it open while retention, truncation or compaction take the
// segment away. A segment that is taken away is marked gone before its files are renamed, and whoever opens a
// file looks at the mark afterwards: another segment may have the name by then.
//
//	lock         held by                             may be taken under it
//	compacting   Compact                             appending
//	flushing     Flush, Sync                         appending
//	appending    appends, rolls, truncation …        loading, and the short ones
//	loading      who reads an index into memory      the short ones
//
// The short ones are those of the [FileCache] and of the open transactions: memory only.
//
// # What is durable when
//
// Only the log file is written by every append, and nothing is synced by it unless flush.messages asks. Index
// entries gather in memory and go to their files with every MiB of log from 4 MiB on, at a roll, a flush and a close.
//
//	Flush       data of all segments from the recovery point on, then indexes and snapshots of the closed
//	            ones, leader epochs, names; then the recovery point moves. A producer snapshot is written at
//	            the new recovery point, not synced: its CRC tells whether it is whole
//	roll        nothing; but if the segment before has not got a durable name yet, the directory, so that at
//	            most the last segment can be missing; and the old segment where the topic is compacted,
//	            since then a hole at its end would not be noticed
//	truncation  the cut file; before that each segment that goes, the highest first; snapshots that go
//	retention   each segment that goes, the lowest first
//	compaction  see below
//	close       everything
//
// # Recovery
//
// How much Open checks depends on how the log was left ([Trust]). Clean believes the last index entries.
// SameBoot knows that completed writes are there: it goes through the tail behind the last index entry.
// Scan follows a possible power cut: above the recovery point, any page and any name may be missing.
//
//	file   ┌──────────────┬───────────────┬────────┬─────────┐
//	       │ synced       │ good batches  │  bad   │    ?    │
//	       └──────────────┴───────────────┴────────┴─────────┘
//	               recovery point      log end offset
//
// Where the batches stop being good, what stands behind decides. Nothing whole: a torn tail, which is cut.
// Whole batches: damage, a [DamageError], and nothing is cut; unless, after a power cut, the bad batch lacks a
// page or the rest of its file, or the segment ends before the next begins: then what is behind was never
// promised, and is cut too, so that the log stays a prefix of what was appended.
//
// A batch's leader epoch is outside its CRC. One that stands out between its neighbours is put right, from
// leader-epoch-checkpoint or from them. Side files carry no checksum but the snapshots'; indexes are compared
// with the batches that they name when they are first used, and rebuilt where they are wrong.
//
// # Compaction
//
// [Log.Compact] reads the segments twice. First it learns the newest offset of each key in the part that was
// not compacted yet, in a map of bounded size; a full map ends that part early. Then it copies what stays,
// group by group of segments that together fill one:
//
//	1  write X.log.cleaned and its indexes; sync them and the directory
//	2  rename ".cleaned" to ".swap", the log file last; sync the directory. From here a restart goes on:
//	   while a ".cleaned" is there, ".swap" files are removed; afterwards they replace what they cover
//	3  rename the old segments to ".deleted"; sync the directory
//	4  drop ".swap"; readers get the new list
//
// Steps 2 to 4 are under the append lock. If the log was truncated since the beginning, the copy is dropped.
package log
