package adopt

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/logdir"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// scanners is how many partitions are looked at at a time.
const scanners = 8

// epochMax bounds the leader epochs that are believed: the field is outside the checksum of a batch, and one
// near the end of its range would leave no room for new leaders.
const epochMax = P.LeaderEpoch(math.MaxInt32 / 2)

// logEnd is what the files of one partition say.
type logEnd struct {
	// epoch is the highest leader epoch, NoLeaderEpoch where there is none.
	epoch P.LeaderEpoch
	// producer is the highest producer id among what was read.
	producer P.ProducerID
	// oldFormat is true where the last batch is of message format 0 or 1.
	oldFormat bool
}

// scan looks at all partitions; with all also at every batch of theirs, for producer ids.
//
// Reading all batches takes as long as the disk needs for their headers; it is done only where nobody knows
// which producer ids were given out.
func scan(ctx context.Context, files vfs.FS, found []logdir.Found, all bool, progress func(done, of int)) (map[P.TopicPartition]logEnd, error) {
	var mu sync.Mutex
	ends := make(map[P.TopicPartition]logEnd, len(found))
	var failed error
	var wg sync.WaitGroup
	work := make(chan logdir.Found)
	for range min(scanners, len(found)) {
		wg.Go(func() {
			for f := range work {
				end, err := scanPartition(files, filepath.Join(f.Dir, f.Folder), all)
				mu.Lock()
				ends[f.Partition] = end
				failed = cmp.Or(failed, err)
				progress(len(ends), len(found))
				mu.Unlock()
			}
		})
	}
	for _, f := range found {
		if ctx.Err() != nil {
			break
		}
		work <- f
	}
	close(work)
	wg.Wait()
	return ends, cmp.Or(failed, ctx.Err())
}

// scanPartition looks at one partition's folder.
//
//	leader-epoch-checkpoint    may be behind: it is written when an epoch begins, and may be lost in a crash
//	the last batches           behind the last index entry, from the newest segment with any batch
//
// The higher of the two counts.
func scanPartition(files vfs.FS, dir string, all bool) (logEnd, error) {
	end := logEnd{epoch: P.NoLeaderEpoch, producer: P.NoProducerID}
	var err error
	if end.epoch, err = checkpointedEpoch(files, dir); err != nil {
		return end, err
	}
	segments, err := segmentsOf(files, dir)
	if err != nil {
		return end, err
	}
	for i := len(segments) - 1; i >= 0; i-- {
		seen, err := end.segment(files, segments[i], all)
		if err != nil {
			return end, err
		}
		if seen && !all {
			break
		}
	}
	return end, nil
}

// segmentsOf lists the segment files of a folder, in order.
func segmentsOf(files vfs.FS, dir string) ([]string, error) {
	entries, err := files.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if base, ok := strings.CutSuffix(e.Name(), ".log"); ok && len(base) == 20 {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// segment takes in the batches of a segment, only those behind the last index entry unless all; seen is
// false where there is none.
func (end *logEnd) segment(files vfs.FS, path string, all bool) (seen bool, err error) {
	f, err := files.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return false, err
	}
	from := int64(0)
	if !all {
		if from, err = lastIndexed(files, strings.TrimSuffix(path, ".log")+".index"); err != nil {
			return false, err
		}
	}
	if seen, err = end.batches(newWalker(f, from, size)); err == nil && !seen && from > 0 {
		return end.batches(newWalker(f, 0, size)) // the index is of another segment, or damaged
	}
	return seen, err
}

func (end *logEnd) batches(w *walker) (seen bool, err error) {
	for {
		h, ok, err := w.step()
		if err != nil {
			return seen, fmt.Errorf("reading batches: %w", err)
		}
		if !ok {
			return seen, nil
		}
		seen = true
		end.oldFormat = h.Magic < 2
		if h.LeaderEpoch <= epochMax {
			end.epoch = max(end.epoch, h.LeaderEpoch)
		}
		end.producer = max(end.producer, h.ProducerID)
	}
}

// lastIndexed is the position of the last entry of an offset index, 0 where there is none. Entries are
// (relative offset int32, position int32); what is preallocated behind them is zeros.
func lastIndexed(files vfs.FS, path string) (int64, error) {
	f, err := files.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	position := func(entry int) int64 {
		var b [8]byte
		if _, e := readAt(f, b[:], int64(entry)*8); e != nil && err == nil {
			err = e
		}
		return int64(binary.BigEndian.Uint32(b[4:]))
	}
	used := sort.Search(int(size/8), func(i int) bool { return position(i) == 0 && i > 0 })
	if used == 0 {
		return 0, err
	}
	return position(used - 1), err
}

// checkpointedEpoch is the last epoch in leader-epoch-checkpoint: a version, a number of lines, and lines of
// epoch and start offset. A file that is not whole says nothing.
func checkpointedEpoch(files vfs.FS, dir string) (P.LeaderEpoch, error) {
	text, err := readFile(files, filepath.Join(dir, "leader-epoch-checkpoint"))
	if errors.Is(err, fs.ErrNotExist) {
		return P.NoLeaderEpoch, nil
	}
	if err != nil {
		return P.NoLeaderEpoch, err
	}
	highest := P.NoLeaderEpoch
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range lines[min(2, len(lines)):] {
		word, _, _ := strings.Cut(line, " ")
		if epoch, err := strconv.ParseInt(word, 10, 32); err == nil && P.LeaderEpoch(epoch) <= epochMax {
			highest = max(highest, P.LeaderEpoch(epoch))
		}
	}
	return highest, nil
}

// fileMax bounds what is read of a file at once.
const fileMax = 1 << 30

// readFile reads a whole file.
func readFile(files vfs.FS, path string) ([]byte, error) {
	f, err := files.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > fileMax {
		return nil, fmt.Errorf("%s: %d bytes are too many", path, size)
	}
	b := make([]byte, size)
	n, err := readAt(f, b, 0)
	return b[:n], err
}

// records walks all records of a partition, without control records, up to what is no whole batch.
func records(files vfs.FS, dir string, visit func(record.Record)) error {
	segments, err := segmentsOf(files, dir)
	if err != nil {
		return err
	}
	for _, path := range segments {
		if err := segmentRecords(files, path, visit); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func segmentRecords(files vfs.FS, path string, visit func(record.Record)) error {
	f, err := files.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	for w := newWalker(f, 0, size); ; {
		h, ok, err := w.step()
		if err != nil || !ok {
			return err
		}
		if h.Magic == 2 && h.Control() {
			continue
		}
		e, err := w.entry(h)
		if err != nil {
			return err
		}
		if !e.ValidCRC() {
			return nil
		}
		for r, err := range e.Records(nil) {
			if err != nil {
				return nil //nolint:nilerr // damaged: the log itself judges that when it opens
			}
			visit(r)
		}
	}
}
