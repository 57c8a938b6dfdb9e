package quorum

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// stateStore keeps raft's term and vote: a few values in a file of two slots of 4 KiB, of which the older
// is overwritten, so that a torn write leaves the newer. Overwriting needs no space: raft cannot go on
// when it cannot store its term, and a full disk must not be the reason.
//
// Raft sets its term, then the term of its vote, then the candidate of its vote. The numbers wait for the
// candidate, and all are written at once: before that nobody else has heard of them, as long as there is
// one voter.
//
//	slot, big endian
//	   0  8  magic "BRNBSTAT"
//	   8  2  format version, 1
//	  10  2  length of the values
//	  12  4  CRC-32C of sequence and values
//	  16  8  sequence: the valid slot with the higher one counts
//	  24     values: 1 length, key, 2 length, value
//
//	file   | slot 0: sequences 1, 3, 5, ... | slot 1: sequences 2, 4, 6, ... |    sequence n is in slot (n+1) mod 2
//	       0                                4096                             8192
//
// A voter that forgets its vote may give a second one in the same term, and two leaders follow: hence a file with
// neither slot valid is damage, where an empty log is not. Raft calls it from one goroutine at a time,
// so there is no lock.
type stateStore struct {
	file     vfs.File
	sequence uint64
	values   map[string][]byte
	waiting  bool // some values are not in the file yet
	made     bool // the file is new, and its name not durable yet
}

var _ raft.StableStore = (*stateStore)(nil)

// termKey is where raft keeps its term. A new state file has the term of the first log entry.
const termKey = "CurrentTerm"

const (
	slotSize   = 4096
	slotMagic  = "BRNBSTAT"
	slotHeader = 24
)

// openState opens or makes the state file; its name is durable when the caller has synced the directory.
// fresh says that the directory holds no entry and no snapshot, so that a file without a valid slot is one
// whose making was interrupted.
func openState(fs vfs.FS, dir string, fresh bool) (*stateStore, error) {
	name := filepath.Join(dir, stateName)
	f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	s := &stateStore{file: f, values: map[string][]byte{termKey: binary.BigEndian.AppendUint64(nil, 1)}}
	if err := s.load(fresh); err != nil {
		f.Close()
		return nil, err
	}
	if s.sequence > 0 {
		return s, nil
	}
	if err := s.create(); err != nil {
		f.Close()
		return nil, fmt.Errorf("creating %s: %w", name, err)
	}
	return s, nil
}

// load reads the newer valid slot; sequence stays 0 if the file must be made.
func (s *stateStore) load(fresh bool) error {
	file, err := readFile(s.file)
	if err != nil {
		return err
	}
	for slot := 0; slot*slotSize < len(file); slot++ {
		sequence, values, err := parseSlot(file[slot*slotSize:])
		if errors.Is(err, errBadHeader) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.file.Name(), err)
		}
		if sequence > s.sequence {
			s.sequence, s.values = sequence, values
		}
	}
	term, _ := s.GetUint64([]byte(termKey))
	switch {
	case s.sequence == 0 && !fresh:
		return &DamageError{File: s.file.Name(), Reason: "neither of its two slots is valid"}
	case fresh && term > 1:
		return &DamageError{File: s.file.Name(), Reason: fmt.Sprintf("it knows term %d, but log and snapshot are gone", term)}
	}
	return nil
}

// create writes both slots, so that their space is taken.
func (s *stateStore) create() error {
	first, err := appendSlot(nil, 1, s.values)
	if err != nil {
		return err
	}
	both, err := appendSlot(first, 2, s.values)
	if err != nil {
		return err
	}
	if _, err := s.file.WriteAt(both, 0); err != nil {
		return err
	}
	s.sequence, s.made = 2, true
	return s.file.Sync()
}

// appendSlot appends a slot's bytes.
func appendSlot(dst []byte, sequence uint64, values map[string][]byte) ([]byte, error) {
	slot := make([]byte, slotHeader, slotSize)
	keys := make([]string, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		slot = append(slot, byte(len(key)))
		slot = append(slot, key...)
		slot = binary.BigEndian.AppendUint16(slot, uint16(len(values[key])))
		slot = append(slot, values[key]...)
	}
	if len(slot) > slotSize {
		return nil, fmt.Errorf("raft's state of %d bytes is larger than %d", len(slot), slotSize)
	}
	copy(slot, slotMagic)
	binary.BigEndian.PutUint16(slot[8:], formatVersion)
	binary.BigEndian.PutUint16(slot[10:], uint16(len(slot)-slotHeader))
	binary.BigEndian.PutUint64(slot[16:], sequence)
	binary.BigEndian.PutUint32(slot[12:], crc32.Checksum(slot[16:], castagnoli))
	return append(dst, slot[:slotSize]...), nil
}

// parseSlot reads a slot. The error is errBadHeader if it is not valid.
func parseSlot(b []byte) (sequence uint64, values map[string][]byte, err error) {
	if len(b) < slotHeader || string(b[:8]) != slotMagic {
		return 0, nil, errBadHeader
	}
	length := int(binary.BigEndian.Uint16(b[10:]))
	if slotHeader+length > min(len(b), slotSize) ||
		crc32.Checksum(b[16:slotHeader+length], castagnoli) != binary.BigEndian.Uint32(b[12:]) {
		return 0, nil, errBadHeader
	}
	if version := binary.BigEndian.Uint16(b[8:]); version != formatVersion {
		return 0, nil, fmt.Errorf("format version %d, and only %d is known: a newer program wrote it", version, formatVersion)
	}
	values = map[string][]byte{}
	for rest := b[slotHeader : slotHeader+length]; len(rest) > 0; {
		var key, value []byte
		if key, rest = cutBytes(rest, 1); rest == nil {
			return 0, nil, errBadHeader
		}
		if value, rest = cutBytes(rest, 2); rest == nil {
			return 0, nil, errBadHeader
		}
		values[string(key)] = slices.Clone(value)
	}
	return binary.BigEndian.Uint64(b[16:]), values, nil
}

// cutBytes takes bytes off b whose length stands in the first one or two; the rest is nil if there are
// too few.
func cutBytes(b []byte, lengthBytes int) (value, rest []byte) {
	length := lengthBytes
	for i := range lengthBytes {
		if i >= len(b) {
			return nil, nil
		}
		length += int(b[i]) << (8 * (lengthBytes - 1 - i))
	}
	if length > len(b) {
		return nil, nil
	}
	return b[lengthBytes:length], b[length:]
}

// Set implements raft.StableStore; the value, and those that waited, are durable when it returns.
func (s *stateStore) Set(key, value []byte) error {
	if !s.put(key, value) && !s.waiting {
		return nil
	}
	if err := s.write(); err != nil {
		return fmt.Errorf("writing %s: %w", s.file.Name(), err)
	}
	s.waiting = false
	return nil
}

// put sets a value in memory, and tells whether it is another one than before.
func (s *stateStore) put(key, value []byte) bool {
	if old, ok := s.values[string(key)]; ok && bytes.Equal(old, value) {
		return false
	}
	s.values[string(key)] = slices.Clone(value)
	return true
}

// write overwrites the older slot.
//
//	a crash during      the slot                   after the next start
//	the write           the older one is torn      the newer one counts: raft had not been answered
//	the sync            torn or whole              either; whole is as if the answer had been given
func (s *stateStore) write() error {
	next := s.sequence + 1
	slot, err := appendSlot(nil, next, s.values)
	if err != nil {
		return err
	}
	if _, err := s.file.WriteAt(slot, int64((next+1)%2)*slotSize); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	s.sequence = next
	return nil
}

// errNotFound is what raft expects for a key that was never set, by its text.
var errNotFound = errors.New("not found")

// Get implements raft.StableStore.
func (s *stateStore) Get(key []byte) ([]byte, error) {
	value, ok := s.values[string(key)]
	if !ok {
		return nil, errNotFound
	}
	return value, nil
}

// SetUint64 implements raft.StableStore. The value waits for the next Set.
//
// A value that waits is lost with a crash, which is as if the candidate had never stood.
func (s *stateStore) SetUint64(key []byte, value uint64) error {
	if s.put(key, binary.BigEndian.AppendUint64(nil, value)) {
		s.waiting = true
	}
	return nil
}

// GetUint64 implements raft.StableStore.
func (s *stateStore) GetUint64(key []byte) (uint64, error) {
	value, err := s.Get(key)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("%s: %q has %d bytes, not 8", s.file.Name(), key, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

// close closes the file.
func (s *stateStore) close() error { return s.file.Close() }
