package vfs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// TestOSAllocations keeps the hot path free of garbage.
func TestOSAllocations(t *testing.T) {
	file := create(t, vfs.OS(), filepath.Join(t.TempDir(), "a"), "0123456789")
	p := make([]byte, 4)
	for name, op := range map[string]func() error{
		"read":  func() error { _, err := file.ReadAt(p, 2); return err },
		"write": func() error { _, err := file.WriteAt(p, 2); return err },
		"sync":  func() error { return file.Sync() },
	} {
		if n := testing.AllocsPerRun(100, func() { must(t, op()) }); n > 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// TestOSVolumeEndsAtMounts asks for /proc, which is mounted below the root wherever that can be synced as a whole.
func TestOSVolumeEndsAtMounts(t *testing.T) {
	v, err := vfs.OS().OpenVolume("/")
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	must(t, err)
	if held, err := v.Holds("/proc"); held || err != nil {
		t.Errorf("the root's volume holds /proc: %v, %v", held, err)
	}
	must(t, v.Close())
}

// TestOSVolumeEndsAtLinks has a file in the directory that is elsewhere, and one that is on the volume after all.
func TestOSVolumeEndsAtLinks(t *testing.T) {
	dir := t.TempDir()
	v, err := vfs.OS().OpenVolume(dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return
	}
	must(t, err)
	folder := filepath.Join(dir, "t-0")
	must(t, os.Mkdir(folder, 0o755))
	must(t, create(t, vfs.OS(), filepath.Join(dir, "elsewhere"), "x").Close())
	must(t, os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(folder, "1.log")))
	must(t, os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(folder, "2.log")))
	if held, err := v.Holds(folder); !held || err != nil {
		t.Errorf("the volume does not hold what links within it lead to: %v", err)
	}
	must(t, os.Symlink("/proc/version", filepath.Join(folder, "3.log")))
	if held, err := v.Holds(folder); held || err != nil {
		t.Errorf("the volume holds what a link out of it leads to: %v", err)
	}
	must(t, v.Close())
}

// TestOSLockBetweenProcesses has a second process of this test try the lock.
func TestOSLockBetweenProcesses(t *testing.T) {
	const variable = "VFS_TEST_LOCK"
	if name := os.Getenv(variable); name != "" {
		_, err := vfs.OS().Lock(name)
		wantError(t, err, vfs.ErrLocked)
		return
	}
	name := filepath.Join(t.TempDir(), ".lock")
	lock, err := vfs.OS().Lock(name)
	must(t, err)
	defer lock.Close()
	command := exec.Command(os.Args[0], "-test.run=^TestOSLockBetweenProcesses$")
	command.Env = append(os.Environ(), variable+"="+name)
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestOSErrorsName has errors say the operation and the file.
func TestOSErrorsName(t *testing.T) {
	f := vfs.OS()
	name := filepath.Join(t.TempDir(), "missing")
	_, openErr := f.OpenFile(name, os.O_RDONLY, 0)
	_, _, spaceErr := f.Space(name)
	errs := []error{openErr, spaceErr}
	if runtime.GOOS != "windows" {
		errs = append(errs, f.SyncDir(name))
	}
	for _, err := range errs {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}
