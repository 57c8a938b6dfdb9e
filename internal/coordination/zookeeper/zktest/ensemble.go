package zktest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Ensemble is several servers that serve as one. Its methods are for one goroutine.
type Ensemble []*Server

// StartEnsemble runs n servers and returns when all of them serve; dir is an empty folder.
func StartEnsemble(dir string, n int, o Options) (Ensemble, error) {
	e := make(Ensemble, n)
	var members []string
	for i := range e {
		member := o
		member.Dir = filepath.Join(dir, strconv.Itoa(i+1))
		var err error
		if e[i], err = newServer(member); err != nil {
			return nil, err
		}
		peers, err := e[i].ports.NextAddress()
		if err != nil {
			return nil, err
		}
		elections, err := e[i].ports.Next()
		if err != nil {
			return nil, err
		}
		members = append(members, fmt.Sprintf("server.%d=%s:%d", i+1, peers, elections))
	}
	for i, s := range e {
		s.options.Properties = append(append([]string{"initLimit=50", "syncLimit=20"}, members...), o.Properties...)
		if err := s.join(i + 1); err != nil {
			e.Kill()
			return nil, err
		}
	}
	for _, s := range e {
		if err := s.awaitReady(); err != nil {
			e.Kill()
			return nil, err
		}
	}
	return e, nil
}

// join configures one server of an ensemble, and launches it.
func (s *Server) join(id int) error {
	if err := s.configure(); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.options.Dir, "data", "myid"), []byte(strconv.Itoa(id)+"\n"), 0o644); err != nil {
		return err
	}
	return s.launch()
}

// Addresses are those of all servers.
func (e Ensemble) Addresses() []string {
	addresses := make([]string, len(e))
	for i, s := range e {
		addresses[i] = s.Address
	}
	return addresses
}

// Leader is the server that leads.
func (e Ensemble) Leader() (*Server, error) {
	for _, s := range e {
		if answer, err := s.Ask("srvr"); err == nil && strings.Contains(answer, "Mode: leader") {
			return s, nil
		}
	}
	return nil, errors.New("no server says that it leads")
}

// Kill ends all servers.
func (e Ensemble) Kill() {
	for _, s := range e {
		if s != nil {
			s.Kill()
		}
	}
}
