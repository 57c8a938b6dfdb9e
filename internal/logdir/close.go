package logdir

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// closersPerDirectory is how many logs of a directory are closed at a time, at least. Each waits for about six
// syncs (data, two indexes, snapshot, epochs, the folder), and a journalling file system writes those that wait at
// the same time in one commit: sixteen stop a broker of 10,000 changed partitions in half the time of four, and what
// they keep busy is the disk.
const closersPerDirectory = 16

// A clean stop leaves, in each directory and in this order:
//
//	1. every log synced, its indexes trimmed, with a producer snapshot at its end
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
	work := make(chan *entry)
	var mu sync.Mutex
	var wg sync.WaitGroup
	var total, late int
	for range max(closersPerDirectory, int(s.config.Load().Int("num.recovery.threads.per.data.dir"))) {
		wg.Go(func() {
			for e := range work {
				if failure := s.closeLog(ctx, e); failure != nil {
					mu.Lock()
					if failure == errLate {
						late++
					} else {
						err = errors.Join(err, failure)
					}
					dirty = append(dirty, e.partition.String())
					mu.Unlock()
				}
			}
		})
	}
	for _, e := range s.entries(d) {
		if e.log != nil {
			total++
			work <- e
		}
	}
	close(work)
	wg.Wait()
	if late > 0 {
		err = errors.Join(err, fmt.Errorf("%s: there was no time to sync %d of %d logs, which the next start looks through: %w",
			d.path, late, total, context.Cause(ctx)))
	}
	return dirty, err
}

// errLate is why a log was not closed cleanly when time was up.
var errLate = errors.New("time is up")

// closeLog closes one log cleanly if there is time for it, else without another write.
func (s *Set) closeLog(ctx context.Context, e *entry) (err error) {
	defer func() {
		if err != nil {
			e.log.CloseUnclean()
		}
	}()
	if ctx.Err() != nil {
		return errLate
	}
	if err := e.dir.err(); err != nil {
		return err
	}
	defer s.recovered("closing "+e.partition.String(), &err)
	return s.report(e.dir, e.log.CloseClean())
}
