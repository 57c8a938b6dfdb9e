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
// offset; appends publish in the opposite order. A segment's open file is counted: a [Slice] keeps it open
// while retention, truncation or compaction take the segment away.
//
// Only the log file is written by every append. Index entries gather in memory and go to their files with
// every MiB of log, at a roll, a flush and a close; after a crash they are rebuilt from the log.
package log
