package logdir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// errTooLarge is a file that cannot be what its name says.
var errTooLarge = errors.New("the file is too large")

// The small files of a directory are read and written whole, and replaced rather than changed:
//
//	1. write path.tmp    2. sync it    3. rename it to path    4. sync the directory
//
// Without 2 the name could survive a power cut and the content not; without 4 neither need to, and what comes
// after may rest on it. A path.tmp that is left over is overwritten the next time.

// readFile reads a whole file of at most limit bytes. The limit is checked before memory is taken: the size
// of a damaged file can be anything.
func readFile(files vfs.FS, path string, limit int64) ([]byte, error) {
	file, err := files.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, fmt.Errorf("%s: %w: %d bytes", path, errTooLarge, size)
	}
	data := make([]byte, size)
	n, err := file.ReadAt(data, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return data[:n], nil
}

// writeFile replaces the file at path by way of path.tmp, so that a crash leaves the old or the new one,
// whole; once it returns it is the new one.
//
// Two calls for one path must not overlap: they would share path.tmp.
func writeFile(files vfs.FS, path string, data []byte) error {
	temporary := path + ".tmp"
	file, err := files.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, 0)
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr // some file systems tell of a failed write only here
	}
	if err == nil {
		err = files.Rename(temporary, path)
	}
	if err != nil {
		return err
	}
	return files.SyncDir(filepath.Dir(path))
}
