package log

import "github.com/barnabas-mq/barnabas/internal/vfs"

// Slice is a range of a segment's file that holds whole batches. It pins the file: until Release, it stays
// open and its bytes stay as they are, whatever retention, deletion or compaction do. Truncation may cut
// into a slice above the high watermark, which only followers read; reads then come up short. The zero Slice
// is empty and needs no Release.
//
//	Read ──▶ Slice (file pinned) ──▶ sendfile or ReadInto, any number of times ──▶ Release, once
//
// It is a value, so that a Fetch of many partitions allocates none; a copy of it is the same loan. A slice that is
// never released keeps a descriptor open, and the disk space of a deleted segment taken.
type Slice struct {
	// File is the open file; nil for an empty slice.
	File vfs.File
	// Position is where in File the range begins, Length how long it is, in bytes.
	Position int64
	Length   int
	// Zeros is how many bytes of zero are known to follow the range in File, and stay there as the range does:
	// the first bytes of the next batch's offset. A Fetch response that ends in as many zeros is sent with them.
	Zeros int

	pinned *openFile
}

// Release ends the use of the slice; exactly once for each that Read returned.
func (s Slice) Release() {
	if s.pinned != nil {
		s.pinned.release()
	}
}

// ReadInto reads the slice into dst, which must have room for Length bytes.
func (s Slice) ReadInto(dst []byte) error {
	if s.Length == 0 {
		return nil
	}
	return readFull(s.File, dst[:s.Length], s.Position)
}
