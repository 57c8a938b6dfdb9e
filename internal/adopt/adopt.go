package adopt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/quorum"
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/logdir"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Options say what to adopt.
type Options struct {
	// FS holds the directories and the files below; nil means the operating system's.
	FS vfs.FS
	// Dirs are the log directories; without them those that ServerProperties names.
	Dirs []string
	// ZooKeeperTree, Configs and ServerProperties are paths of what else is known of the old cluster; empty
	// where there is no such file.
	ZooKeeperTree, Configs, ServerProperties string
	// AllowMissing lets partitions that the old broker had, and that are in none of the directories, begin
	// empty.
	AllowMissing bool
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
	// Progress is told how many partitions have been looked at, from several goroutines, one at a time; nil
	// for nobody.
	Progress func(done, of int)
	// Logger gets what an operator should know; nil discards it.
	Logger *slog.Logger

	transactionBytes int // less than the usual in tests
}

// transactionBytes is about how much is written into the store at once.
const transactionBytes = 256 << 10

// Adoption is one take-over. It holds the locks of the directories until Close, so that no broker runs on
// them. It is for one goroutine.
type Adoption struct {
	options  Options
	files    vfs.FS
	old      *config.Broker // the old broker's server.properties, or nil
	settings *config.Broker // the same, or the defaults
	dirs     *logdir.Set
	metadata string
	kraft    bool // a directory says that it is of a node of KRaft
	plan     *Plan

	store   *quorum.Store
	session coordination.Session
}

// Open locks the directories, finds out what is in them, and makes the plan. It writes nothing into a store,
// but opens one that is there. The error says what to do where the directories cannot be adopted.
func Open(ctx context.Context, o Options) (*Adoption, error) {
	if o.FS == nil {
		o.FS = vfs.OS()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.transactionBytes == 0 {
		o.transactionBytes = transactionBytes
	}
	if o.Progress == nil {
		o.Progress = func(int, int) {}
	}
	a := &Adoption{options: o, files: o.FS}
	err := a.open(ctx)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

//	server.properties    which directories there are, what topics fall back to
//	meta.properties      whose they are; locks are taken, so that nobody else can begin
//	store, if there      what an earlier adoption, or a broker of ours, has registered
//	folders, source      what is to be registered: the plan
//
// Up to here nothing is written, but for the locks and what opening a store writes into it.
func (a *Adoption) open(ctx context.Context) error {
	if err := a.readProperties(); err != nil {
		return err
	}
	if err := a.lock(); err != nil {
		return err
	}
	existing, err := a.readStore(ctx)
	if err != nil {
		return err
	}
	return a.makePlan(ctx, existing)
}

// Plan is what CarryOut will do, or has done.
func (a *Adoption) Plan() *Plan { return a.plan }

// Close gives the directories back. Closing twice is fine.
func (a *Adoption) Close() error {
	var errs []error
	if a.session != nil {
		errs = append(errs, a.session.Close())
		a.session = nil
	}
	if a.store != nil {
		errs = append(errs, a.store.Close())
		a.store = nil
	}
	if a.dirs != nil {
		errs = append(errs, a.dirs.Close(context.Background()))
		a.dirs = nil
	}
	return errors.Join(errs...)
}

// readProperties reads the old broker's server.properties and settles which directories there are.
func (a *Adoption) readProperties() error {
	if name := a.options.ServerProperties; name != "" {
		text, err := readFile(a.files, name)
		if err != nil {
			return err
		}
		if a.old, err = loadProperties(name, text); err != nil {
			return err
		}
		if len(a.options.Dirs) == 0 {
			a.options.Dirs = a.old.LogDirs()
		}
		if a.old.IsSet("metadata.log.dir") {
			a.metadata = a.old.MetadataLogDir()
		}
	}
	if len(a.options.Dirs) == 0 {
		return errors.New("no directory to adopt was named")
	}
	dirs := make([]string, len(a.options.Dirs))
	var err error
	for i, dir := range a.options.Dirs {
		if dirs[i], err = filepath.Abs(dir); err != nil {
			return err
		}
	}
	a.options.Dirs = dirs
	a.metadata, err = filepath.Abs(cmp.Or(a.metadata, dirs[0]))
	return err
}

// lock opens the directories. Each must belong to a broker: one that does not is a mistyped path, and would
// be formatted.
//
// The identity is read before logdir.Open, which would format a directory without one.
func (a *Adoption) lock() error {
	all := a.options.Dirs
	if !slices.Contains(all, a.metadata) {
		all = append(slices.Clone(all), a.metadata)
	}
	for _, dir := range all {
		identity, err := logdir.ReadIdentity(a.files, dir)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s has no meta.properties: it is not a log directory of a broker", dir)
		}
		if err != nil {
			return err
		}
		a.kraft = a.kraft || identity.Version == 1
	}
	id := P.NoBroker
	a.settings = config.Default()
	if a.old != nil {
		a.settings = a.old
		if a.old.IsSet("node.id") || a.old.IsSet("broker.id") {
			id = a.old.BrokerID()
		}
	}
	var err error
	a.dirs, err = logdir.Open(logdir.Options{
		FS: a.files, Dirs: a.options.Dirs, MetadataDir: a.metadata, BrokerID: id, Config: a.settings,
		Now: a.options.Now, Logger: a.options.Logger, Files: log.NewFileCache(1),
	})
	if err != nil {
		return err
	}
	for _, d := range a.dirs.Dirs() {
		if d.Err != nil {
			return fmt.Errorf("%s: %w", d.Path, d.Err)
		}
	}
	return nil
}
