package servers

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/ports"
)

// Place is where the servers of one run live: a folder for their files, a range of ports, the programs to run.
// One goroutine makes servers at a time.
type Place struct {
	// Root is the folder of the module, with its go.mod and test/peers.
	Root string
	// Dir has a folder for each server. Close deletes it.
	Dir string
	// Program is the barnabas program; NewPlace builds it where nothing else is said.
	Program string

	ports   *ports.Range
	servers []*Server
	jars    map[string]string
}

// portsOfAPlace are more than any run takes.
const portsOfAPlace = 500

// NewPlace makes a folder below dir ("" is the system's temporary one) and builds the barnabas program of this
// checkout into it. Servers take the first free ports from port on, or behind those of another place, whoever runs it.
// The working directory must be in the module.
func NewPlace(dir string, port int) (*Place, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	reserved, err := ports.Reserve(port, portsOfAPlace)
	if err != nil {
		return nil, err
	}
	if dir, err = os.MkdirTemp(dir, "barnabas-bench-"); err == nil {
		dir, err = filepath.Abs(dir) // servers run in folders of their own
	}
	if err != nil {
		return nil, errors.Join(err, reserved.Release())
	}
	p := &Place{Root: root, Dir: dir, Program: filepath.Join(dir, "bin", "barnabas"), ports: reserved, jars: map[string]string{}}
	build := exec.Command("go", "build", "-o", p.Program, "./cmd/barnabas")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("build barnabas: %w\n%s", err, out), p.Close())
	}
	return p, nil
}

// RemoveEnded forgets the servers that do not run and deletes their files: what is still needed has to run. Their names
// can be given again.
func (p *Place) RemoveEnded() error {
	var errs []error
	p.servers = slices.DeleteFunc(p.servers, func(s *Server) bool {
		if s.Running() {
			return false
		}
		errs = append(errs, os.RemoveAll(s.Dir))
		return true
	})
	return errors.Join(errs...)
}

// Close kills all servers of the place that still run, and deletes their files.
func (p *Place) Close() error {
	for _, s := range p.servers {
		s.Kill()
	}
	return errors.Join(os.RemoveAll(p.Dir), p.ports.Release())
}

// moduleRoot is the next folder upwards that has a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("there is no go.mod here or above: run this in a checkout of barnabas")
		}
		dir = parent
	}
}

// Port takes the next port that nobody listens on.
func (p *Place) Port() (int, error) { return p.ports.Next() }

// The sets of jars that test/peers has poms for.
const (
	kafka44   = "kafka-4.4"
	kafka39   = "kafka-3.9"
	zooKeeper = "zookeeper"
)

// classpath fetches the jars of a set where they are missing, and returns Java's class path for them.
func (p *Place) classpath(set string) (string, error) {
	if path, ok := p.jars[set]; ok {
		return path, nil
	}
	peers := exec.Command(filepath.Join(p.Root, "test/peers/peers"), "classpath", set)
	var said bytes.Buffer
	peers.Stderr = &said
	out, err := peers.Output()
	if err != nil {
		return "", fmt.Errorf("jars of %s: %w: %s", set, err, strings.TrimSpace(said.String()))
	}
	p.jars[set] = strings.TrimSpace(string(out))
	return p.jars[set], nil
}

// server makes a server of the place: its folder, its name, and its place in the list that Close goes through.
func (p *Place) server(name string) (*Server, error) {
	dir := filepath.Join(p.Dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("a server named %s: %w", name, err)
	}
	port, err := p.Port()
	if err != nil {
		return nil, err
	}
	s := &Server{Name: name, Dir: dir, Address: fmt.Sprintf("127.0.0.1:%d", port), port: port}
	p.servers = append(p.servers, s)
	return s, nil
}

// config is the path of a file of test/peers/conf.
func (p *Place) config(name string) string { return filepath.Join(p.Root, "test/peers/conf", name) }
