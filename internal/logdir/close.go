package logdir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// closersPerDirectory is how many logs of a directory are closed at a time, at least. Where each is synced by itself, it
// waits for about six syncs (data, two indexes, snapshot, epochs, the folder), and a journalling file system writes those
// that wait at the same time in one commit.
const closersPerDirectory = 16

// syncedAlone is how many logs with changes are synced one by one, file by file. More are only written, and then the
// volume is synced once: that is one commit instead of six for each log, and what it writes besides, of whoever else
// uses the volume, has to be written soon anyway.
const syncedAlone = 16

// A clean stop leaves, in each directory and in this order:
//
//	1. every log synced, by itself or with its volume, its indexes trimmed, with a producer snapshot at its end
//	2. the four checkpoints
//	3. .barnabas-boot, which also names what could not be synced
//	4. .kafka_cleanshutdown, if there is nothing of that kind: it vouches for 1 to 3
//
// A power cut between two of them leaves a directory without a marker, which is scanned from its recovery
// points: those are the log ends where 2 was reached.

// Close ends the background work, closes all logs and gives the directories back. Logs that changed are
// synced, several at a time, until ctx ends; a directory whose logs were all closed gets its marker, so that
// the next start need not look at them. No append is accepted once Close has begun.
func (s *Set) Close(ctx context.Context) error {
	if s.closed.Swap(true) {
		return nil
	}
	s.background.end()
	// Whoever is creating or deleting partitions gets to the end of it; nobody comes after.
	s.changing.lock()
	defer s.changing.unlock()
	defer s.unlock()
	futures := s.closeFutures()
	var errs sync.Map
	var wg sync.WaitGroup
	for _, d := range s.dirs {
		wg.Go(func() { errs.Store(d, s.closeDirectory(ctx, d, futures[d])) })
	}
	wg.Wait()
	s.failing.Wait()
	var all []error
	for _, d := range s.dirs {
		if err, ok := errs.Load(d); ok && err != nil {
			all = append(all, err.(error))
		}
	}
	return errors.Join(all...)
}

// closeDirectory closes the logs of one directory and leaves it as clean as it can. dirty are folders of it
// that could not be closed cleanly; they are checked by the next start.
func (s *Set) closeDirectory(ctx context.Context, d *directory, dirty []string) error {
	more, err := s.closeLogs(ctx, d)
	dirty = append(dirty, more...)
	if d.err() != nil || !d.loaded.Load() {
		// Offline, or not opened for writing: it stays as it was found, with its marker if it had one.
		return err
	}
	for k := range kinds {
		err = errors.Join(err, s.report(d, s.checkpointDirectory(d, k)))
	}
	if err != nil && d.err() != nil {
		return err
	}
	remember := func(b *boot) {
		for _, folder := range dirty {
			if !slices.Contains(b.suspects, folder) {
				b.suspects = append(b.suspects, folder)
			}
		}
	}
	if e := s.report(d, s.amendBoot(d, remember)); e != nil {
		return errors.Join(err, e)
	}
	if err != nil || len(dirty) > 0 {
		return err
	}
	return s.report(d, writeMarker(s.files, d.path, protocol.BrokerEpoch(s.epoch.Load())))
}

// closeLogs closes the logs of a directory; dirty are the folders of those that could not be synced. However many
// ran out of time, the error speaks of them once.
func (s *Set) closeLogs(ctx context.Context, d *directory) (dirty []string, err error) {
	var logs []*entry
	changed := 0
	for _, e := range s.entries(d) {
		if e.log == nil {
			continue
		}
		logs = append(logs, e)
		if e.log.Changed() {
			changed++
		}
	}
	c := closing{set: s, ctx: ctx, directory: d, total: len(logs)}
	if changed > syncedAlone {
		c.volume = d.volume
	}
	c.all(logs)
	if c.volume != nil {
		c.syncVolume()
	}
	if c.late > 0 {
		c.err = errors.Join(c.err, fmt.Errorf("%s: there was no time to sync %d of %d logs, which the next start looks through: %w",
			d.path, c.late, c.total, context.Cause(ctx)))
	}
	return c.dirty, c.err
}

// closing is the work on the logs of one directory.
type closing struct {
	set       *Set
	ctx       context.Context
	directory *directory
	volume    vfs.Volume // that syncs the logs; nil where each is synced by itself
	total     int

	mu      sync.Mutex
	written []*entry // closed, and clean when the volume is synced
	dirty   []string // folders of those that could not be closed cleanly
	late    int      // how many of them only for want of time
	err     error
}

// errLate is why a log was not closed cleanly when time was up.
var errLate = errors.New("time is up")

// all closes logs, several at a time.
func (c *closing) all(logs []*entry) {
	work := make(chan *entry)
	var wg sync.WaitGroup
	for range max(closersPerDirectory, int(c.set.config.Load().Int("num.recovery.threads.per.data.dir"))) {
		wg.Go(func() {
			for e := range work {
				c.note(e, c.one(e))
			}
		})
	}
	for _, e := range logs {
		work <- e
	}
	close(work)
	wg.Wait()
}

// note keeps how the closing of a log ended.
func (c *closing) note(e *entry, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		return
	}
	c.dirty = append(c.dirty, e.partition.String())
	if err == errLate {
		c.late++
	} else {
		c.err = errors.Join(c.err, err)
	}
}

// one closes one log cleanly if there is time for it, else without another write.
func (c *closing) one(e *entry) (err error) {
	defer func() {
		if err != nil {
			e.log.CloseUnclean()
		}
	}()
	if c.ctx.Err() != nil {
		return errLate
	}
	if err := e.dir.err(); err != nil {
		return err
	}
	defer c.set.recovered("closing "+e.partition.String(), &err)
	if !c.syncedByVolume(e) {
		return c.set.report(e.dir, e.log.CloseClean())
	}
	if err := c.set.report(e.dir, e.log.CloseWritten()); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written = append(c.written, e)
	return nil
}

// syncedByVolume reports whether a sync of the volume covers a log: an operator may have mounted another one at its folder,
// or have put links to another one in the place of segments.
func (c *closing) syncedByVolume(e *entry) bool {
	if c.volume == nil {
		return false
	}
	held, err := c.volume.Holds(e.log.Dir())
	return held && err == nil
}

// syncVolume makes the logs clean that were only written, all or none. Nothing can cut the sync short: where time is
// up before its end, it is left behind.
func (c *closing) syncVolume() {
	done := make(chan error, 1)
	go func() { done <- c.volume.Sync() }()
	var err error
	select {
	case err = <-done:
		err = c.set.report(c.directory, err)
	case <-c.ctx.Done():
		err = errLate
	}
	for _, e := range c.written {
		switch {
		case err == nil:
			e.log.Synced()
		case e.log.Changed():
			c.dirty = append(c.dirty, e.partition.String())
			if err == errLate {
				c.late++
			}
		}
	}
	if err != nil && err != errLate {
		c.err = errors.Join(c.err, err)
	}
}
