package logdir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/invariant"
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// What a folder is opened with, from what its directory holds:
//
//	suspect in .barnabas-boot                      log.Scan      damaged at the last look: look again
//	.kafka_cleanshutdown is there                  log.Clean     nothing was written since all was synced
//	boot id and path in .barnabas-boot are ours    log.SameBoot  the kernel still has what was written
//	otherwise                                      log.Scan      from the recovery point on
//
// and then, for each directory, before the first append can come:
//
//	1. the marker is removed, durably
//	2. .barnabas-boot is written with the present boot, and with the folders that must be scanned the next
//	   time whatever else is said: damaged ones, and those that nobody opened although the power had failed
//
// Were 2 done before everything is opened, a kill during the start would leave logs trusted that nobody has
// looked at since the power cut.

// Settings gives the configuration of a partition's topic, and whether the broker knows that partition
// under that topic id (zero where the folder does not say).
type Settings func(tp protocol.TopicPartition, id protocol.TopicID) (config.Topic, bool)

// Load opens the current folders of all partitions that settings knows, several at a time, and trusts each
// as the stop of the last process allows. The others are left alone, with their lines in the checkpoints.
//
// A partition that is damaged or cannot be opened is offline afterwards and the rest serve; an error of a
// disk takes its directory offline. The error is that of ctx, or says that the Set is not usable at all.
func (s *Set) Load(ctx context.Context, settings Settings) error {
	s.changing.lock()
	defer s.changing.unlock()
	if err := s.open(); err != nil {
		return err
	}
	if s.loaded.Load() {
		return errors.New("the logs are loaded already")
	}
	began := time.Now()
	s.finishSwaps()
	plan := s.plan(settings)
	total := 0
	for _, tasks := range plan {
		total += len(tasks)
	}
	if err := s.loadAll(ctx, plan, total); err != nil {
		return err
	}
	s.finishLoad(plan)
	s.loaded.Store(true)
	s.scheduleLeftovers()
	s.resumeMoves()
	s.logger.Info("logs are loaded", "partitions", total, "offline", len(s.Offline()), "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// task is one folder to open.
type task struct {
	found  *Found
	topic  config.Topic
	damage error // set by opening it
}

// plan lists what is to be opened in each directory that works, and reads its checkpoints.
func (s *Set) plan(settings Settings) map[*directory][]*task {
	plan := map[*directory][]*task{}
	where := map[protocol.TopicPartition]*directory{}
	for _, d := range s.dirs {
		if d.err() != nil || !d.logs {
			continue
		}
		if err := s.readCheckpoints(d); err != nil {
			s.fail(d, err)
			continue
		}
		for i := range d.found {
			f := &d.found[i]
			if f.State != Current {
				continue
			}
			topic, known := settings(f.Partition, f.TopicID)
			if !known {
				continue
			}
			if other := where[f.Partition]; other != nil {
				s.refuseTwice(f.Partition, other, d)
				plan[other] = slices.DeleteFunc(plan[other], func(t *task) bool { return t.found.Partition == f.Partition })
				continue
			}
			where[f.Partition] = d
			plan[d] = append(plan[d], &task{found: f, topic: topic})
		}
	}
	return plan
}

// refuseTwice takes a partition offline that has a current folder in two directories: neither is known to
// be the right one.
func (s *Set) refuseTwice(tp protocol.TopicPartition, a, b *directory) {
	err := offline(tp, fmt.Errorf("it is in %s and in %s; delete the folder of the directory that has failed before", a.path, b.path))
	s.logger.Error("partition is offline", "partition", tp, "error", err)
	old := s.entry(tp)
	s.replace(tp, old, &entry{partition: tp, dir: a, err: err})
}

// loadAll opens what is planned: num.recovery.threads.per.data.dir at a time in each directory, and in all
// not more than there are cores, but one a directory.
func (s *Set) loadAll(ctx context.Context, plan map[*directory][]*task, total int) error {
	threads := int(s.config.Load().Int("num.recovery.threads.per.data.dir"))
	// A scan is work for a core (checksums) as much as for a disk; but a slow disk must not keep the others
	// waiting, so that each directory may have one log in the works.
	cores := make(chan struct{}, max(runtime.GOMAXPROCS(0), len(s.dirs)))
	var done atomic.Int64
	var wg sync.WaitGroup
	for d, tasks := range plan {
		work := make(chan *task)
		for range min(threads, len(tasks)) {
			wg.Go(func() {
				for t := range work {
					cores <- struct{}{}
					s.loadTask(d, t)
					<-cores
					if n := done.Add(1); n%loadProgress == 0 {
						s.logger.Info("loading logs", "done", n, "of", total)
					}
				}
			})
		}
		wg.Go(func() {
			defer close(work)
			for _, t := range tasks {
				select {
				case work <- t:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// loadProgress is after how many logs a line tells how far loading is: a start that scans can take long, and
// a silent one looks like a dead one.
const loadProgress = 1000

// loadTask opens one folder and puts it into the table, offline where it cannot be used.
func (s *Set) loadTask(d *directory, t *task) {
	tp := t.found.Partition
	next := &entry{partition: tp, dir: d}
	if next.err = cmp.Or(d.err(), t.found.Err); next.err == nil {
		next.log, next.err = s.openLog(d, t.found.Folder, tp, t.found.TopicID, t.topic, s.trust(d, t.found.Folder))
	}
	if next.err != nil {
		// Whatever the reason, nobody has seen all of it: it is not trusted the next time.
		t.damage = next.err
		next.err = offline(tp, s.report(d, next.err))
		s.logger.Error("partition is offline", "partition", tp, "dir", d.path, "error", next.err)
	}
	_ = s.install(next) // where the directory has failed, the entry says so
}

// trust says what may be believed of a folder.
func (s *Set) trust(d *directory, folder string) log.Trust {
	d.writing.lock()
	defer d.writing.unlock()
	switch {
	case slices.Contains(d.boot.suspects, folder):
		return log.Scan
	case d.clean:
		return log.Clean
	case d.boot.survived(s.options.BootID, d.path):
		return log.SameBoot
	}
	return log.Scan
}

// openLog opens, or makes, the log in a folder of d, with what the checkpoints carry for it. A panic in it is
// an error of that partition.
func (s *Set) openLog(d *directory, folder string, tp protocol.TopicPartition, id protocol.TopicID, topic config.Topic, trust log.Trust) (l *log.Log, err error) {
	defer s.recovered("opening "+tp.String(), &err)
	o := log.Options{
		FS: s.files, Dir: d.file(folder), Partition: tp, TopicID: id, Config: topic, Now: s.options.Now,
		Files: s.options.Files, Trust: trust, Logger: s.logger,
		ProducerExpiration: s.config.Load().Duration("producer.id.expiration.ms"),
	}
	offsets := d.recall(tp)
	o.RecoveryPoint, o.StartOffset = offsets[recoveryPoints], offsets[logStarts]
	o.HighWatermark, o.CleanedTo = offsets[highWatermarks], offsets[cleanedTo]
	if l, err = log.Open(o); err == nil && trust == log.SameBoot {
		s.distrust(l)
	}
	return l, err
}

// install puts a new entry into the table. If its directory has failed meanwhile, the entry is offline and
// the error says so.
//
//	install:   replace(entry)     err()?          fail:   fence     entries()
//	either install sees the fence, or fail sees the entry: in both, the log is closed and the entry offline
func (s *Set) install(e *entry) error {
	if e.log != nil {
		e.dir.forget(e.partition)
	}
	invariant.That(s.replace(e.partition, nil, e), "a partition is installed once")
	// A failure of the directory fences it first and lists its logs then: either it has seen this entry, or
	// the fence is seen here.
	err := e.dir.err()
	if err == nil || e.log == nil {
		return nil
	}
	if s.replace(e.partition, e, &entry{partition: e.partition, dir: e.dir, err: offline(e.partition, err)}) {
		e.log.CloseUnclean()
	}
	return err
}

// finishLoad readies the directories for writing: the marker goes, and the boot file says the present boot
// and which partitions not to trust. What a directory holds must have been checked before that.
func (s *Set) finishLoad(plan map[*directory][]*task) {
	var wg sync.WaitGroup
	for _, d := range s.dirs {
		if d.err() != nil || !d.logs {
			continue
		}
		wg.Go(func() {
			if err := s.finishDirectory(d, plan[d]); err != nil {
				s.fail(d, err)
				return
			}
			d.loaded.Store(true)
		})
	}
	wg.Wait()
}

// finishDirectory does so in one directory.
func (s *Set) finishDirectory(d *directory, tasks []*task) error {
	if d.clean {
		if err := removeMarker(s.files, d.path); err != nil {
			return err
		}
	}
	next := boot{id: s.options.BootID, path: d.path, unheard: s.ended.lossy()}
	for _, t := range tasks {
		if t.damage != nil {
			next.suspects = append(next.suspects, t.found.Folder)
		}
	}
	next.suspects = append(next.suspects, s.unopened(d, tasks)...)
	return s.amendBoot(d, func(b *boot) { *b = next })
}

// unopened lists the folders that a power cut may have damaged and that nobody has looked at: once the boot
// file says the present boot, they would be trusted.
func (s *Set) unopened(d *directory, tasks []*task) []string {
	opened := map[string]bool{}
	for _, t := range tasks {
		opened[t.found.Folder] = true
	}
	var out []string
	for _, f := range d.found {
		if f.State == Current && !opened[f.Folder] && s.trust(d, f.Folder) == log.Scan {
			out = append(out, f.Folder)
		}
	}
	return out
}

// amendBoot changes what the boot file says, and writes it if that is something new. After the kill of a process it
// mostly is not, and the start writes nothing.
func (s *Set) amendBoot(d *directory, edit func(*boot)) error {
	d.writing.lock()
	defer d.writing.unlock()
	next := d.boot
	next.suspects = slices.Clone(next.suspects)
	edit(&next)
	slices.Sort(next.suspects)
	if next.equal(d.boot) {
		return nil
	}
	if err := next.write(s.files, d.path); err != nil {
		return err
	}
	d.boot = next
	return nil
}

// recovered turns a panic into an error of what was being done. It must be deferred directly. A panic under a
// log's append lock has broken that log before it comes here.
func (s *Set) recovered(doing string, err *error) {
	if r := recover(); r != nil {
		s.logger.Error("panic", "while", doing, "panic", r, "stack", stack())
		*err = fmt.Errorf("%s: panic: %v", doing, r)
	}
}

// stack is where the panic came from.
func stack() string {
	buffer := make([]byte, 16<<10)
	return string(buffer[:runtime.Stack(buffer, false)])
}
