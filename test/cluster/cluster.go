package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/zookeeper"
	"github.com/barnabas-mq/barnabas/internal/coordination/zookeeper/zktest"
	"github.com/barnabas-mq/barnabas/test/process"
)

// settings are what a scenario wants of its cluster.
type settings struct {
	// session is zookeeper.session.timeout.ms.
	session time.Duration
	// lag is replica.lag.time.max.ms.
	lag time.Duration
	// minISR is min.insync.replicas of orders, which has partitions partitions.
	minISR, partitions int
	// movedMinISR is the same of moved.
	movedMinISR int
	// servers is how many ZooKeepers there are.
	servers int
	// volume is the size of each broker's disk in MiB; 0 means a folder.
	volume int
	// secondDirectory says that each broker has another log directory, which can be made to fail.
	secondDirectory bool
	// treeGoesBack says that the scenario sets the tree back, so that nobody looks whether it does.
	treeGoesBack bool
	// unchanged says that nobody changes topics and moves partitions, but for the scenario.
	unchanged bool
	// relayed says that brokers reach each other by a relay.
	relayed bool
}

// chroot is the path of the cluster in ZooKeeper, which nobody creates beforehand.
const chroot = "/deep/cluster"

// cluster is ZooKeeper and the brokers.
type cluster struct {
	dir      string
	settings settings
	network  *network // nil: everything on 127.0.0.1
	isolated bool     // whether that is nobody else's
	relay    *relay   // nil: brokers reach each other directly
	servers  zktest.Ensemble
	brokers  []*broker
	random   *rand.Rand
}

// broker is one of the cluster.
type broker struct {
	process.Broker
	id int
	// host is its place in the network.
	host host
	// metrics is where it tells of itself; empty where no port is certain to be free.
	metrics string
}

// logDirs are where its partitions lie.
func (b *broker) logDirs() []string {
	dirs := []string{filepath.Join(b.Dir, "data")}
	if second := filepath.Join(b.Dir, secondDirectory); exists(second) {
		dirs = append(dirs, second)
	}
	return dirs
}

// folder is where a partition lies.
func (b *broker) folder(tp topicPartition) string {
	var folder string
	for _, dir := range b.logDirs() {
		if in := filepath.Join(dir, tp.String()); folder == "" || exists(in) {
			folder = in
		}
	}
	return folder
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// newCluster starts ZooKeeper and three brokers.
func newCluster(o options, s settings, dir string, n *network) (*cluster, error) {
	c := &cluster{dir: dir, settings: s, network: n, isolated: n != nil, random: rand.New(rand.NewPCG(o.seed, 0))}
	if s.servers > 1 {
		c.network = nil // an ensemble's members are on 127.0.0.1
	}
	if err := c.startZooKeeper(); err != nil {
		return nil, err
	}
	if s.relayed {
		var err error
		if c.relay, err = newRelay(n); err != nil {
			return c, err
		}
	}
	for id := range 3 {
		b, err := c.newBroker(o.program, id, filepath.Join(dir, fmt.Sprintf("broker-%d", id)))
		if err != nil {
			return c, err
		}
		c.brokers = append(c.brokers, b)
	}
	return c, start(c.brokers)
}

func (c *cluster) startZooKeeper() error {
	o := zktest.Options{Tick: 200 * time.Millisecond}
	if c.settings.servers > 1 {
		servers, err := zktest.StartEnsemble(filepath.Join(c.dir, "zookeeper"), c.settings.servers, o)
		c.servers = servers
		return err
	}
	o.Dir = filepath.Join(c.dir, "zookeeper")
	if c.network != nil {
		o.Address, o.Under = c.network.store.ip+":2181", c.network.store.under()
	}
	server, err := zktest.Start(o)
	if err != nil {
		return err
	}
	c.servers = zktest.Ensemble{server}
	return nil
}

// newBroker is a broker that may start for longer than the session of its earlier life lasts, which it waits for.
func (c *cluster) newBroker(program string, id int, dir string) (*broker, error) {
	b := &broker{id: id, Broker: process.Broker{
		Program: program, Dir: dir, StartLimit: time.Minute,
		Overrides: []string{
			"http.listener=", fmt.Sprintf("broker.id=%d", id),
			"zookeeper.connect=" + strings.Join(c.servers.Addresses(), ",") + chroot,
			fmt.Sprintf("zookeeper.session.timeout.ms=%d", c.settings.session.Milliseconds()), "zookeeper.connection.timeout.ms=30000",
			fmt.Sprintf("replica.lag.time.max.ms=%d", c.settings.lag.Milliseconds()),
			"offsets.topic.num.partitions=4", "auto.create.topics.enable=false", "leader.imbalance.check.interval.seconds=5",
			"group.initial.rebalance.delay.ms=0",
		},
	}}
	if c.network != nil {
		b.host = c.network.brokers[id]
		b.Under, b.Address = b.host.under(), b.host.ip+":9092"
		b.metrics = b.host.ip + ":9644"
	} else if c.isolated {
		b.metrics = fmt.Sprintf("127.0.0.1:%d", 9644+id)
	}
	b.Overrides[0] += b.metrics
	if c.relay != nil {
		b.Overrides = append(b.Overrides, c.network.relayed(id)...)
	}
	if c.settings.secondDirectory {
		b.Directories = []string{"data", secondDirectory}
		b.Overrides = append(b.Overrides, "log.flush.offset.checkpoint.interval.ms=1000")
		return b, b.linkDirectory()
	}
	if c.settings.volume > 0 {
		return b, mountVolume(filepath.Join(dir, "data"), c.settings.volume)
	}
	return b, nil
}

// fork is a random source of its own.
func (c *cluster) fork() *rand.Rand { return rand.New(rand.NewPCG(c.random.Uint64(), 0)) }

// openSession opens a session with the tree of the cluster.
func (c *cluster) openSession(ctx context.Context) (coordination.Session, error) {
	store := zookeeper.New(zookeeper.Options{Servers: c.servers.Addresses()})
	return store.Open(ctx, coordination.SessionOptions{Timeout: 10 * time.Second, Chroot: chroot})
}

func (c *cluster) addresses() []string {
	var all []string
	for _, b := range c.brokers {
		all = append(all, b.Address)
	}
	return all
}

// others are all brokers but those.
func (c *cluster) others(not ...*broker) []*broker {
	var all []*broker
	for _, b := range c.brokers {
		if !slices.Contains(not, b) {
			all = append(all, b)
		}
	}
	return all
}

// said counts the lines with a text in what all brokers have logged.
func (c *cluster) said(text string) (int, error) {
	n := 0
	for _, b := range c.brokers {
		log, err := b.Said()
		if err != nil {
			return 0, err
		}
		n += strings.Count(log, text)
	}
	return n, nil
}

// end kills whatever still runs, and takes the network and the volumes away.
func (c *cluster) end() error {
	for _, b := range c.brokers {
		b.Kill()
	}
	c.servers.Kill()
	var errs []error
	if c.relay != nil {
		errs = append(errs, c.relay.close())
	}
	if c.settings.volume > 0 {
		for _, b := range c.brokers {
			errs = append(errs, unmountVolume(filepath.Join(b.Dir, "data")))
		}
	}
	return errors.Join(errs...)
}

// start starts brokers side by side.
func start(brokers []*broker) error {
	errs := make(chan error, len(brokers))
	for _, b := range brokers {
		go func() { errs <- b.Start() }()
	}
	var all []error
	for range brokers {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// copyFolder copies files, as a backup does.
func copyFolder(from, to string) error { return os.CopyFS(to, os.DirFS(from)) }
