package barnabas

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/broker"
	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/memory"
	"github.com/barnabas-mq/barnabas/internal/coordination/quorum"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Cluster is several brokers in this process, with ids from 1 on. They replicate to each other over the
// loopback like brokers on machines of their own, and share a store: it is for tests and for trying things out,
// since all of them end with the process.
type Cluster struct {
	// Brokers are its members; each may be stopped by itself.
	Brokers []*Broker

	closeStore func() error
}

// StartCluster runs n brokers; it returns when clients can use them. Without an address each listens on a free
// port of 127.0.0.1, otherwise the first has the address and the others the ports behind it. In DataDir each
// has a directory of its own, and the metadata are in one beside them; with the property zookeeper.connect they
// are in that ensemble, and what it keeps outlives the process, so that DataDir must be set too. Internal topics have
// as many replicas as there are brokers, up to three.
func StartCluster(ctx context.Context, n int, o Options) (*Cluster, error) {
	store, closeStore, err := openStore(o)
	if err != nil {
		return nil, err
	}
	c := &Cluster{closeStore: closeStore}
	for i := range n {
		b, err := startMember(ctx, i, n, o, store)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("broker %d: %w", i+1, err), c.Stop(ctx))
		}
		c.Brokers = append(c.Brokers, b)
	}
	return c, nil
}

// errMemoryOnZooKeeper refuses what would come back with topics and without their records.
var errMemoryOnZooKeeper = errors.New("a cluster on ZooKeeper needs a data directory: what is in the ensemble outlives this process, what is in memory does not")

// openStore makes the store that the members share; none where each connects to ZooKeeper by itself.
func openStore(o Options) (coordination.Store, func() error, error) {
	if o.Properties["zookeeper.connect"] != "" {
		if o.DataDir == "" {
			return nil, nil, errMemoryOnZooKeeper
		}
		return nil, func() error { return nil }, nil
	}
	if o.DataDir == "" {
		store := memory.New(memory.Options{})
		return store, store.Close, nil
	}
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	files := vfs.OS()
	dir := filepath.Join(o.DataDir, "metadata")
	if err := files.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, err
	}
	store, err := quorum.Open(quorum.Options{FS: files, Dir: dir, NodeID: 0, Logger: logger})
	if err != nil {
		return nil, nil, err
	}
	return store, store.Close, nil
}

// startMember starts the broker at a place of the cluster.
func startMember(ctx context.Context, i, n int, o Options, store coordination.Store) (*Broker, error) {
	own := o
	own.Properties = map[string]string{
		"broker.id": strconv.Itoa(i + 1), "offsets.topic.replication.factor": strconv.Itoa(min(n, 3)),
		"default.replication.factor": strconv.Itoa(min(n, 3)),
	}
	maps.Copy(own.Properties, o.Properties)
	if o.DataDir != "" {
		own.DataDir = filepath.Join(o.DataDir, fmt.Sprintf("broker-%d", i+1))
	}
	if o.Address != "" {
		host, text, err := net.SplitHostPort(o.Address)
		if err != nil {
			return nil, err
		}
		port, err := strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
		own.Address = net.JoinHostPort(host, strconv.Itoa(port+i))
	}
	overrides, files := own.overrides()
	loaded, _, err := config.Load(config.LoadOptions{Overrides: overrides})
	if err != nil {
		return nil, err
	}
	logger := o.Logger
	if logger != nil {
		logger = logger.With("broker", i+1)
	}
	b, err := broker.Start(ctx, broker.Options{Config: loaded, FS: files, Store: store, Logger: logger})
	if err != nil {
		return nil, err
	}
	return &Broker{b}, nil
}

// Addresses is what clients bootstrap from: the first listeners of all brokers, joined by commas.
func (c *Cluster) Addresses() string {
	var all []string
	for _, b := range c.Brokers {
		all = append(all, b.Address())
	}
	return strings.Join(all, ",")
}

// Stop ends the brokers in order, one after the other, so that each hands over what it leads. Where ctx ends
// first, the rest stops as after a crash.
func (c *Cluster) Stop(ctx context.Context) error {
	var errs []error
	for _, b := range c.Brokers {
		errs = append(errs, b.Stop(ctx))
	}
	return errors.Join(append(errs, c.closeStore())...)
}
