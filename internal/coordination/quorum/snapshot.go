package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// A snapshot is a file of frames (frame.go), named by the index of the last entry in it:
//
//	first frame: raft's metadata; varints, unsigned
//	  index, term, index of the configuration, configuration: length and bytes as raft encodes it
//	frames with pieces of the tree (tree/snapshot.go)
//	an empty frame: the end
//
// It is written under another name, synced and renamed; then the one before it goes.
//
//	header 'S', index 4711
//	frame: index, term, index of the configuration, configuration
//	frame: 256 KiB of the tree
//	...
//	frame: the rest of the tree
//	frame of 0 bytes
//
// Without the last frame a file that was cut between two frames would pass for whole. Pieces bound what is held in
// memory on either side, and each is checked before a byte of it is used.
const snapshotPiece = 256 << 10

// snapshotStore keeps the newest snapshot.
type snapshotStore struct {
	fs   vfs.FS
	dir  string
	salt func() uint64

	mu   sync.Mutex
	meta *raft.SnapshotMeta // nil if there is none
}

var _ raft.SnapshotStore = (*snapshotStore)(nil)

// openSnapshots finds the newest snapshot and removes what an interrupted one left behind.
func openSnapshots(fs vfs.FS, dir string, salt func() uint64) (*snapshotStore, error) {
	s := &snapshotStore{fs: fs, dir: dir, salt: salt}
	if err := fs.Remove(filepath.Join(dir, snapshotTemp)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	indexes, err := listNumbered(fs, dir, snapshotPrefix)
	if err != nil || len(indexes) == 0 {
		return s, err
	}
	r, err := s.reader(indexes[len(indexes)-1])
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // it was only read
	s.meta = r.meta
	return s, s.removeOlder(indexes)
}

// removeOlder removes all snapshots but the newest.
//
// Not synced: one that comes back after a power cut is removed by the next start.
func (s *snapshotStore) removeOlder(indexes []uint64) error {
	for _, index := range indexes[:len(indexes)-1] {
		if err := s.fs.Remove(numberedName(s.dir, snapshotPrefix, index)); err != nil {
			return err
		}
	}
	return nil
}

// index is the last entry in the newest snapshot; 0 if there is none.
func (s *snapshotStore) index() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meta == nil {
		return 0
	}
	return s.meta.Index
}

// List implements raft.SnapshotStore.
func (s *snapshotStore) List() ([]*raft.SnapshotMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.meta == nil {
		return nil, nil
	}
	meta := *s.meta
	return []*raft.SnapshotMeta{&meta}, nil
}

// Open implements raft.SnapshotStore. Reading fails with a *DamageError where the file is not as it was
// written.
func (s *snapshotStore) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	metas, _ := s.List()
	if len(metas) == 0 || metas[0].ID != id {
		return nil, nil, fmt.Errorf("no snapshot %s", id)
	}
	r, err := s.reader(metas[0].Index)
	if err != nil {
		return nil, nil, err
	}
	return r.meta, r, nil
}

// Create implements raft.SnapshotStore.
func (s *snapshotStore) Create(
	version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	h := fileHeader{kind: kindSnapshot, salt: s.salt(), index: index}
	f, err := createFile(s.fs, filepath.Join(s.dir, snapshotTemp), h)
	if err != nil {
		return nil, err
	}
	sink := &snapshotSink{store: s, file: f, fileHeader: h, position: headerSize, meta: raft.SnapshotMeta{
		Version: version, ID: fmt.Sprintf("%d-%d", term, index), Index: index, Term: term,
		Configuration: configuration, ConfigurationIndex: configurationIndex,
	}}
	b := make([]byte, frameHeader, 256)
	b = binary.AppendUvarint(b, index)
	b = binary.AppendUvarint(b, term)
	b = binary.AppendUvarint(b, configurationIndex)
	encoded := raft.EncodeConfiguration(configuration)
	b = binary.AppendUvarint(b, uint64(len(encoded)))
	if err := sink.frame(append(b, encoded...)); err != nil {
		_ = sink.Cancel() // the first error is the one to tell
		return nil, err
	}
	sink.buffer = make([]byte, frameHeader, frameHeader+snapshotPiece)
	return sink, nil
}

// snapshotSink is a snapshot that is being written.
type snapshotSink struct {
	store *snapshotStore
	file  vfs.File
	fileHeader
	position int64
	buffer   []byte // room for a frame's header, then what waits to be written
	meta     raft.SnapshotMeta
	done     bool
}

// ID implements raft.SnapshotSink.
func (k *snapshotSink) ID() string { return k.meta.ID }

// Write implements io.Writer.
func (k *snapshotSink) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), cap(k.buffer)-len(k.buffer))
		k.buffer = append(k.buffer, rest[:n]...)
		rest = rest[n:]
		if len(k.buffer) == cap(k.buffer) {
			if err := k.flush(); err != nil {
				return 0, err
			}
		}
	}
	k.meta.Size += int64(len(p))
	return len(p), nil
}

// flush writes what waits.
func (k *snapshotSink) flush() error {
	if len(k.buffer) == frameHeader {
		return nil
	}
	err := k.frame(k.buffer)
	k.buffer = k.buffer[:frameHeader]
	return err
}

// frame writes one frame.
func (k *snapshotSink) frame(b []byte) error {
	sealFrame(b, k.salt, k.position)
	_, err := k.file.WriteAt(b, k.position)
	k.position += int64(len(b))
	return err
}

// Close implements raft.SnapshotSink: the snapshot is complete, and takes the place of the one before.
//
//	stopped after                       at the next start
//	writing some of the frames          snapshot.tmp is removed, the older snapshot and the log are complete
//	the sync                            the same
//	the rename, not durable             either the same, or the new one, which is whole
//	the name is durable                 the new one; the older one is removed, and the log up to it
//
// The log is cut only afterwards, by raft's DeleteRange. So there is always a snapshot with all that follows it.
func (k *snapshotSink) Close() error {
	if k.done {
		return nil
	}
	if err := k.finish(); err != nil {
		_ = k.Cancel() // the first error is the one to tell
		return fmt.Errorf("writing a snapshot: %w", err)
	}
	k.done = true
	return k.store.installed(k.meta)
}

// finish writes the end and makes the file durable under its name.
func (k *snapshotSink) finish() error {
	if err := k.flush(); err != nil {
		return err
	}
	if err := k.frame(k.buffer[:frameHeader]); err != nil {
		return err
	}
	if err := k.file.Sync(); err != nil {
		return err
	}
	if err := k.file.Close(); err != nil {
		return err
	}
	s := k.store
	if err := s.fs.Rename(k.file.Name(), numberedName(s.dir, snapshotPrefix, k.index)); err != nil {
		return err
	}
	return s.fs.SyncDir(s.dir)
}

// installed makes a durable snapshot the newest and removes the older ones.
//
// A failure to remove an older one is told to raft, but the new one counts: meta is set first.
func (s *snapshotStore) installed(meta raft.SnapshotMeta) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meta = &meta
	indexes, err := listNumbered(s.fs, s.dir, snapshotPrefix)
	if err != nil || len(indexes) == 0 {
		return err
	}
	return s.removeOlder(indexes)
}

// Cancel implements raft.SnapshotSink.
func (k *snapshotSink) Cancel() error {
	if k.done {
		return nil
	}
	k.done = true
	k.file.Close()
	return k.store.fs.Remove(k.file.Name())
}

// snapshotReader reads the tree's bytes of a snapshot, and checks every frame.
// frame is used again for each; what Read gives is copied out of it.
type snapshotReader struct {
	file vfs.File
	fileHeader
	size     int64
	position int64
	frame    []byte // the last frame
	rest     []byte // what was not read of it
	end      bool
	meta     *raft.SnapshotMeta
}

// reader opens a snapshot and reads its metadata.
func (s *snapshotStore) reader(index uint64) (*snapshotReader, error) {
	f, err := s.fs.OpenFile(numberedName(s.dir, snapshotPrefix, index), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	r := &snapshotReader{file: f, position: headerSize}
	if err := r.start(index); err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

// start reads header and metadata.
func (r *snapshotReader) start(index uint64) (err error) {
	if r.size, err = r.file.Size(); err != nil {
		return err
	}
	if r.fileHeader, err = readHeader(r.file, kindSnapshot); err != nil {
		return err
	}
	if err := r.next(); err != nil {
		return err
	}
	if r.meta, err = parseSnapshotMeta(r.rest); err == nil && (r.meta.Index != index || r.index != index) {
		err = errBadEntry
	}
	r.rest = nil
	if err != nil {
		return &DamageError{File: r.file.Name(), Position: headerSize, Reason: err.Error()}
	}
	return nil
}

// parseSnapshotMeta reads the first frame.
func parseSnapshotMeta(b []byte) (meta *raft.SnapshotMeta, err error) {
	r := entryReader{all: b}
	meta = &raft.SnapshotMeta{Version: 1, Index: r.uvarint(), Term: r.uvarint(), ConfigurationIndex: r.uvarint()}
	encoded := r.bytes()
	if r.bad || r.offset != len(b) || meta.Index == 0 {
		return nil, errBadEntry
	}
	defer func() {
		if recover() != nil { // raft's decoder panics on what it does not know
			meta, err = nil, errBadEntry
		}
	}()
	meta.Configuration = raft.DecodeConfiguration(encoded)
	meta.ID = fmt.Sprintf("%d-%d", meta.Term, meta.Index)
	return meta, nil
}

// read reads exactly len(b) bytes.
func (r *snapshotReader) read(b []byte, position int64) error {
	if n, err := r.file.ReadAt(b, position); n < len(b) {
		return fmt.Errorf("reading %s at %d: %w", r.file.Name(), position, err)
	}
	return nil
}

// next reads the next frame into rest.
func (r *snapshotReader) next() error {
	damage := &DamageError{File: r.file.Name(), Position: r.position, Reason: "the frame is not valid"}
	if r.size-r.position < frameHeader {
		damage.Reason = "it ends before its last frame"
		return damage
	}
	var header [frameHeader]byte
	if err := r.read(header[:], r.position); err != nil {
		return err
	}
	length, ok := frameLength(header[:])
	if !ok || length > r.size-r.position-frameHeader {
		return damage
	}
	if int64(cap(r.frame)) < length {
		r.frame = make([]byte, length)
	}
	r.rest = r.frame[:length]
	if err := r.read(r.rest, r.position+frameHeader); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(header[8:]) != frameCRC(r.salt, r.position, r.rest) {
		return damage
	}
	r.position += frameHeader + length
	r.end = length == 0
	if r.end && r.position != r.size {
		damage.Reason = "something stands behind its last frame"
		return damage
	}
	return nil
}

// Read implements io.Reader.
func (r *snapshotReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.end {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (r *snapshotReader) Close() error { return r.file.Close() }
