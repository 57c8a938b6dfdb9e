// Package process runs brokers as processes of their own, for the programs that kill, stop and pause them.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Broker is one broker, in one life after the other.
//
// Its files, all in Dir: data, the log directory, unless Directories says otherwise; ready, the address, which appears when it serves; broker.log,
// what every life has said. One goroutine uses it at a time; clients just notice that their connections break.
type Broker struct {
	// Program is the built program, Dir the folder of the broker's files, which is made where it is missing.
	Program, Dir string
	// Directories are the names of its log directories in Dir; empty means data.
	Directories []string
	// Overrides are its properties, as key=value.
	Overrides []string
	// Under is a command that runs the program with the arguments that follow, in place of itself: "ip netns exec
	// NAME". Empty means nothing.
	Under []string
	// StartLimit is how long a start may take.
	StartLimit time.Duration
	// Address is where it listens: a free port of 127.0.0.1 from the first Start on, unless it is set before. It is
	// the same in every life, so that clients find it again.
	Address string

	command *exec.Cmd
	exited  chan error
}

// Start runs the broker and returns when it serves.
func (b *Broker) Start() error {
	ready := filepath.Join(b.Dir, "ready")
	if err := os.RemoveAll(ready); err != nil {
		return err
	}
	if err := b.launch(ready); err != nil {
		return err
	}
	return b.awaitReady(ready)
}

// StartAndKill runs the broker and kills it after a while, whether it serves by then or not.
//
// A start that is cut off must leave nothing that the next one cannot deal with: half-loaded logs, a store that
// was opened, a registration whose session still lives.
func (b *Broker) StartAndKill(after time.Duration) error {
	if err := b.launch(filepath.Join(b.Dir, "unready")); err != nil {
		return err
	}
	select {
	case err := <-b.exited:
		return b.endedEarly(err)
	case <-time.After(after):
	}
	b.Kill()
	return nil
}

// launch runs the broker.
func (b *Broker) launch(ready string) error {
	if err := os.MkdirAll(b.Dir, 0o755); err != nil {
		return err
	}
	address := b.Address
	if address == "" {
		address = "127.0.0.1:0"
	}
	log, err := os.OpenFile(b.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	arguments := []string{
		"start", "--data-dir", b.directories(), "--ready-file", ready,
		"--override", "listeners=PLAINTEXT://" + address,
	}
	for _, override := range b.Overrides {
		arguments = append(arguments, "--override", override)
	}
	all := slices.Concat(b.Under, []string{b.Program}, arguments)
	b.command = exec.Command(all[0], all[1:]...)
	b.command.Stdout, b.command.Stderr = log, log
	b.command.SysProcAttr = dieWithParent()
	if err := b.command.Start(); err != nil {
		return err
	}
	b.exited = make(chan error, 1)
	go func(command *exec.Cmd, exited chan<- error) { exited <- command.Wait() }(b.command, b.exited)
	return nil
}

// directories is log.dirs.
func (b *Broker) directories() string {
	if len(b.Directories) == 0 {
		return filepath.Join(b.Dir, "data")
	}
	var paths []string
	for _, name := range b.Directories {
		paths = append(paths, filepath.Join(b.Dir, name))
	}
	return strings.Join(paths, ",")
}

// awaitReady looks for the ready file, which is renamed into place.
func (b *Broker) awaitReady(ready string) error {
	deadline := time.After(b.StartLimit)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(ready)
		if err == nil {
			b.Address, _, _ = strings.Cut(string(text), "\n") // of the first listener
			return nil
		}
		select {
		case err := <-b.exited:
			return b.endedEarly(err)
		case <-deadline:
			return fmt.Errorf("the broker does not serve; see broker.log in %s", b.Dir)
		case <-tick.C:
		}
	}
}

// endedEarly is the error of a start that ended by itself. What the process ended with stays for [Broker.Kill].
func (b *Broker) endedEarly(err error) error {
	b.exited <- err
	return fmt.Errorf("the broker ended at its start: %w; see broker.log in %s", err, b.Dir)
}

// Process is the running broker; nil where none runs.
func (b *Broker) Process() *os.Process {
	if b.command == nil {
		return nil
	}
	return b.command.Process
}

func (b *Broker) logFile() string { return filepath.Join(b.Dir, "broker.log") }

// Said is what all lives of the broker have logged.
func (b *Broker) Said() (string, error) {
	text, err := os.ReadFile(b.logFile())
	return string(text), err
}

// Kill ends the broker with SIGKILL and waits until it is gone; one that does not run is left alone.
func (b *Broker) Kill() {
	if b.command == nil {
		return
	}
	_ = b.command.Process.Kill() // it may be gone already
	<-b.exited                   //nolint:errcheck // it was killed, so it ended with an error
	b.command = nil
}

// stopLimit is how long an orderly stop may take.
const stopLimit = 40 * time.Second

// Stop ends the broker with SIGTERM, and fails where it does not end well.
func (b *Broker) Stop() error {
	if err := b.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-b.exited:
		b.command = nil
		if err != nil {
			return fmt.Errorf("the broker stopped with %w; see broker.log in %s", err, b.Dir)
		}
		return nil
	case <-time.After(stopLimit):
		return errors.Join(fmt.Errorf("the broker does not stop; see broker.log in %s", b.Dir), b.command.Process.Kill())
	}
}

// Pause keeps the broker from running until Resume.
func (b *Broker) Pause() error { return b.command.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused broker run.
func (b *Broker) Resume() error { return b.command.Process.Signal(syscall.SIGCONT) }
