package sim

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// place is an offset of a partition.
type place struct {
	partition int32
	offset    int64
}

// history is what clients were told and what stood on disks, and the rules that both must keep:
//
//   - an acknowledged record stands at its offset, in every later read and at the end on every replica
//   - no offset ever shows two values to readers, and none that was shown goes away
//   - a value that was refused for good is nowhere
//   - every record stands there once, those of an idempotent producer in its order
//   - one (partition, leader epoch, offset) has one value, on all disks and at all times
//   - committed offsets of a group never go back
type history struct {
	journal *journal

	mu struct {
		sync.Mutex
		acked      map[place]string
		seen       map[place]string
		refused    map[string]bool
		written    map[stamp]string
		violations []string
		counts     map[string]int
	}
}

// stamp is an offset in one leader epoch.
type stamp struct {
	place
	epoch protocol.LeaderEpoch
}

func newHistory(j *journal) *history {
	h := &history{journal: j}
	h.mu.acked, h.mu.seen = map[place]string{}, map[place]string{}
	h.mu.refused, h.mu.written = map[string]bool{}, map[stamp]string{}
	h.mu.counts = map[string]int{}
	return h
}

// violate records that a rule was broken.
func (h *history) violate(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.violateLocked(format, args...)
}

func (h *history) violateLocked(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if len(h.mu.violations) < 20 {
		h.mu.violations = append(h.mu.violations, line)
		h.journal.note("VIOLATION: %s", line)
	}
}

// count adds to a number that a run proves itself with.
func (h *history) count(what string, n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.counts[what] += n
	return h.mu.counts[what]
}

func (h *history) counted(what string) int { return h.count(what, 0) }

// acknowledge notes that a producer was told where a record stands.
func (h *history) acknowledge(at place, value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.counts["acknowledged"]++
	if other, ok := h.mu.acked[at]; ok && other != value {
		h.violateLocked("%s and %s were both acknowledged at %v", other, value, at)
	}
	if other, ok := h.mu.seen[at]; ok && other != value {
		h.violateLocked("%s was acknowledged at %v, where %s has been read", value, at, other)
	}
	h.mu.acked[at] = value
}

// refuse notes that a producer was told that a record is not there, for good.
func (h *history) refuse(value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.counts["refused"]++
	h.mu.refused[value] = true
}

// read notes what a reader was shown.
func (h *history) read(reader string, at place, value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.counts["read"]++
	if other, ok := h.mu.seen[at]; ok && other != value {
		h.violateLocked("%s read %s at %v, where %s has been read before", reader, value, at, other)
	}
	if other, ok := h.mu.acked[at]; ok && other != value {
		h.violateLocked("%s read %s at %v, where %s was acknowledged", reader, value, at, other)
	}
	if h.mu.refused[value] {
		h.violateLocked("%s read %s at %v, which was refused", reader, value, at)
	}
	h.mu.seen[at] = value
}

// compare holds what was read at the end against all that was said before.
func (h *history) compare(final map[place]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, said := range []struct {
		what string
		at   map[place]string
	}{{"acknowledged", h.mu.acked}, {"read", h.mu.seen}} {
		for _, at := range slices.SortedFunc(maps.Keys(said.at), comparePlaces) {
			if got := final[at]; got != said.at[at] {
				h.violateLocked("%s was %s at %v, and at the end %q stands there", said.at[at], said.what, at, got)
			}
		}
	}
	where := map[string]place{}
	last := map[string]int{}
	for _, at := range slices.SortedFunc(maps.Keys(final), comparePlaces) {
		value := final[at]
		if h.mu.refused[value] {
			h.violateLocked("%s stands at %v, and was refused", value, at)
		}
		if other, twice := where[value]; twice {
			h.violateLocked("%s stands at %v and at %v", value, other, at)
		}
		where[value] = at
		name, number := authorOf(value)
		key := fmt.Sprintf("%s in partition %d", name, at.partition)
		if idempotent(name) && number <= last[key] { // what a plain one gave up may be appended later
			h.violateLocked("%s stands at %v behind number %d of its producer", value, at, last[key])
		}
		last[key] = number
	}
}

func comparePlaces(a, b place) int {
	if a.partition != b.partition {
		return int(a.partition - b.partition)
	}
	return int(a.offset - b.offset)
}

// idempotent reports whether a producer of this name is: see startLoad.
func idempotent(name string) bool { return name == "p0" || name == "p1" }

// authorOf takes a value apart: producer/number/padding.
func authorOf(value string) (name string, number int) {
	name, rest, _ := strings.Cut(value, "/")
	fmt.Sscanf(rest, "%d", &number) //nolint:errcheck // values are our own
	return name, number
}

// entry is a record as it stands on a disk.
type entry struct {
	epoch protocol.LeaderEpoch
	value string
}

// String is the record as a violation names it.
func (e entry) String() string { return fmt.Sprintf("%s in epoch %d", e.value, e.epoch) }

// scanDisk gives what stands on a disk, and compares it with all disks before.
func (h *history) scanDisk(m *machine) map[place]entry {
	found := map[place]entry{}
	for partition := range int32(partitions) {
		for _, dir := range [...]string{"/data", "/more"} {
			scanLog(m.disk, fmt.Sprintf("%s/%s-%d", dir, topic, partition), func(e entry, offset protocol.Offset) {
				found[place{partition, int64(offset)}] = e
			})
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for at, e := range found {
		key := stamp{at, e.epoch}
		if other, ok := h.mu.written[key]; !ok {
			h.mu.written[key] = e.value
		} else if other != e.value {
			h.violateLocked("offset %v of leader epoch %d is %s on the disk of %s, and was %s on another", at, e.epoch, e.value, m.host, other)
		}
	}
	h.mu.counts["records compared on disks"] += len(found)
	return found
}

// scanLog walks the records of one folder up to the first damage.
func scanLog(disk vfs.FS, folder string, each func(entry, protocol.Offset)) {
	entries, err := disk.ReadDir(folder)
	if err != nil {
		return // it has no replica
	}
	for _, file := range entries {
		if !strings.HasSuffix(file.Name(), ".log") {
			continue
		}
		for batch, err := range record.Batches(contents(disk, filepath.Join(folder, file.Name()))) {
			if err != nil || !batch.ValidCRC() {
				return
			}
			for r, err := range batch.Records(nil) {
				if err != nil {
					return
				}
				each(entry{batch.LeaderEpoch(), string(r.Value)}, r.Offset)
			}
		}
	}
}

// contents is all of a file; nothing where it cannot be read.
func contents(disk vfs.FS, name string) []byte {
	f, err := disk.OpenFile(name, 0, 0)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // nothing was written
	size, err := f.Size()
	if err != nil {
		return nil
	}
	b := make([]byte, size)
	n, _ := f.ReadAt(b, 0) //nolint:errcheck // what could be read is what there is
	return b[:n]
}
