package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// commandLimit is how long a command may take; several JVMs on a busy machine take their time.
const commandLimit = 4 * time.Minute

// side is a set of tools, and a broker that they are run against.
type side struct {
	name, tools, broker, data string
	// dir is the working directory of the script that runs.
	dir string
	// going are the commands in the background.
	going []*exec.Cmd
}

// sameTools reports whether two sides differ in their broker alone.
func (s *side) sameTools(other *side) bool {
	mine, _, _ := strings.Cut(s.name, "/")
	theirs, _, _ := strings.Cut(other.name, "/")
	return mine == theirs
}

// begin gives a script an empty directory.
func (s *side) begin() (err error) {
	s.dir, err = os.MkdirTemp("", "tools-compare-")
	return err
}

// end ends what a script left running, and removes its directory.
func (s *side) end() {
	for _, c := range s.going {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGTERM)
		_ = c.Wait()
	}
	s.going = nil
	_ = os.RemoveAll(s.dir)
}

// command is a shell with the side's tools, in a process group of its own.
func (s *side) command(ctx context.Context, line string) *exec.Cmd {
	c := exec.CommandContext(ctx, "bash", "-c", line)
	c.Dir = s.dir
	c.Env = append(os.Environ(), "PATH="+s.tools+":"+os.Getenv("PATH"), "AT=--bootstrap-server "+s.broker,
		"BROKER="+s.broker, "DATA="+s.data, "TZ=UTC", "LC_ALL=C.UTF-8")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c
}

// run runs one step and returns what is compared of it; nil where nothing is.
func (s *side) run(ctx context.Context, st step) (*outcome, error) {
	switch st.manner {
	case background:
		c := s.command(context.WithoutCancel(ctx), st.command)
		s.going = append(s.going, c)
		return nil, c.Start()
	case repeated:
		return nil, s.repeat(ctx, st)
	}
	out, stderr, status, err := s.output(ctx, st.command)
	if err != nil {
		return nil, err
	}
	if st.manner == prepares {
		if status != 0 {
			return nil, fmt.Errorf("status %d: %s%s", status, out, stderr)
		}
		return nil, nil
	}
	o := &outcome{status: status}
	if st.manner != statusOnly {
		o.lines = s.normal(out, st.manner)
		o.errors = s.normal(withoutTraces(stderr), st.manner)
	}
	return o, nil
}

// output runs a command to its end.
func (s *side) output(ctx context.Context, line string) (out, stderr string, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	var o, e bytes.Buffer
	c := s.command(ctx, line)
	c.Stdout, c.Stderr = &o, &e
	err = c.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", "", 0, fmt.Errorf("%s: %s: no end within %v: %s%s", s.name, line, commandLimit, o.String(), e.String())
	case errors.As(err, &exit):
		return o.String(), e.String(), exit.ExitCode(), nil
	}
	return o.String(), e.String(), 0, err
}

// repeat runs a command until it prints what it is to print.
func (s *side) repeat(ctx context.Context, st step) error {
	var out, stderr string
	for deadline := time.Now().Add(commandLimit); time.Now().Before(deadline); {
		var err error
		if out, stderr, _, err = s.output(ctx, st.command); err != nil {
			return err
		}
		if st.until.MatchString(out) {
			return nil
		}
	}
	return fmt.Errorf("%s: %s: never printed %s: %s%s", s.name, st.command, st.until, out, stderr)
}
