package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// startLimit is how long a start may take.
const startLimit = 30 * time.Second

// process is the broker that is killed.
//
// Its files, all in dir: data, the log directory; ready, the address, which appears when it serves; broker.log,
// what every life has said. It is used by the goroutine of the rounds only; clients just notice that their
// connections break.
type process struct {
	program, dir string
	// address is where it listens; the same in every life, so that clients find it again.
	address string
	command *exec.Cmd
	exited  chan error
}

// overrides make the work in the background come often enough for kills to hit it.
var overrides = []string{
	"http.listener=", "log.initial.task.delay.ms=100", "log.retention.check.interval.ms=300", "log.cleaner.backoff.ms=200",
	"log.flush.offset.checkpoint.interval.ms=500", "log.flush.start.offset.checkpoint.interval.ms=500",
	"offsets.topic.num.partitions=4",
}

// start runs the broker and returns when it serves.
func (p *process) start() error {
	ready := filepath.Join(p.dir, "ready")
	if err := os.RemoveAll(ready); err != nil {
		return err
	}
	if err := p.launch(ready); err != nil {
		return err
	}
	return p.awaitReady(ready)
}

// startAndKill runs the broker and kills it after a while, whether it serves by then or not.
//
// A start that is cut off must leave nothing that the next one cannot deal with: half-loaded logs, a store that
// was opened, a registration whose session still lives.
func (p *process) startAndKill(after time.Duration) error {
	if err := p.launch(filepath.Join(p.dir, "unready")); err != nil {
		return err
	}
	select {
	case err := <-p.exited:
		p.exited <- err
		return fmt.Errorf("the broker ended at its start: %w; see broker.log in %s", err, p.dir)
	case <-time.After(after):
	}
	p.kill()
	return nil
}

// launch runs the broker.
func (p *process) launch(ready string) error {
	address := p.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	log, err := os.OpenFile(filepath.Join(p.dir, "broker.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	arguments := []string{
		"start", "--data-dir", filepath.Join(p.dir, "data"), "--ready-file", ready,
		"--override", "listeners=PLAINTEXT://" + address,
	}
	for _, override := range overrides {
		arguments = append(arguments, "--override", override)
	}
	p.command = exec.Command(p.program, arguments...)
	p.command.Stdout, p.command.Stderr = log, log
	if err := p.command.Start(); err != nil {
		return err
	}
	p.exited = make(chan error, 1)
	go func(command *exec.Cmd, exited chan<- error) { exited <- command.Wait() }(p.command, p.exited)
	return nil
}

// awaitReady looks for the ready file, which is renamed into place.
func (p *process) awaitReady(ready string) error {
	deadline := time.After(startLimit)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		text, err := os.ReadFile(ready)
		if err == nil {
			p.address = strings.TrimSpace(string(text))
			return nil
		}
		select {
		case err := <-p.exited:
			p.exited <- err
			return fmt.Errorf("the broker ended at its start: %w; see broker.log in %s", err, p.dir)
		case <-deadline:
			return errors.New("the broker does not serve")
		case <-tick.C:
		}
	}
}

// kill ends the broker with SIGKILL and waits until it is gone.
func (p *process) kill() {
	if p.command == nil {
		return
	}
	_ = p.command.Process.Kill() // it may be gone already
	<-p.exited                   //nolint:errcheck // it was killed, so it ended with an error
	p.command = nil
}

// pause keeps the broker from running for a while.
func (p *process) pause(ctx context.Context, while time.Duration) error {
	if err := p.command.Process.Signal(unix.SIGSTOP); err != nil {
		return err
	}
	select {
	case <-time.After(while):
	case <-ctx.Done():
	}
	return p.command.Process.Signal(unix.SIGCONT)
}
