package log

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// The files of a partition, by suffix and name. The life of a segment's files by their suffixes:
//
//	(roll, recovery) ────────────────────────────▶ X.log ─▶ X.log.deleted ─▶ removed after file.delete.delay.ms
//	(log cleaner)  X.log.cleaned ─▶ X.log.swap ─────┘
//	truncation, recovery: X.log removed at once
const (
	logSuffix       = ".log"
	indexSuffix     = ".index"
	timeIndexSuffix = ".timeindex"
	txnIndexSuffix  = ".txnindex"
	snapshotSuffix  = ".snapshot"

	cleanedSuffix = ".cleaned"
	swapSuffix    = ".swap"
	deletedSuffix = ".deleted"

	temporarySuffix = ".tmp" // of a small file that is being replaced

	epochsName   = "leader-epoch-checkpoint"
	metadataName = "partition.metadata"

	deleteDirSuffix = "-delete"
)

// segmentSuffixes are the files that belong to one segment and are renamed and deleted together; the
// snapshot of its base offset goes with them where the segment goes for good.
var segmentSuffixes = [...]string{logSuffix, indexSuffix, timeIndexSuffix, txnIndexSuffix}

// offsetDigits is the width of an offset in a file name.
const offsetDigits = 20

// fileName is the name of a file of the segment that begins at base.
func fileName(base protocol.Offset, suffix string) string {
	return fmt.Sprintf("%020d%s", int64(base), suffix)
}

// filePath is fileName below dir.
func filePath(dir string, base protocol.Offset, suffix string) string {
	return filepath.Join(dir, fileName(base, suffix))
}

// parseFileName takes the name of a segment's file apart: the offset, the kind of file and what is behind
// it (".cleaned" and the like, or nothing). Files that are not a segment's give ok false.
//
//	00000000000000004711.log                4711, ".log", ""
//	00000000000000004711.index.swap         4711, ".index", ".swap"
//	00000000000000004711.log.tmp            not ok: no kind that belongs to a segment
//	leader-epoch-checkpoint                 not ok
func parseFileName(name string) (base protocol.Offset, kind, state string, ok bool) {
	if len(name) <= offsetDigits || name[offsetDigits] != '.' {
		return 0, "", "", false
	}
	for _, c := range []byte(name[:offsetDigits]) {
		if c < '0' || c > '9' {
			return 0, "", "", false
		}
	}
	n, err := strconv.ParseInt(name[:offsetDigits], 10, 64)
	if err != nil {
		return 0, "", "", false
	}
	kind = name[offsetDigits:]
	for _, suffix := range [...]string{cleanedSuffix, swapSuffix, deletedSuffix} {
		if rest, found := strings.CutSuffix(kind, suffix); found {
			kind, state = rest, suffix
			break
		}
	}
	switch kind {
	case logSuffix, indexSuffix, timeIndexSuffix, txnIndexSuffix, snapshotSuffix:
		return protocol.Offset(n), kind, state, true
	}
	return 0, "", "", false
}
