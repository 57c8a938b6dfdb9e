package log

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// CompactOptions are the means of one Compact.
type CompactOptions struct {
	// Buffer is the most memory in bytes that the map of keys may take, 24 a key: with more keys, a Compact
	// cleans only a part. See log.cleaner.dedupe.buffer.size. The set of offsets that stay may take an eighth of it besides.
	Buffer int64
	// Throttle is called with the number of bytes that were read or written, and may wait; nil never does.
	Throttle func(ctx context.Context, bytes int) error
}

// CompactStats are what a Compact did.
type CompactStats struct {
	// From is where the records began that had not been compacted yet, To where they begin now.
	From, To protocol.Offset
	// BytesRead and BytesWritten are the sizes of the segments before and after.
	BytesRead, BytesWritten int64
	// RecordsRead and RecordsWritten count records in them; those without a key, which a compacted topic
	// should not have, are dropped.
	RecordsRead, RecordsWritten int64
	// Segments is how many there are now in place of how many.
	SegmentsBefore, SegmentsAfter int
}

// Cleanable says how much there is to compact.
type Cleanable struct {
	// From and To are the offsets of the records that may be compacted and have not been.
	From, To protocol.Offset
	// Bytes is the size of their segments, Ratio its share of the segments below To.
	Bytes int64
	Ratio float64
	// Overdue is true where max.compaction.lag.ms asks for it whatever the ratio.
	Overdue bool
}

// ErrInterrupted is what Compact ends with where the log was truncated, or lost its oldest segments, under it.
// What it has finished stays.
var ErrInterrupted = errors.New("the log was truncated while it was compacted")

// CleanedTo is the offset up to which the log is compacted: what cleaner-offset-checkpoint holds.
func (l *Log) CleanedTo() protocol.Offset { return protocol.Offset(l.cleaned.Load()) }

// CleanableRatio says what a Compact would find to do at now. Nothing at or behind the last stable offset,
// the high watermark (BR-185), the active segment, or a segment with a record younger than
// min.compaction.lag.ms can be compacted.
//
//	log start       From             To                 bound                  log end
//	├─── clean ─────┼──── dirty ─────┼─── too young ────┼─ undecided or active ─┤
//
// From is the checkpoint, To the end of the last whole segment that may be cleaned, bound the last stable offset
// or the base of the active segment. Bytes counts whole segments, so a segment that From lies in is dirty as a
// whole. Compaction beyond the high watermark would let an uncommitted record replace a committed one, which is
// lost with the next change of the leader (KAFKA-13194).
func (l *Log) CleanableRatio(now time.Time) (Cleanable, error) {
	list := *l.list.Load()
	from, to, err := l.cleanableRange(list, now)
	if err != nil {
		return Cleanable{}, err
	}
	out := Cleanable{From: from, To: to}
	var clean int64
	earliest := int64(-1)
	for i, s := range list {
		switch size := s.size.Load(); {
		case s.base >= to:
		case i+1 < len(list) && list[i+1].base <= from:
			clean += size
		default:
			out.Bytes += size
			if first, err := l.firstTimestamp(s); err != nil {
				return out, err
			} else if first > 0 && (earliest < 0 || first < earliest) {
				earliest = first
			}
		}
	}
	if from >= to {
		out.Bytes = 0
	}
	if total := clean + out.Bytes; total > 0 {
		out.Ratio = float64(out.Bytes) / float64(total)
	}
	lag := l.config.Load().MaxCompactionLag
	out.Overdue = out.Bytes > 0 && earliest >= 0 && lag >= 0 && now.Sub(time.UnixMilli(earliest)) > lag
	return out, nil
}

// cleanableRange is the range of offsets that may be compacted and has not been, in whole segments.
//
// Only whole segments count, and they must follow each other: the first that is too young, or reaches beyond the
// bound, ends the range.
func (l *Log) cleanableRange(list segments, now time.Time) (from, to protocol.Offset, err error) {
	from = l.CleanedTo()
	if from < l.StartOffset() || from > l.EndOffset() {
		from = l.StartOffset() // the checkpoint is older or newer than the log
	}
	bound := min(l.LastStableOffset(), list.last().base)
	lag := l.config.Load().MinCompactionLag
	to = list[0].base
	for i, s := range list[:len(list)-1] {
		upper := list[i+1].base
		if upper > bound {
			break
		}
		if lag > 0 && upper > from {
			newest, err := l.newest(s)
			if err != nil {
				return 0, 0, err
			}
			if now.Sub(newest) < lag {
				break
			}
		}
		to = upper
	}
	return from, max(from, to), nil
}

// firstTimestamp is the largest timestamp of a segment's first batch.
func (l *Log) firstTimestamp(s *segment) (int64, error) {
	l.appending.lock()
	defer l.unlock()
	if s.firstTime == timeUnknown && s.size.Load() > 0 {
		if err := l.loadFirstTime(s); err != nil {
			return 0, err
		}
	}
	return s.firstTime, nil
}

// Compact keeps, of the records that may be compacted, the newest of each key: it reads them twice, first to
// learn the newest offset of each key, then to copy what stays. Tombstones stay for delete.retention.ms from
// the first Compact that meets them (KIP-534), records of aborted transactions go, a marker goes once its
// transaction has no record left and the same time has passed, and the last batch of each producer stays,
// emptied if need be, for its sequence numbers. Small segments are merged. Memory is bounded by Buffer, an eighth of it, and a
// few batches. A Compact that is stopped, at any point, leaves the log as it was or done.
//
// One Compact at a time may run on a log; appends and reads go on.
//
// It costs two reads of the dirty part, one of the clean part (which is copied, too), and O(1) a key; appends wait
// only while files change their names.
func (l *Log) Compact(ctx context.Context, o CompactOptions) (CompactStats, error) {
	l.compacting.lock()
	defer l.compacting.unlock()
	c, err := l.newCleaning(ctx, o)
	if err != nil {
		return CompactStats{}, err
	}
	err = c.run()
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrInterrupted // retention was faster
	}
	return c.stats, err
}

// run is both passes.
func (c *cleaning) run() error {
	if err := c.learn(); err != nil {
		return err
	}
	for _, group := range c.groups() {
		if err := c.clean(group); err != nil {
			return err
		}
	}
	c.log.cleaned.Store(int64(c.stats.To))
	return nil
}

// cleaning is one Compact at work.
type cleaning struct {
	log     *Log
	ctx     context.Context
	options CompactOptions
	now     int64 // in ms
	horizon int64 // the delete horizon that tombstones met now get, in ms
	list    segments
	from    protocol.Offset // where the records begin that have not been compacted
	to      protocol.Offset // the first offset that may not be compacted
	cuts    int             // how often the log had been truncated

	keys   *offsetMap
	known  protocol.Offset // the map knows every key up to here; at first it is the offset before the dirty part
	newest *offsetSet      // of the offsets from from to known, those that may stay; nil where there are too many of them
	txns   *cleanedTxns
	lasts  map[protocol.ProducerID]lastRecord
	scan   []byte // what is read of a segment at once
	buffer []byte // holds a batch that is larger
	stats  CompactStats

	compressor   record.Compressor
	decompressor record.Decompressor
}

// lastRecord is the last that a producer wrote: data up to an offset, or a marker in an epoch.
type lastRecord struct {
	offset protocol.Offset // NoOffset where the marker is the last
	epoch  protocol.ProducerEpoch
}

// newCleaning notes what the log looks like: the range to compact, and what each producer wrote last.
//
// It is the only moment of a pass under the append lock before a swap: what it notes is a picture that may be old
// later, but only in ways that keep more.
func (l *Log) newCleaning(ctx context.Context, o CompactOptions) (*cleaning, error) {
	if err := l.lock(); err != nil {
		return nil, err
	}
	defer l.unlock()
	now := l.now()
	c := &cleaning{
		log: l, ctx: ctx, options: o, now: now.UnixMilli(), list: *l.list.Load(), cuts: l.guarded.truncations,
		txns: newCleanedTxns(), lasts: map[protocol.ProducerID]lastRecord{}, scan: make([]byte, scanBuffer),
	}
	c.horizon = now.Add(max(0, l.config.Load().DeleteRetention)).UnixMilli()
	var err error
	if c.from, c.to, err = l.cleanableRange(c.list, now); err != nil {
		return nil, err
	}
	for id, p := range l.guarded.producers.byID {
		c.lasts[id] = lastRecord{offset: p.last().lastOffset, epoch: p.epoch}
	}
	c.keys, c.known = newOffsetMap(o.Buffer), c.from-1
	c.stats.From, c.stats.To = c.from, c.from
	return c, nil
}

// throttle stops with the context, and waits as the options say.
func (c *cleaning) throttle(bytes int) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.options.Throttle == nil {
		return nil
	}
	return c.options.Throttle(c.ctx, bytes)
}

// learn fills the map of keys from the records that have not been compacted, until it is full.
//
// It ends with known, the offset up to which the map knows every key: what is behind it is kept whatever its
// key, as a record there may be the newest. A map that is full in the middle of a segment stops there, and the
// pass cleans up to there; the rest is the next pass's. A map too small for one batch would never get on,
// so it is an error and not an endless loop.
func (c *cleaning) learn() error {
	txns := newCleanedTxns()
	if int64(c.to-c.from) <= c.options.Buffer {
		c.newest = newOffsetSet(c.from, c.to)
	}
	for i, s := range c.list {
		if s.base >= c.to || i+1 < len(c.list) && c.list[i+1].base <= c.from {
			continue
		}
		upper := c.list[i+1].base // the active segment is never below c.to
		if err := c.announce(txns, s.base, upper); err != nil {
			return err
		}
		full, err := c.learnSegment(s, upper, txns)
		if err != nil {
			return err
		}
		if full {
			break
		}
		c.known = max(c.known, upper-1)
	}
	c.stats.To = c.known + 1
	if c.stats.To == c.from && c.from < c.to {
		return fmt.Errorf("compact %s: a map of %d bytes holds no batch at offset %d", c.log.partition, c.options.Buffer, c.from)
	}
	if c.newest != nil {
		for offset := range c.keys.offsets {
			c.newest.add(offset, offset)
		}
	}
	return nil
}

// announce tells txns which transactions in a range were aborted.
func (c *cleaning) announce(txns *cleanedTxns, from, to protocol.Offset) error {
	var list []aborted
	for _, s := range c.list[c.list.floor(from):] {
		n := int(s.aborted.Load())
		if n == 0 {
			continue
		}
		enough, err := c.log.abortedInSegment(s, n, from, func(a aborted) bool {
			if a.last >= from && a.first < to {
				list = append(list, a)
			}
			return a.stable < to
		})
		if err != nil {
			return err
		}
		if enough {
			break
		}
	}
	txns.add(list)
	return nil
}

// learnSegment puts the keys of a segment into the map; upper is the base of the next one.
func (c *cleaning) learnSegment(s *segment, upper protocol.Offset, txns *cleanedTxns) (full bool, err error) {
	passOver := func(h *record.Header) bool { return h.LastOffset < c.from || full }
	err = c.eachBatch(s, upper, passOver, func(e record.Entry) error {
		switch {
		case e.Control():
			m, ok, err := readMarker(record.Batch(e.Bytes))
			txns.control(&e.Header, m, ok)
			return err
		case txns.data(&e.Header):
			if c.newest != nil { // whether they go is for the second pass to say, which has seen all of the transaction
				c.newest.add(max(e.BaseOffset, c.from), e.LastOffset)
			}
		default:
			if full, err = c.learnBatch(e); full || err != nil {
				return err
			}
		}
		c.known = max(c.known, e.LastOffset)
		return nil
	})
	return full, err
}

// learnBatch puts the keys of a batch into the map; where that gets full it is complete up to the record before.
//
// Leaders check that the offsets of records rise within the batch's. In a batch that no leader has checked they may not,
// and then the set of offsets would not have records that the map does not know, which stay.
func (c *cleaning) learnBatch(e record.Entry) (full bool, err error) {
	last := e.BaseOffset - 1
	for r, err := range e.Records(&c.decompressor) {
		if err != nil {
			return false, err
		}
		if r.Offset <= last || r.Offset > e.LastOffset {
			c.newest = nil
		}
		last = r.Offset
		if r.Key == nil || r.Offset < c.from {
			continue
		}
		if !c.keys.put(r.Key, r.Offset) {
			return true, nil
		}
		c.known = max(c.known, min(r.Offset, e.LastOffset))
	}
	return false, nil
}

// eachBatch shows each batch of a segment that is not passed over, its CRC checked: what is copied must not hide damage.
// Base offsets are in no CRC: each batch must go on from the one before, and end below upper, the base of the next segment.
func (c *cleaning) eachBatch(s *segment, upper protocol.Offset, passOver func(*record.Header) bool, visit func(record.Entry) error) error {
	f, err := c.log.open(s)
	if err != nil {
		return err
	}
	defer f.release()
	w := walk(f, 0, s.size.Load(), c.scan)
	for expected := s.base; ; expected = w.expected {
		h, err := w.next()
		if ended(err) {
			return nil
		}
		if err == nil && (h.BaseOffset < expected || h.LastOffset >= upper) {
			err = errOrder(&h, expected)
		}
		if err != nil {
			return c.log.damaged(s, &w, err)
		}
		if passOver(&h) {
			if err := c.throttle(min(h.Size, len(c.scan))); err != nil { // of a larger one the rest is not read
				return err
			}
			continue
		}
		if err := c.throttle(h.Size); err != nil {
			return err
		}
		b, err := w.whole(&h, &c.buffer)
		if err != nil {
			return err
		}
		e := record.Entry{Header: h, Bytes: b}
		if !e.ValidCRC() {
			return c.log.damaged(s, &w, errWrongCRC(&h))
		}
		if err := visit(e); err != nil {
			return err
		}
	}
}

// whole is the batch at w.pos, from the walker's buffer where it is there, else read into *into, which grows
// to the largest batch.
func (w *walker) whole(h *record.Header, into *[]byte) ([]byte, error) {
	if end := w.pos + int64(h.Size); w.pos >= w.at && end <= w.at+int64(w.n) {
		return w.buf[w.pos-w.at : end-w.at], nil
	}
	if cap(*into) < h.Size {
		*into = make([]byte, h.Size)
	}
	b := (*into)[:h.Size]
	return b, readFull(w.file, b, w.pos)
}
