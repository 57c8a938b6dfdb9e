// Package logdir keeps all logs of one broker: its directories with their locks, identities and
// checkpoints, a disk that fails, and the work in the background.
//
// A log directory is Kafka's:
//
//	data/
//	├ .lock                             held by the running broker; stays behind
//	├ meta.properties                   whose directory this is; see [Identity]
//	├ .kafka_cleanshutdown              all logs were flushed and closed; gone while a broker runs
//	├ recovery-point-offset-checkpoint  below this offset a log is on the disk for certain
//	├ log-start-offset-checkpoint       where a log starts, if not at its first segment (DeleteRecords)
//	├ replication-offset-checkpoint     high watermarks
//	├ cleaner-offset-checkpoint         up to where a log is compacted
//	├ topic-0/                          a partition
//	├ topic-1.<32 hex>-future/          a copy that catches up to replace a partition in another directory
//	├ topic-2.<32 hex>-delete/          a deleted partition; its files go after file.delete.delay.ms
//	├ topic-3.<32 hex>-stray/           a partition that nobody knows, kept aside
//	├ .barnabas-boot                    in which kernel boot the directory was last written, see below
//	└ .barnabas-directories             in the directory of metadata.log.dir: where the others are
//
// lost+found, __cluster_metadata-0 and whatever else does not look like a partition are left alone.
//
// # What is trusted after a stop
//
// The marker .kafka_cleanshutdown means that nothing needs a look. Without it, the kernel's boot id decides:
// if it is the one in .barnabas-boot, only the process died, and every write that it completed is in the
// page cache or on the disk; then only the tails of logs are looked at before they serve, and what lies
// behind the recovery point is read and checked in the background. After another boot everything behind
// the recovery point is checked first. .barnabas-boot is text:
//
//	version=0
//	boot.id=<the kernel's boot id>
//	path=<the directory, so that a copy of it is not trusted>
//	suspect=<folder of a partition that was found damaged, and is not trusted whatever else is said>
//	unheard=true                     records may have been lost, and no controller has written that down yet
//
// Both files of ours are files, since Kafka refuses a log directory with a folder that it does not know.
//
// # Failing
//
// An I/O error fences its directory: its logs are closed without another write, their partitions answer
// KAFKA_STORAGE_ERROR, the directory's path is sent on [Set.Failed], and nothing is written to it until a
// restart. A damaged log fences its partition alone. A full volume fences nothing.
package logdir
