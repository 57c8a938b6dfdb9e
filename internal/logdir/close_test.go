package logdir

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// changedLogs starts a broker's directory with n logs that have changed.
func changedLogs(t *testing.T, f vfs.FS, n int) (*world, *Set) {
	t.Helper()
	w := newWorld(t, f)
	s := w.start(t)
	for i := range int32(n) {
		must(t, appendValues(w.make(t, s, partition("t", i)), "a"))
	}
	return w, s
}

// A stop syncs few logs file by file, and many by one sync of their volume.
func TestSyncsOfAStop(t *testing.T) {
	for logs, want := range map[int]struct{ files, volumes int32 }{
		syncedAlone:     {files: syncedAlone, volumes: 0},
		syncedAlone + 1: {files: 0, volumes: 1},
	} {
		f := vfs.NewFaulty(vfs.NewMemory())
		_, s := changedLogs(t, f, logs)
		var files, volumes atomic.Int32
		f.Inject(vfs.Fault{Op: vfs.OpSync, Path: "*.log", Hook: func(vfs.Op, string) { files.Add(1) }})
		f.Inject(vfs.Fault{Op: vfs.OpSyncVolume, Hook: func(vfs.Op, string) { volumes.Add(1) }})
		stop(t, s)
		if files.Load() != want.files || volumes.Load() != want.volumes {
			t.Errorf("%d logs: %d syncs of log files and %d of the volume, want %d and %d", logs, files.Load(), volumes.Load(), want.files, want.volumes)
		}
		if clean, _, err := readMarker(f, "/data"); err != nil || !clean {
			t.Errorf("%d logs: no marker of a clean stop: %v", logs, err)
		}
	}
}

// A log whose folder is on another volume is synced by itself.
func TestStopOfALogOnAnotherVolume(t *testing.T) {
	f := vfs.NewFaulty(vfs.NewMemory())
	_, s := changedLogs(t, f, syncedAlone+1)
	var synced sync.Map
	f.Inject(vfs.Fault{Op: vfs.OpHolds, Path: "/data/t-3", Err: syscall.EXDEV})
	f.Inject(vfs.Fault{Op: vfs.OpSync, Path: "*.log", Hook: func(_ vfs.Op, path string) { synced.Store(filepath.Dir(path), true) }})
	stop(t, s)
	var folders []string
	for folder := range synced.Range {
		folders = append(folders, folder.(string))
	}
	if !slices.Equal(folders, []string{"/data/t-3"}) {
		t.Errorf("synced by themselves: %v, want /data/t-3", folders)
	}
	if clean, _, err := readMarker(f, "/data"); err != nil || !clean {
		t.Errorf("no marker of a clean stop: %v", err)
	}
}

// Where the volume cannot be synced no log passes for clean, and the next start looks through all.
func TestStopWhoseVolumeIsNotSynced(t *testing.T) {
	for name, test := range map[string]struct {
		fault func(cancel func(), release chan struct{}) vfs.Fault
		says  string
	}{
		"it fails": {func(func(), chan struct{}) vfs.Fault {
			return vfs.Fault{Op: vfs.OpSyncVolume, Err: syscall.EIO}
		}, "input/output error"},
		"time is up": {func(cancel func(), release chan struct{}) vfs.Fault {
			return vfs.Fault{Op: vfs.OpSyncVolume, Hook: func(vfs.Op, string) { cancel(); <-release }}
		}, "no time to sync 17 of 17 logs"},
	} {
		t.Run(name, func(t *testing.T) {
			m := vfs.NewMemory()
			f := vfs.NewFaulty(m)
			w, s := changedLogs(t, f, syncedAlone+1)
			ctx, cancel := context.WithCancel(t.Context())
			release := make(chan struct{})
			f.Inject(test.fault(cancel, release))
			err := s.Close(ctx)
			close(release)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, want %q", err, test.says)
			}
			if clean, _, _ := readMarker(m, "/data"); clean {
				t.Error("the marker of a clean stop is there")
			}
			cancel()
			f.Heal()
			w.options.FS = m
			s = w.start(t)
			for i := range int32(syncedAlone + 1) {
				if got := values(t, s.Get(partition("t", i))); !slices.Equal(got, []string{"a"}) {
					t.Errorf("t-%d holds %v", i, got)
				}
			}
		})
	}
}
