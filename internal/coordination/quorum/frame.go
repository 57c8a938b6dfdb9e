package quorum

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Log segments and snapshots are files of frames. All numbers are big endian.
//
//	header, 32 bytes
//	   0  8  magic "BRNBMETA"
//	   8  2  format version, 1
//	  10  1  kind: 'L' log segment, 'S' snapshot
//	  11  1  0
//	  12  4  CRC-32C of the other 28 bytes
//	  16  8  salt, drawn anew for each file
//	  24  8  raft index: of a segment's first entry, of the last entry in a snapshot
//	frames
//	   0  4  magic "\xbaBMF"
//	   4  4  length of the payload
//	   8  4  CRC-32C of salt, position of the frame in the file, length, payload
//	  12     payload
//
// A frame is written by one call and synced before the next one is written. So a bad frame with nothing
// valid behind it is a torn write, which nobody was told of, and is cut; one with a valid frame behind it
// is damage. Salt and position make sure that data which happens to look like a frame is none.
const (
	fileMagic     = "BRNBMETA"
	formatVersion = 1
	headerSize    = 32
	frameMagic    = "\xbaBMF"
	frameHeader   = 12
	kindLog       = 'L'
	kindSnapshot  = 'S'
)

// maxFrame bounds a payload; it is far above what a batch of entries or a piece of a snapshot takes.
const maxFrame = 1 << 28

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// DamageError says that a file is not as it was written, and that what was lost cannot be told to be
// unimportant. Nothing is changed.
type DamageError struct {
	File     string
	Position int64
	Reason   string
}

// Error tells file, position and reason.
func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged at position %d: %s", e.File, e.Position, e.Reason)
}

// fileHeader is what stands at the start of a file.
type fileHeader struct {
	kind  byte
	salt  uint64
	index uint64
}

// append appends the header's bytes.
func (h fileHeader) append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, fileMagic...)
	dst = binary.BigEndian.AppendUint16(dst, formatVersion)
	dst = append(dst, h.kind, 0, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint64(dst, h.salt)
	dst = binary.BigEndian.AppendUint64(dst, h.index)
	b := dst[start:]
	binary.BigEndian.PutUint32(b[12:], headerCRC(b))
	return dst
}

// headerCRC is the sum of a header's bytes but those of the sum.
func headerCRC(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:12], castagnoli), castagnoli, b[16:headerSize])
}

// errBadHeader means a header that was not written whole, or was damaged.
var errBadHeader = errors.New("the header is damaged")

// readHeader reads the header of a file.
func readHeader(f vfs.File, kind byte) (fileHeader, error) {
	var b [headerSize]byte
	n, err := f.ReadAt(b[:], 0)
	if err != nil && err != io.EOF {
		return fileHeader{}, fmt.Errorf("reading %s: %w", f.Name(), err)
	}
	h, err := parseHeader(b[:n], kind)
	if errors.Is(err, errBadHeader) {
		return h, &DamageError{File: f.Name(), Reason: err.Error()}
	}
	if err != nil {
		return h, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return h, nil
}

// parseHeader reads a header of a kind.
func parseHeader(b []byte, kind byte) (fileHeader, error) {
	if len(b) < headerSize || string(b[:8]) != fileMagic || binary.BigEndian.Uint32(b[12:]) != headerCRC(b) {
		return fileHeader{}, errBadHeader
	}
	if version := binary.BigEndian.Uint16(b[8:]); version != formatVersion || b[10] != kind {
		return fileHeader{}, fmt.Errorf("format version %d of kind %q, and only version %d of kind %q is known here",
			version, b[10], formatVersion, kind)
	}
	return fileHeader{
		kind: b[10], salt: binary.BigEndian.Uint64(b[16:]), index: binary.BigEndian.Uint64(b[24:]),
	}, nil
}

// frameCRC is the sum of a frame at a position.
func frameCRC(salt uint64, position int64, payload []byte) uint32 {
	var b [20]byte
	binary.BigEndian.PutUint64(b[0:], salt)
	binary.BigEndian.PutUint64(b[8:], uint64(position))
	binary.BigEndian.PutUint32(b[16:], uint32(len(payload)))
	return crc32.Update(crc32.Checksum(b[:], castagnoli), castagnoli, payload)
}

// sealFrame fills in the first frameHeader bytes of a frame whose payload stands behind them.
func sealFrame(frame []byte, salt uint64, position int64) {
	payload := frame[frameHeader:]
	copy(frame, frameMagic)
	binary.BigEndian.PutUint32(frame[4:], uint32(len(payload)))
	binary.BigEndian.PutUint32(frame[8:], frameCRC(salt, position, payload))
}

// frameLength reads the length of a payload from a frame's header.
func frameLength(header []byte) (int64, bool) {
	length := int64(binary.BigEndian.Uint32(header[4:]))
	return length, string(header[:4]) == frameMagic && length <= maxFrame
}

// frameAt gives the payload of the frame at a position of a file's bytes; false if there is no valid one.
func frameAt(file []byte, salt uint64, position int64) (payload []byte, ok bool) {
	rest := file[position:]
	if len(rest) < frameHeader {
		return nil, false
	}
	length, ok := frameLength(rest)
	if !ok || length > int64(len(rest)-frameHeader) {
		return nil, false
	}
	payload = rest[frameHeader : frameHeader+length]
	return payload, binary.BigEndian.Uint32(rest[8:]) == frameCRC(salt, position, payload)
}

// frameBehind looks for a valid frame at or behind a position of a file's bytes.
//
// It costs one search for the magic over the rest of the file and a CRC for each hit; a frame's magic in a user's
// data is a hit whose CRC is wrong, since salt and position are not that data's.
func frameBehind(file []byte, salt uint64, position int64) (found int64, ok bool) {
	for position <= int64(len(file)) {
		i := bytes.Index(file[position:], []byte(frameMagic))
		if i < 0 {
			return 0, false
		}
		position += int64(i)
		if _, ok := frameAt(file, salt, position); ok {
			return position, true
		}
		position++
	}
	return 0, false
}

// createFile makes a file with a header, durable but for its name.
//
// The header is synced before a frame follows: a file whose header is torn therefore has nothing behind it that
// anybody was told of.
func createFile(fs vfs.FS, name string, h fileHeader) (vfs.File, error) {
	f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	if _, err = f.WriteAt(h.append(nil), 0); err == nil {
		err = f.Sync()
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("creating %s: %w", name, err)
	}
	return f, nil
}

// readFile reads a whole file.
func readFile(f vfs.File) ([]byte, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if n, err := f.ReadAt(b, 0); err != nil && !(err == io.EOF && n == len(b)) {
		return nil, fmt.Errorf("reading %s: %w", f.Name(), err)
	}
	return b, nil
}

// The names of our files. Kafka looks at folders only, and at none of these.
const (
	namePrefix     = ".barnabas-meta."
	logPrefix      = namePrefix + "log."
	snapshotPrefix = namePrefix + "snapshot."
	snapshotTemp   = namePrefix + "snapshot.tmp"
	stateName      = namePrefix + "state"
	lockName       = namePrefix + "lock"
)

// numberedName is the path of a file that has a number in its name.
func numberedName(dir, prefix string, number uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%s%020d", prefix, number))
}

// listNumbered finds the numbers of the files with a prefix, in their order.
func listNumbered(fs vfs.FS, dir, prefix string) ([]uint64, error) {
	entries, err := fs.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	for _, entry := range entries {
		digits, ok := strings.CutPrefix(entry.Name(), prefix)
		if number, err := strconv.ParseUint(digits, 10, 64); ok && err == nil && len(digits) == 20 {
			numbers = append(numbers, number)
		}
	}
	return numbers, nil
}
