package quorum

import (
	"errors"
	"io"
	"path/filepath"

	"github.com/barnabas-mq/barnabas/internal/coordination/tree"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// files are what a store keeps on disk.
type files struct {
	lock      io.Closer
	snapshots *snapshotStore
	log       *logStore
	state     *stateStore
}

// open locks the directory and opens the files in it, making what is missing.
//
// Snapshots come first, since they say which log entries are needed, and the state last, since only log and
// snapshots say whether a missing state file is new or lost. Both new names are made durable by one sync.
//
//	log and snapshot   state         verdict
//	none               no valid slot a new directory, or making it was interrupted: made
//	none               term 1        made, and nothing has happened since
//	none               term above 1  damage: a vote was given for a log that is gone
//	some               no valid slot damage: a second vote in a term could follow
//	some               valid         as it was left
func (f *files) open(o Options) (err error) {
	if err := makeDirectory(o.FS, o.Dir); err != nil {
		return err
	}
	if f.lock, err = o.FS.Lock(filepath.Join(o.Dir, lockName)); err != nil {
		return err
	}
	if f.snapshots, err = openSnapshots(o.FS, o.Dir, o.Random); err != nil {
		return err
	}
	if f.log, err = openLog(o, f.snapshots.index); err != nil {
		return err
	}
	last, _ := f.log.LastIndex()
	if f.state, err = openState(o.FS, o.Dir, last == 0 && f.snapshots.index() == 0); err != nil {
		return err
	}
	if f.log.made || f.state.made {
		return o.FS.SyncDir(o.Dir)
	}
	return nil
}

// makeDirectory makes a directory and its missing parents, durably.
//
// Each parent is synced after its child was made: a directory that is synced below a name that was not is lost.
func makeDirectory(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(dir); err == nil {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDirectory(fs, parent); err != nil {
			return err
		}
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return fs.SyncDir(parent)
}

// readTree reads the tree of the newest snapshot, or makes an empty one. Its first transaction is number 1, also
// where the directory was adopted from another cluster: no log holds a broker epoch (a zxid) to stay above, and
// leader epochs are raised by themselves.
func (f *files) readTree() (*tree.Tree, error) {
	metas, err := f.snapshots.List()
	if err != nil || len(metas) == 0 {
		return tree.New(0), err
	}
	_, r, err := f.snapshots.Open(metas[0].ID)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return tree.Read(r)
}

// close closes what is open.
func (f *files) close() error {
	var errs []error
	if f.log != nil {
		errs = append(errs, f.log.close())
	}
	if f.state != nil {
		errs = append(errs, f.state.close())
	}
	if f.lock != nil {
		errs = append(errs, f.lock.Close())
	}
	return errors.Join(errs...)
}
