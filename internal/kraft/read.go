package kraft

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

// Read reads the newest snapshot in dir, which is a __cluster_metadata-0, and the log behind it. The error
// is fs.ErrNotExist where there is no such directory.
//
// What a crash has left half written at the end of the log is left out and named in Image.Damage; so is
// whatever stands behind damaged bytes. Records of an unfinished transaction of the controller do not count.
// The log of a quorum of several voters may end with records that were never committed.
func Read(files vfs.FS, dir string) (*Image, error) {
	entries, err := files.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var snapshots, segments []string
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".checkpoint":
			snapshots = append(snapshots, e.Name())
		case ".log":
			segments = append(segments, e.Name())
		}
	}
	r := &reader{files: files, dir: dir, image: newImage()}
	if len(snapshots) > 0 {
		if err := r.snapshot(slices.Max(snapshots)); err != nil {
			return nil, err
		}
	}
	slices.Sort(segments)
	for i, name := range segments {
		if i+1 < len(segments) && baseOf(segments[i+1]) <= r.image.End {
			continue // all of it is in the snapshot
		}
		if err := r.segment(name); err != nil {
			return nil, err
		}
		if r.image.Damage != "" {
			break
		}
	}
	return r.image, nil
}

// baseOf is the offset that a file's name begins with; -1 where it is none.
//
//	00000000000000000412.log                      a segment: the offset of its first record
//	00000000000000000412-0000000003.checkpoint    a snapshot: the offset behind its last one, and the epoch
func baseOf(name string) P.Offset {
	digits, _, _ := strings.Cut(name, ".")
	digits, _, _ = strings.Cut(digits, "-")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || len(digits) != 20 {
		return P.NoOffset
	}
	return P.Offset(n)
}

// reader is a Read under way.
//
// Records are applied as they are read, so that memory holds the image and one batch. held is the exception: a
// transaction of the controller (KIP-868) counts as a whole or not at all.
type reader struct {
	files vfs.FS
	dir   string
	image *Image
	// held are the records of the transaction that is open.
	held   [][]byte
	within bool
}

// snapshot reads a snapshot, whose every record counts; its offsets are its own.
func (r *reader) snapshot(name string) error {
	end := baseOf(name)
	if end < 0 {
		return fmt.Errorf("%s: the name begins with no offset", filepath.Join(r.dir, name))
	}
	if err := r.batches(name, 0); err != nil {
		return err
	}
	if r.image.Damage != "" {
		return fmt.Errorf("the newest snapshot of the metadata is damaged: %s", r.image.Damage)
	}
	r.image.End = end
	return nil
}

// segment reads a segment of the log from where the image ends.
func (r *reader) segment(name string) error {
	base := baseOf(name)
	if base < 0 {
		return fmt.Errorf("%s: the name is no offset", filepath.Join(r.dir, name))
	}
	if base > r.image.End {
		return fmt.Errorf("%s: the metadata log has a gap: records %d to %d are missing", filepath.Join(r.dir, name), r.image.End, base-1)
	}
	return r.batches(name, r.image.End)
}

// batches takes in the batches of a file, without records below from.
func (r *reader) batches(name string, from P.Offset) error {
	path := filepath.Join(r.dir, name)
	f, err := r.files.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	for position := int64(0); position < size; {
		batch, err := readBatch(f, position, size)
		if err != nil {
			return r.stopped(f, path, position, size, err)
		}
		position += int64(batch.Length())
		if err := r.batch(batch, from); err != nil {
			return fmt.Errorf("%s: batch at offset %d: %w", path, batch.BaseOffset(), err)
		}
	}
	return nil
}

// stopped notes that bytes are no batch. Zeros are what is left of a preallocated file.
//
// A damaged tail is no error: Kafka itself truncates it when it starts. A damaged snapshot is one, since what
// is before the log cannot be had from anywhere else.
func (r *reader) stopped(f io.ReaderAt, path string, position, size int64, err error) error {
	if corrupt := new(record.CorruptError); !errors.Is(err, record.ErrShort) && !errors.As(err, &corrupt) {
		return err
	}
	buffer := make([]byte, 64<<10)
	for at := position; at < size; at += int64(len(buffer)) {
		chunk := buffer[:min(int64(len(buffer)), size-at)]
		if _, err := f.ReadAt(chunk, at); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if slices.ContainsFunc(chunk, func(b byte) bool { return b != 0 }) {
			r.image.Damage = fmt.Sprintf("%s ends at position %d of %d: %v", path, position, size, err)
			return nil
		}
	}
	return nil
}

// readBatch reads the batch at a position.
func readBatch(f io.ReaderAt, position, size int64) (record.Batch, error) {
	head := make([]byte, min(record.HeaderSize, size-position))
	if _, err := f.ReadAt(head, position); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	h, err := record.ParseHeader(head)
	if err != nil {
		return nil, err
	}
	if int64(h.Size) > size-position {
		return nil, record.ErrShort
	}
	batch := make(record.Batch, h.Size)
	if _, err := f.ReadAt(batch, position); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if h.Magic != 2 || !batch.ValidCRC() {
		return nil, &record.CorruptError{Code: P.CorruptMessage, Offset: h.BaseOffset, Reason: "it has another magic than 2, or a wrong checksum"}
	}
	return batch, nil
}

// batch takes in the records of one batch.
func (r *reader) batch(batch record.Batch, from P.Offset) error {
	for rec, err := range batch.Records(nil) {
		if err != nil {
			return err
		}
		if rec.Offset < from {
			continue
		}
		if batch.Control() {
			r.control(rec)
		} else if err := r.record(rec.Value); err != nil {
			return fmt.Errorf("offset %d: %w", rec.Offset, err)
		}
	}
	r.image.End = max(r.image.End, batch.NextOffset())
	return nil
}

// control takes the voters out of a leader's first record; a transaction ends with the leader that began it.
func (r *reader) control(rec record.Record) {
	if kind, err := record.ControlTypeOf(rec); err != nil || kind != record.LeaderChange {
		return
	}
	r.held, r.within = nil, false
	v := wire.NewReader(rec.Value)
	version := v.Int16()
	v.Int32() // leader
	var voters []P.BrokerID
	for n := v.CompactArrayLen(5); n > 0; n-- {
		voters = append(voters, P.BrokerID(v.Int32()))
		if version >= 1 {
			v.UUID() // the voter's directory
		}
		v.SkipTags()
	}
	if v.Err() == nil && len(voters) > 0 {
		r.image.Voters = voters
	}
}

// record takes in one record, now or when its transaction ends (KIP-868).
func (r *reader) record(value []byte) error {
	v := wire.NewReader(value)
	kind, _, err := header(&v)
	if err != nil {
		return err
	}
	switch kind {
	case beginTransaction:
		r.held, r.within = nil, true
	case abortTransaction:
		r.held, r.within = nil, false
	case endTransaction:
		held := r.held
		r.held, r.within = nil, false
		for _, value := range held {
			if err := r.image.apply(value); err != nil {
				return err
			}
		}
	default:
		if !r.within {
			return r.image.apply(value)
		}
		r.held = append(r.held, slices.Clone(value))
	}
	return nil
}
