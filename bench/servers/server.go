package servers

import (
	"context"
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

// Server is one process in one life after the other; its address and its files stay. One goroutine uses it at a
// time, but for Usage and Pid, which may be called while clients load it.
type Server struct {
	// Name is that of its folder, Version the software with its version, as "Apache Kafka 4.4.0".
	Name, Version string
	// Address is where clients find it, in every life.
	Address string
	// Dir has its files: data, the log directory; out, what every life has printed; and what its kind configures.
	Dir string

	port      int
	arguments []string
	format    []string // a command that runs once before the first start; nil for none
	answers   func(ctx context.Context, address string) error
	command   *exec.Cmd
	exited    chan struct{} // closed when the process is gone
}

// startLimit is how long a start may take, recovery included.
const startLimit = 5 * time.Minute

// Start runs the server and returns when it answers: a broker ApiVersions, a ZooKeeper "srvr". It looks every
// millisecond.
func (s *Server) Start(ctx context.Context) error {
	if s.Running() {
		return fmt.Errorf("%s runs already", s.Name)
	}
	if err := s.Prepare(); err != nil {
		return err
	}
	if err := s.launch(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err := Poll(ctx, time.Millisecond, func() error {
		if !s.Running() {
			return final{errors.New("it ended")}
		}
		return s.answers(ctx, s.Address)
	})
	if err != nil {
		s.Kill()
		return fmt.Errorf("start of %s: %w\n%s", s.Name, err, s.lastWords())
	}
	return nil
}

// Prepare does what has to be done once before the first start, as formatting, which Start does otherwise.
func (s *Server) Prepare() error {
	if s.format == nil {
		return nil
	}
	out, err := exec.Command(s.format[0], s.format[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("format %s: %w\n%s", s.Name, err, out)
	}
	s.format = nil
	return nil
}

func (s *Server) launch() error {
	out, err := os.OpenFile(filepath.Join(s.Dir, "out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	command := exec.Command(s.arguments[0], s.arguments[1:]...)
	command.Dir, command.Stdout, command.Stderr = s.Dir, out, out
	command.Env = environment()
	command.SysProcAttr = attributes()
	if err := command.Start(); err != nil {
		return err
	}
	s.command, s.exited = command, make(chan struct{})
	go func(exited chan<- struct{}) {
		_ = command.Wait() // how it ended is of no interest here, that it has is
		close(exited)
	}(s.exited)
	return nil
}

// notPassedOn are variables that would change how the runtime of a server works, its collector above all.
var notPassedOn = []string{"GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"}

// environment is that of this process, without them.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(notPassedOn, name)
	})
}

// Settings says in a line what servers are started with that is not a default, and that their runtimes have theirs.
func Settings() string {
	return fmt.Sprintf("a single node of either side has %s; Kafka has a heap of %s and the flags of its start script; %s are not passed on, so that "+
		"collectors are at their defaults", strings.Join(SingleNode(), " "), heap, strings.Join(notPassedOn, ", "))
}

// lastWords is the end of what the server has said.
func (s *Server) lastWords() string {
	var said []string
	for _, name := range []string{"out", "log"} {
		text, err := os.ReadFile(filepath.Join(s.Dir, name))
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		said = append(said, lines[max(0, len(lines)-10):]...)
	}
	return strings.Join(said, "\n")
}

// Running reports whether the process is there; paused or not ready it is, too.
func (s *Server) Running() bool {
	if s.command == nil {
		return false
	}
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

// Pid is the number of the process; 0 where none has been started.
func (s *Server) Pid() int {
	if s.command == nil {
		return 0
	}
	return s.command.Process.Pid
}

// stopLimit is how long an orderly end may take.
const stopLimit = time.Minute

// Stop ends the server with SIGTERM and waits for its end; one that does not run is left alone.
func (s *Server) Stop() error {
	if !s.Running() {
		return nil
	}
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-s.exited:
		return nil
	case <-time.After(stopLimit):
		s.Kill()
		return fmt.Errorf("%s does not stop within %s\n%s", s.Name, stopLimit, s.lastWords())
	}
}

// Kill ends the server with SIGKILL and waits until it is gone; one that does not run is left alone.
func (s *Server) Kill() {
	if !s.Running() {
		return
	}
	_ = s.command.Process.Kill() // it may be gone by now
	<-s.exited
}

// Pause keeps the server from running until Resume.
func (s *Server) Pause() error { return s.command.Process.Signal(syscall.SIGSTOP) }

// Resume lets a paused server run.
func (s *Server) Resume() error { return s.command.Process.Signal(syscall.SIGCONT) }
