package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Cluster is several brokers on a ZooKeeper of their own. Broker i has the id i+1.
type Cluster struct {
	ZooKeeper *Server
	Brokers   []*Server
}

// BarnabasCluster are so many brokers of ours on a new ZooKeeper; properties are those of every broker, as key=value,
// and the last of a name wins.
func (p *Place) BarnabasCluster(name string, brokers int, properties ...string) (*Cluster, error) {
	return p.cluster(name, brokers, p.barnabas, properties)
}

// KafkaCluster are so many brokers of Apache Kafka 3.9, 1 GiB of heap each, on a new ZooKeeper; properties as for
// BarnabasCluster.
func (p *Place) KafkaCluster(name string, brokers int, properties ...string) (*Cluster, error) {
	return p.cluster(name, brokers, p.kafkaOnZooKeeper, properties)
}

func (p *Place) cluster(name string, brokers int, one func(string, ...string) (*Server, error), properties []string) (*Cluster, error) {
	zk, err := p.ZooKeeper(name + "-zookeeper")
	if err != nil {
		return nil, err
	}
	c := &Cluster{ZooKeeper: zk}
	replicas := min(brokers, 3)
	shared := []string{
		"zookeeper.connect=" + zk.Address, "group.initial.rebalance.delay.ms=0",
		fmt.Sprintf("offsets.topic.replication.factor=%d", replicas), fmt.Sprintf("transaction.state.log.replication.factor=%d", replicas),
		fmt.Sprintf("transaction.state.log.min.isr=%d", max(1, replicas-1)),
	}
	for i := range brokers {
		id := fmt.Sprintf("broker.id=%d", i+1)
		broker, err := one(fmt.Sprintf("%s-%d", name, i+1), slices.Concat(shared, properties, []string{id})...)
		if err != nil {
			return nil, err
		}
		c.Brokers = append(c.Brokers, broker)
	}
	return c, nil
}

// Bootstrap are the addresses of the brokers.
func (c *Cluster) Bootstrap() []string {
	var addresses []string
	for _, b := range c.Brokers {
		addresses = append(addresses, b.Address)
	}
	return addresses
}

// Start starts what does not run, ZooKeeper first, and returns when every broker answers and the metadata names all of
// them and a controller.
func (c *Cluster) Start(ctx context.Context) error {
	for _, s := range slices.Concat([]*Server{c.ZooKeeper}, c.Brokers) {
		if s.Running() {
			continue
		}
		if err := s.Start(ctx); err != nil {
			return err
		}
	}
	return c.Await(ctx, len(c.Brokers))
}

// Await returns when the metadata names so many brokers and a controller.
func (c *Cluster) Await(ctx context.Context, brokers int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Bootstrap()...), kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	return Poll(ctx, 20*time.Millisecond, func() error {
		m, err := kadm.NewClient(client).BrokerMetadata(ctx)
		if err == nil && (len(m.Brokers) != brokers || m.Controller < 0) {
			err = fmt.Errorf("%d of %d brokers, controller %d", len(m.Brokers), brokers, m.Controller)
		}
		return err
	})
}

// Stop ends the brokers with SIGTERM, all at once, and then ZooKeeper.
func (c *Cluster) Stop() error {
	errs := make([]error, len(c.Brokers))
	done := make(chan struct{})
	for i, b := range c.Brokers {
		go func() {
			errs[i] = b.Stop()
			done <- struct{}{}
		}()
	}
	for range c.Brokers {
		<-done
	}
	return errors.Join(append(errs, c.ZooKeeper.Stop())...)
}

// Usage is the sum over the brokers. ZooKeeper is not in it: it is the same software on either side.
func (c *Cluster) Usage() (Usage, error) {
	var sum Usage
	for _, b := range c.Brokers {
		u, err := b.Usage()
		if err != nil {
			return sum, fmt.Errorf("%s: %w", b.Name, err)
		}
		sum.CPU, sum.RSS, sum.Peak, sum.Read = sum.CPU+u.CPU, sum.RSS+u.RSS, sum.Peak+u.Peak, sum.Read+u.Read
	}
	return sum, nil
}
