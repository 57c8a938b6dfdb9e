package zktest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/internal/ports"
)

// Options of a server.
type Options struct {
	// Dir is an empty folder of the server's own.
	Dir string
	// Tick is ZooKeeper's tickTime: sessions of two ticks are allowed, and expire in steps of one. 0 means
	// 100 ms.
	Tick time.Duration
	// Address is host:port for clients; "" means a free port of 127.0.0.1.
	Address string
	// Properties are further lines of zoo.cfg.
	Properties []string
	// Java are further flags for the virtual machine.
	Java []string
	// Under is a command that runs java with the arguments that follow, in place of itself: "ip netns exec NAME".
	Under []string
}

// Server is a ZooKeeper process. Its methods are for one goroutine.
type Server struct {
	options Options
	// Address is host:port for clients.
	Address string
	ports   *ports.Range // held for as long as there is a Server; nil where Address was said
	output  bytes.Buffer
	process *exec.Cmd
	exited  chan struct{} // closed when process has ended
}

// readiness is how long a start may take on a busy machine.
const readiness = 60 * time.Second

// defaultTick is the shortest that a busy machine keeps.
const defaultTick = 100 * time.Millisecond

// Servers take ports from firstPort on, each from a range of its own.
const firstPort, portsEach = 24_000, 10

// Start runs a server and returns when it serves.
func Start(o Options) (*Server, error) {
	s, err := newServer(o)
	if err != nil {
		return nil, err
	}
	return s, s.begin()
}

// begin is the first start.
func (s *Server) begin() error {
	if err := s.configure(); err != nil {
		return err
	}
	return s.Restart()
}

// newServer is a server that is neither configured nor running.
func newServer(o Options) (*Server, error) {
	if o.Tick == 0 {
		o.Tick = defaultTick
	}
	s := &Server{options: o, Address: o.Address}
	if s.Address != "" {
		return s, nil
	}
	var err error
	if s.ports, err = ports.Reserve(firstPort, portsEach); err == nil {
		s.Address, err = s.ports.NextAddress()
	}
	return s, err
}

// configure writes zoo.cfg.
func (s *Server) configure() error {
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return err
	}
	data := filepath.Join(s.options.Dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return err
	}
	lines := append([]string{
		"tickTime=" + strconv.FormatInt(s.options.Tick.Milliseconds(), 10),
		"maxSessionTimeout=60000",
		"dataDir=" + data, "clientPort=" + port, "clientPortAddress=" + host,
		"admin.enableServer=false", "4lw.commands.whitelist=*", "maxClientCnxns=0", "preAllocSize=1024",
	}, s.options.Properties...)
	return os.WriteFile(s.config(), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

func (s *Server) config() string { return filepath.Join(s.options.Dir, "zoo.cfg") }

// Restart runs the server on the data that it has, and returns when it serves.
func (s *Server) Restart() error {
	if err := s.launch(); err != nil {
		return err
	}
	return s.awaitReady()
}

// launch starts the process.
func (s *Server) launch() error {
	path, err := ClassPath()
	if err != nil {
		return err
	}
	// Nobody cuts the power here, and a disk that is busy with other tests must not hold a session up.
	args := append([]string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Dzookeeper.forceSync=no"}, s.options.Java...)
	args = append(args, "-cp", path, "org.apache.zookeeper.server.quorum.QuorumPeerMain", s.config())
	s.output.Reset()
	all := slices.Concat(s.options.Under, []string{"java"}, args)
	s.process = exec.Command(all[0], all[1:]...)
	s.process.Stdout, s.process.Stderr = &s.output, &s.output
	s.process.SysProcAttr = dieWithParent()
	if err := s.process.Start(); err != nil {
		return err
	}
	exited, process := make(chan struct{}), s.process
	s.exited = exited
	go func() {
		_ = process.Wait() // how it ended is what its killer wanted, or stands in the output
		close(exited)
	}()
	return nil
}

// awaitReady asks until the server says which mode it is in: before that it takes connections and no sessions.
func (s *Server) awaitReady() error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(readiness)
	for {
		if answer, err := s.Ask("srvr"); err == nil && strings.Contains(answer, "Mode:") {
			return nil
		}
		select {
		case <-tick.C:
		case <-s.exited:
			return fmt.Errorf("ZooKeeper ended at once: %s", s.output.String())
		case <-deadline:
			s.Kill()
			return fmt.Errorf("ZooKeeper was not ready within %v: %s", readiness, s.output.String())
		}
	}
}

// Ask sends a four letter word and returns the answer.
func (s *Server) Ask(word string) (string, error) {
	conn, err := net.DialTimeout("tcp", s.Address, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// Kill ends the process at once, as a crash does, and waits until it is gone. Killing twice is fine.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill() // it may have ended by itself
	<-s.exited
}

// Process is the running server, for signals.
func (s *Server) Process() *os.Process { return s.process.Process }
