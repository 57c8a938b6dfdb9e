package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolated is set in the environment of a program that runs in namespaces of its own.
const isolated = "BARNABAS_CLUSTER_ISOLATED"

// isolate runs the program once more, in network and mount namespaces of its own, where it may make hosts and
// volumes that end with it. That takes root. inner is true in there; outside, the error is what the inner one
// ended with.
func isolate() (inner bool, err error) {
	if os.Getenv(isolated) != "" {
		return true, private()
	}
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	command := exec.Command(self, os.Args[1:]...)
	command.Env = append(os.Environ(), isolated+"=1")
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err = command.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		err = errSaid
	}
	return false, err
}

// private keeps mounts from being seen outside, and makes the folder in which ip keeps its namespaces the program's
// own.
func private() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("a mount namespace: %w", err)
	}
	const names = "/run/netns"
	if err := os.MkdirAll(names, 0o755); err != nil {
		return err
	}
	return unix.Mount("tmpfs", names, "tmpfs", 0, "")
}

// mountVolume makes a disk of so many MiB.
func mountVolume(dir string, size int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", size))
}

func unmountVolume(dir string) error { return unix.Unmount(dir, unix.MNT_DETACH) }

// openFiles is how many descriptors a process has.
func openFiles(pid int) (int, error) {
	entries, err := os.ReadDir(filepath.Join("/proc", fmt.Sprint(pid), "fd"))
	return len(entries), err
}

// canIsolate says why this machine cannot make namespaces; nil where it can.
func canIsolate() error {
	if os.Geteuid() != 0 {
		return errors.New("it needs root")
	}
	_, err := exec.LookPath("ip")
	return err
}
