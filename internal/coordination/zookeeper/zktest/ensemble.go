package zktest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Ensemble is several servers that serve as one. Its methods are for one goroutine.
type Ensemble []*Server

// StartEnsemble runs n servers and returns when all of them serve; dir is an empty folder.
func StartEnsemble(dir string, n int, o Options) (Ensemble, error) {
	if o.Tick == 0 {
		o.Tick = defaultTick
	}
	var members []string
	for i := range n {
		peers, err := freeAddress()
		if err != nil {
			return nil, err
		}
		elections, err := freeAddress()
		if err != nil {
			return nil, err
		}
		_, port, err := net.SplitHostPort(elections)
		if err != nil {
			return nil, err
		}
		members = append(members, fmt.Sprintf("server.%d=%s:%s", i+1, peers, port))
	}
	e := make(Ensemble, n)
	for i := range e {
		member := o
		member.Dir = filepath.Join(dir, strconv.Itoa(i+1))
		member.Properties = append(append([]string{"initLimit=50", "syncLimit=20"}, members...), o.Properties...)
		s, err := newMember(member, i+1)
		if err == nil {
			e[i] = s
			err = s.launch()
		}
		if err != nil {
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

// newMember configures one server of an ensemble.
func newMember(o Options, id int) (*Server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, Address: address}
	if err := s.configure(); err != nil {
		return nil, err
	}
	return s, os.WriteFile(filepath.Join(o.Dir, "data", "myid"), []byte(strconv.Itoa(id)+"\n"), 0o644)
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
