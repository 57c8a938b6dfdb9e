package log

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Trust says what Open may believe of a directory.
type Trust int

// How the log was left.
const (
	// Clean: it was closed with CloseClean, and nothing has written since. Nothing is checked.
	Clean Trust = iota
	// SameBoot: the process was killed, the kernel ran on. Completed writes are there, so only the tail of
	// the active segment behind its last index entry is checked; call Verify for the rest.
	SameBoot
	// Scan: the power may have failed. Everything from the recovery point on is checked.
	Scan
)

// String names the trust for logs.
func (t Trust) String() string {
	return [...]string{"clean", "same boot", "scan"}[t]
}

// Options say which log to open and how.
type Options struct {
	// FS holds the files.
	FS vfs.FS
	// Dir is the partition's directory; it is made where it is missing.
	Dir string
	// Partition names the partition, in errors and logs.
	Partition protocol.TopicPartition
	// TopicID is written to partition.metadata where that is missing. A directory with another id is
	// refused with INCONSISTENT_TOPIC_ID. The zero id leaves the file alone.
	TopicID protocol.TopicID
	// Config are the topic's effective settings; see SetConfig.
	Config config.Topic
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
	// Files bounds open files; nil means a small cache for this log alone.
	Files *FileCache
	// RecoveryPoint, StartOffset and HighWatermark are what the directory's checkpoints say; NoOffset
	// where they say nothing. Below the recovery point the log was synced.
	RecoveryPoint, StartOffset, HighWatermark protocol.Offset
	// CleanedTo is what cleaner-offset-checkpoint says: the log is compacted up to there.
	CleanedTo protocol.Offset
	// Trust says what to check.
	Trust Trust
	// ProducerExpiration is producer.id.expiration.ms: producers idle for longer are not loaded from
	// snapshots. 0 keeps them.
	ProducerExpiration time.Duration
	// Logger hears of repairs; nil means silence.
	Logger *slog.Logger
}

// privateFiles is how many files a log without a shared FileCache keeps open.
const privateFiles = 64

// withDefaults fills in what was left out.
func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Files == nil {
		o.Files = NewFileCache(privateFiles)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Log is one partition on disk. All methods are safe for concurrent use; those that read records take no
// lock. A Log that is idle has no goroutine, timer or open file.
//
//	segments   0 ──────────────── 4711 ─────────────────── 9000 (active) ──────────▶
//	offsets        start        stable    watermark                          end
//	               ├──────────────┼──────────┼────────────────────────────────┤
//	               read_committed │          │ only followers read here
//	                    read_uncommitted ────┘
//
//	recovery   synced up to here; anywhere up to the end, also below the watermark: replication and not the
//	           disk makes records safe, as in Kafka
//	cleaned    compacted up to here; only with cleanup.policy=compact
//
// The offsets are stored one by one, so a reader may see a mixture while they move; where that matters, the order of
// the loads is said. They only rise, except in a truncation, where the end falls before the bytes go.
type Log struct {
	fs         vfs.FS
	files      *FileCache
	partition  protocol.TopicPartition
	now        func() time.Time
	logger     *slog.Logger
	expiration time.Duration

	// Published, read without a lock.
	dir       atomic.Pointer[string]
	topicID   atomic.Pointer[protocol.TopicID] // nil where nobody has said it
	config    atomic.Pointer[config.Topic]
	list      atomic.Pointer[segments]
	epochs    atomic.Pointer[epochs]
	start     atomic.Int64 // log start offset
	end       atomic.Int64 // log end offset
	watermark atomic.Int64
	recovery  atomic.Int64 // recovery point
	cleaned   atomic.Int64 // where the records begin that have not been compacted
	failure   atomic.Pointer[failure]

	compacting gate // around Compact
	loading    gate // around reading an index into memory
	flushing   gate // around Flush, so that waiting appends share one sync
	appending  gate // the append lock: guards everything below, and the order of publishing
	guarded    guarded
}

// guarded is what the append lock guards.
type guarded struct {
	closed      bool
	changed     bool // anything was written since the log was opened
	tail        tail
	producers   producers
	snapshots   []protocol.Offset // offsets of the snapshot files, rising
	epochsDirty bool              // the epochs are newer than their file
	epochsWrote int               // how often the file was written, and
	epochsSync  int               // how often at the last sync
	busy        int64             // bytes appended since the log was last at rest
	truncations int               // counts them, so that the cleaner sees one
	namesDirty  bool              // a segment was made since the directory was last synced, or a topic id written
	pending     []pendingDelete   // files that wait for file.delete.delay.ms
	unflushed   int64             // records appended since the last flush
	wholeTo     protocol.Offset   // the end at the last Flush that wrote indexes and a snapshot
	flushedAt   time.Time         // when the last flush was
	verifyFrom  protocol.Offset   // what opening has not checked begins here
	verifyTo    protocol.Offset   // and ends here
}

// tail is what appends need to know of the active segment.
type tail struct {
	sinceIndex   int64       // bytes of log since the last index entry
	sinceWrite   int64       // bytes of log since the index files were written
	indexWritten int32       // how many entries of the index are in its file; -1 before that is known
	times        []timeEntry // entries of the time index that are not in its file
	timesWritten int32       // how many are
	lastTime     timeEntry   // the last one, written or not
	reserved     int64       // up to where space is reserved for the log file
	garbage      bool        // a failed write may have left bytes behind the published size
}

// failure is why a log refuses to change.
type failure struct{ err error }

// lock takes the append lock and fails where the log is closed or broken. After success, unlock must be
// deferred.
func (l *Log) lock() error {
	l.appending.lock()
	if l.guarded.closed {
		l.appending.unlock()
		return protocol.Errorf(protocol.KafkaStorageError, "log %s is closed", l.partition)
	}
	if f := l.failure.Load(); f != nil {
		l.appending.unlock()
		return f.err
	}
	return nil
}

// unlock gives the append lock back. A panic on its way through breaks the log first, as half of a change
// may have been made.
func (l *Log) unlock() {
	if r := recover(); r != nil {
		l.fail(fmt.Errorf("panic: %v", r))
		l.appending.unlock()
		panic(r)
	}
	l.appending.unlock()
}

// fail breaks the log: nothing is written any more. A failed write or sync is final, since the kernel may
// have dropped what it could not write; only a full disk passes.
//
// After a failed sync the kernel may have marked the pages clean, and the next sync then reports success for what
// was never written. So there is no second try: the log is offline until a restart has read what is really there.
func (l *Log) fail(err error) {
	err = protocol.Errorf(protocol.KafkaStorageError, "log %s in %s: %w", l.partition, l.Dir(), err)
	if l.failure.CompareAndSwap(nil, &failure{err}) {
		l.logger.Error("log is offline", "partition", l.partition, "dir", l.Dir(), "error", err)
	}
}

// ioError wraps what an operation that changes files failed with, and breaks the log unless the disk is
// merely full.
func (l *Log) ioError(op string, err error) error {
	if vfs.IsFull(err) {
		l.sayFull(err)
		return protocol.Errorf(protocol.KafkaStorageError, "%s %s: disk full: %w", op, l.partition, err)
	}
	l.fail(fmt.Errorf("%s: %w", op, err))
	return protocol.Errorf(protocol.KafkaStorageError, "%s %s: %w", op, l.partition, err)
}

// fullEvery is how often it is said that a disk is full.
const fullEvery = 30 * time.Second

// sayFull logs that the disk is full: at once, then once in a while, whichever of the process's logs have noticed.
// Clients try again for as long as it lasts, and nothing else would tell why they wait.
func (l *Log) sayFull(err error) {
	now, last := l.now().UnixNano(), l.files.saidFull.Load()
	since := time.Duration(now - last) // negative where the clock was set back
	if last != 0 && since >= 0 && since < fullEvery || !l.files.saidFull.CompareAndSwap(last, now) {
		return
	}
	l.logger.Error("the disk is full: records are refused until there is space again",
		"dir", filepath.Dir(l.Dir()), "partition", l.partition, "error", err)
}

// Err is why the log refuses to change, or nil.
func (l *Log) Err() error {
	if f := l.failure.Load(); f != nil {
		return f.err
	}
	return nil
}

// Partition names the partition.
func (l *Log) Partition() protocol.TopicPartition { return l.partition }

// Dir is the partition's directory, which MarkDeleted renames.
func (l *Log) Dir() string { return *l.dir.Load() }

// path is a file of the segment that begins at base.
func (l *Log) path(base protocol.Offset, suffix string) string {
	return filePath(l.Dir(), base, suffix)
}

// Config are the settings in force.
func (l *Log) Config() config.Topic { return *l.config.Load() }

// SetConfig puts new settings in force, from the next operation on.
func (l *Log) SetConfig(c config.Topic) { l.config.Store(&c) }

// ShareConfig is SetConfig with settings that several logs share and nobody changes.
func (l *Log) ShareConfig(c *config.Topic) { l.config.Store(c) }

// StartOffset is the log start offset: the first that may be read.
func (l *Log) StartOffset() protocol.Offset { return protocol.Offset(l.start.Load()) }

// EndOffset is the log end offset: the next to be written.
func (l *Log) EndOffset() protocol.Offset { return protocol.Offset(l.end.Load()) }

// RecoveryPoint is the offset up to which the log is synced.
func (l *Log) RecoveryPoint() protocol.Offset { return protocol.Offset(l.recovery.Load()) }

// HighWatermark is the offset up to which the log is replicated; see SetHighWatermark.
func (l *Log) HighWatermark() protocol.Offset { return protocol.Offset(l.watermark.Load()) }

// SetHighWatermark raises the high watermark, at most to the log end offset. It never falls, but with a
// truncation.
//
// It takes no lock but that of the open transactions, and that only where there are any: it moves with nearly every
// fetch of a follower. A follower must truncate before it raises it: the other way round consumers have seen what
// was then cut (KAFKA-14704).
func (l *Log) SetHighWatermark(watermark protocol.Offset) {
	watermark = min(watermark, l.EndOffset())
	for {
		now := l.watermark.Load()
		if int64(watermark) <= now {
			return
		}
		if l.watermark.CompareAndSwap(now, int64(watermark)) {
			break
		}
	}
	if l.guarded.producers.txns.unstable.Load() >= 0 {
		l.guarded.producers.txns.release(watermark)
	}
}

// FirstUnstableOffset is the offset of the first record of a transaction that is not decided, or whose
// decision is not below the high watermark yet; false where there is none.
func (l *Log) FirstUnstableOffset() (protocol.Offset, bool) {
	first := protocol.Offset(l.guarded.producers.txns.unstable.Load())
	return max(first, l.StartOffset()), first >= 0
}

// LastStableOffset is the offset up to which a read_committed consumer may read.
//
// The watermark is loaded before the first unstable offset. A transaction that begins between the two is at or
// behind the end, and so not below the watermark; one that is released between them is decided and replicated by then.
func (l *Log) LastStableOffset() protocol.Offset {
	watermark := l.HighWatermark()
	if first, ok := l.FirstUnstableOffset(); ok {
		return min(first, watermark)
	}
	return watermark
}

// Size is the length of all segments in bytes.
func (l *Log) Size() int64 {
	var size int64
	for _, s := range *l.list.Load() {
		size += s.size.Load()
	}
	return size
}

// Segments describes the segments, in order.
func (l *Log) Segments() []SegmentInfo {
	list := *l.list.Load()
	out := make([]SegmentInfo, len(list))
	for i, s := range list {
		out[i] = SegmentInfo{BaseOffset: s.base, Size: s.size.Load(), Active: s.active.Load()}
	}
	return out
}

// Producers describes the producers that have state here, in the order of their ids.
func (l *Log) Producers() []ProducerState {
	l.appending.lock()
	defer l.unlock()
	return l.guarded.producers.list()
}

// ExpireProducers forgets producers that wrote nothing for producer.id.expiration.ms before now and have no
// open transaction, and returns how many those were.
func (l *Log) ExpireProducers(now time.Time) int {
	if l.expiration <= 0 {
		return 0
	}
	l.appending.lock()
	defer l.unlock()
	return l.guarded.producers.expire(now.Add(-l.expiration).UnixMilli())
}

// active is the segment that is appended to.
func (l *Log) active() *segment { return l.list.Load().last() }

// open opens a segment's log file, or takes a reference on it where it is open. For a segment that has left
// the log it is fs.ErrNotExist, also where another one has its name now.
func (l *Log) open(s *segment) (*openFile, error) {
	if f := s.file.Load(); f != nil && f.acquire() {
		return f, nil
	}
	file, err := l.fs.OpenFile(l.path(s.base, logSuffix), openFlags, 0)
	if err != nil {
		return nil, err
	}
	if s.gone.Load() {
		_ = file.Close() // nothing was written through it
		return nil, errGone
	}
	return l.files.add(s, file), nil
}

// openSide opens a side file of a segment for reading, in the same way.
func (l *Log) openSide(s *segment, suffix string) (vfs.File, error) {
	file, err := l.fs.OpenFile(l.path(s.base, suffix), os.O_RDONLY, 0)
	if err == nil && s.gone.Load() {
		_ = file.Close() // it was only to be read
		return nil, errGone
	}
	return file, err
}

// errGone is what looking into a segment ends with that was deleted or replaced.
var errGone = fmt.Errorf("segment is gone: %w", fs.ErrNotExist)

// view is what a read goes by: the list of segments and where their files are.
type view struct {
	list *segments
	dir  *string
}

// view is the present one.
func (l *Log) view() view { return view{l.list.Load(), l.dir.Load()} }

// readError is what a read failed with, with a code: a missing file is one of a closed log, or was taken away
// by somebody else.
func (l *Log) readError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return protocol.Errorf(protocol.KafkaStorageError, "read %s: %w", l.partition, err)
	}
	return err
}

// again reports whether a read that failed with err should be tried anew: a file was missing, and what took
// it away is done now, so that there is another view.
//
// The lock is taken and given back to wait for whoever holds it: a truncation or a swap marks segments gone, then
// changes the names, and only then publishes the new list. Without the wait a reader would spin through that time.
// There is another round only where the view has changed.
func (l *Log) again(v view, err error) bool {
	if !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	l.appending.lock()
	l.appending.unlock()
	return l.view() != v
}
