package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// startLimit is how long a start may take: longer than the session of an earlier life, which it waits for.
const startLimit = time.Minute

// process is one broker.
type process struct {
	program, dir, zookeeper string
	id                      int
	// address is where it listens; the same in every life, so that clients find it again.
	address string
	command *exec.Cmd
	exited  chan error
}

// start runs the broker and returns when it serves.
func (p *process) start() error {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	ready := filepath.Join(p.dir, "ready")
	if err := os.RemoveAll(ready); err != nil {
		return err
	}
	if err := p.launch(ready); err != nil {
		return err
	}
	return p.awaitReady(ready)
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
	arguments := []string{"start", "--data-dir", filepath.Join(p.dir, "data"), "--ready-file", ready}
	for _, override := range []string{
		"listeners=PLAINTEXT://" + address, "http.listener=", fmt.Sprintf("broker.id=%d", p.id), "zookeeper.connect=" + p.zookeeper + "/cluster",
		fmt.Sprintf("zookeeper.session.timeout.ms=%d", session.Milliseconds()), "replica.lag.time.max.ms=3000",
		"offsets.topic.num.partitions=4", "auto.create.topics.enable=false",
	} {
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
	tick := time.NewTicker(5 * time.Millisecond)
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
			return fmt.Errorf("broker %d ended at its start: %w; see broker.log in %s", p.id, err, p.dir)
		case <-deadline:
			return fmt.Errorf("broker %d does not serve; see broker.log in %s", p.id, p.dir)
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

// stopLimit is how long an orderly stop may take.
const stopLimit = 40 * time.Second

// stop ends the broker with SIGTERM.
func (p *process) stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-p.exited:
		p.command = nil
		if err != nil {
			return fmt.Errorf("broker %d stopped with %w", p.id, err)
		}
		return nil
	case <-time.After(stopLimit):
		return errors.Join(fmt.Errorf("broker %d does not stop", p.id), p.command.Process.Kill())
	}
}

// pause keeps the broker from running; resume lets it.
func (p *process) pause() error  { return p.command.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume() error { return p.command.Process.Signal(syscall.SIGCONT) }
