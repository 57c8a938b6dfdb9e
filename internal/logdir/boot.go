package logdir

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// bootFile is our own file in a log directory. A broker of Kafka's passes over it; after one has run here, it
// is as good as before: a boot id still says whether the page cache survived, whoever filled it.
//
//	event                             the file afterwards
//	Load, everything opened           present boot, present path, damaged folders as suspects
//	verification finds damage         one suspect more
//	kill -9, start in the same boot   unchanged: believed (SameBoot)
//	power cut, or another boot        another boot id: not believed (Scan), written anew when Load has scanned
//	a controller has heard of a loss  no longer unheard
//	the directory fails               removed, if the disk lets it: not believed
//	moved or copied elsewhere         another path: not believed
const bootFile = ".barnabas-boot"

// boot is the content of .barnabas-boot; see the package comment.
type boot struct {
	// id is the boot in which the directory was last opened for writing.
	id string
	// path is where the directory was then. A copy made of a running broker's directory has files from
	// different moments, and must be scanned although the boot is the same.
	path string
	// suspects are folders that must be scanned, sorted.
	suspects []string
	// unheard is set where records may have been lost and no controller has heard of it yet ([Set.Heard]): a
	// life that ends before must not pass for one that only was killed.
	unheard bool
}

// equal reports whether both say the same.
func (b boot) equal(o boot) bool {
	return b.id == o.id && b.path == o.path && b.unheard == o.unheard && slices.Equal(b.suspects, o.suspects)
}

// readBoot reads .barnabas-boot in dir. Whatever is not a whole file of our own says nothing: then the
// directory is scanned, which is always safe. The suspects of a torn file are lost with it, and found
// again by that scan.
func readBoot(files vfs.FS, dir string) (boot, error) {
	text, err := readFile(files, filepath.Join(dir, bootFile), 64<<20)
	if missing(err) {
		return boot{}, nil
	}
	if err != nil {
		return boot{}, err
	}
	var b boot
	lines := strings.Split(string(text), "\n")
	if lines[0] != "version=0" || lines[len(lines)-1] != "" {
		return boot{}, nil
	}
	for _, line := range lines[1 : len(lines)-1] {
		// Keys of a later version are passed over.
		key, value, _ := strings.Cut(line, "=")
		switch key {
		case "boot.id":
			b.id = value
		case "path":
			b.path = value
		case "unheard":
			b.unheard = value == "true"
		case "suspect":
			b.suspects = append(b.suspects, value)
		}
	}
	return b, nil
}

// write stores b in dir, durably: a suspect that is forgotten would be served.
func (b boot) write(files vfs.FS, dir string) error {
	text := fmt.Appendf(nil, "version=0\nboot.id=%s\npath=%s\n", b.id, b.path)
	if b.unheard {
		text = append(text, "unheard=true\n"...)
	}
	slices.Sort(b.suspects)
	for _, folder := range b.suspects {
		text = fmt.Appendf(text, "suspect=%s\n", folder)
	}
	return writeFile(files, filepath.Join(dir, bootFile), text)
}

// survived reports whether what was written before is still as the last process left it: the kernel is the
// same boot's, and the directory is where it was.
func (b boot) survived(bootID, dir string) bool {
	return bootID != "" && b.id == bootID && b.path == dir
}
