package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// network is hosts in network namespaces on one bridge:
//
//	clients, the program itself   10.77.0.1     on the bridge
//	ZooKeeper                     10.77.0.2     namespace store
//	brokers                       10.77.0.10+N  namespaces broker-N
//	nowhere                                     takes what is sent into a cut link, and counts it
//
// Nobody asks for hardware addresses: each host has a table of them. A link is cut in one direction by an entry that
// points nowhere, so that packets leave and never arrive, as with a broken wire. The sender gets no error.
//
// All of it lies in namespaces of the program's own (see isolate), and so ends with it.
type network struct {
	clients, store host
	brokers        []host
}

// host is one place in the network.
type host struct {
	name string // of the namespace; "" is the program's own
	ip   string
	mac  string
}

const nowhere = "02:77:00:00:00:ff"

// newHost is a host by the last number of its address.
func newHost(name string, number int) host {
	return host{name: name, ip: fmt.Sprintf("10.77.0.%d", number), mac: fmt.Sprintf("02:77:00:00:00:%02x", number)}
}

// under is the command that runs another one on the host.
func (h host) under() []string {
	if h.name == "" {
		return nil
	}
	return []string{"ip", "netns", "exec", h.name}
}

// device is the host's end.
func (h host) device() string {
	if h.name == "" {
		return "hub"
	}
	return "eth0"
}

// ip runs the command of that name.
func ip(line string) error {
	output, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", line, err, output)
	}
	return nil
}

// newNetwork connects all hosts. It is called once, in namespaces of the program's own.
func newNetwork() (*network, error) {
	n := &network{clients: newHost("", 1), store: newHost("store", 2)}
	for id := range 3 {
		n.brokers = append(n.brokers, newHost(fmt.Sprintf("broker-%d", id), 10+id))
	}
	lines := []string{
		"link set lo up", "link add hub address " + n.clients.mac + " type bridge", "link set hub up", "addr add " + n.clients.ip + "/24 dev hub",
		"link add tonowhere type veth peer name nowhere address " + nowhere, "link set tonowhere master hub up", "link set nowhere up",
	}
	for _, h := range n.hosts()[1:] {
		lines = append(lines,
			"netns add "+h.name,
			fmt.Sprintf("link add to%s type veth peer name eth0 netns %s address %s", h.name, h.name, h.mac),
			fmt.Sprintf("link set to%s master hub up", h.name),
			"-n "+h.name+" link set lo up", "-n "+h.name+" link set eth0 up", fmt.Sprintf("-n %s addr add %s/24 dev eth0", h.name, h.ip))
	}
	for _, line := range lines {
		if err := ip(line); err != nil {
			return nil, err
		}
	}
	return n, n.mendAll()
}

// hosts are all of them, the program's own first.
func (n *network) hosts() []host { return append([]host{n.clients, n.store}, n.brokers...) }

// mendAll lets all hosts reach each other.
func (n *network) mendAll() error {
	for _, from := range n.hosts() {
		for _, to := range n.hosts() {
			if err := n.mend(from, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// cut takes away what is sent from one host to another. The other direction stays.
func (n *network) cut(from, to host) error { return n.point(from, to, nowhere) }

// mend is the opposite of cut.
func (n *network) mend(from, to host) error { return n.point(from, to, to.mac) }

func (n *network) point(from, to host, mac string) error {
	if from == to {
		return nil
	}
	line := fmt.Sprintf("neigh replace %s lladdr %s dev %s nud permanent", to.ip, mac, from.device())
	if from.name != "" {
		line = "-n " + from.name + " " + line
	}
	return ip(line)
}

// lost is how many packets went nowhere so far.
func (n *network) lost() (int, error) {
	output, err := exec.Command("ip", "-s", "-o", "link", "show", "nowhere").Output()
	if err != nil {
		return 0, err
	}
	// … RX: bytes packets errors …\ 1234 12 0 …
	_, after, _ := strings.Cut(string(output), "RX:")
	fields := strings.Fields(after)
	for i, field := range fields {
		if strings.HasPrefix(field, "\\") && i+2 < len(fields) {
			return strconv.Atoi(fields[i+2])
		}
	}
	return 0, fmt.Errorf("no count of packets in %q", output)
}
