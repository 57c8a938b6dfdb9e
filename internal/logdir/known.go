package logdir

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// knownFile, in the directory of metadata.log.dir, lists the log directories that this broker has used,
// one a line, with their ids ("-" where there is none):
//
//	version=0
//	NV4_ueZYv-GIoATEVmlvTQ /var/lib/one
//	- /var/lib/two
//
// A listed directory that is empty at the next start is most likely a mount point without its disk. It is
// taken as failed, and not as a new one: partitions made in it would hide those on the disk.
const knownFile = ".barnabas-directories"

// readKnown reads the paths of the known directories. None are known where there is no list, as on the first
// start and in directories of Kafka's. A list that cannot be read stops the start, like everything else in
// the directory of the metadata.
func readKnown(files vfs.FS, dir string) ([]string, error) {
	text, err := readFile(files, filepath.Join(dir, knownFile), 1<<20)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(text), "\n")
	if lines[0] != "version=0" {
		return nil, fmt.Errorf("%s: the first line is not version=0", filepath.Join(dir, knownFile))
	}
	var paths []string
	for _, line := range lines[1:] {
		if _, path, ok := strings.Cut(line, " "); ok {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// writeKnown brings the list up to date with the directories of the configuration. Those that were taken out
// of log.dirs are forgotten; those that are offline stay, or an empty mount point would be taken for new at
// the start after the next.
func (s *Set) writeKnown(known []string) error {
	text := []byte("version=0\n")
	var paths []string
	for _, d := range s.dirs {
		if d.err() != nil && !slices.Contains(known, d.path) {
			continue // it was never used
		}
		id := "-"
		if !d.identity.Directory.IsZero() {
			id = d.identity.Directory.String()
		}
		text = fmt.Appendf(text, "%s %s\n", id, d.path)
		paths = append(paths, d.path)
	}
	if slices.Equal(paths, known) {
		return nil
	}
	return writeFile(s.files, s.metadata.file(knownFile), text)
}
