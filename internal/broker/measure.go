package broker

import (
	"iter"
	"net/http"
	"strconv"

	"github.com/barnabas-mq/barnabas/internal/api"
	"github.com/barnabas-mq/barnabas/internal/metrics"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// measure makes the registry of metrics, which reads the parts when somebody scrapes.
func (b *Broker) measure() error {
	lag := metrics.NewLagReader(b.groups.Progress, b.replicas.LogOf, b.options.Now)
	registry, err := metrics.New(metrics.Options{
		Version: b.options.Version, ClusterID: b.dirs.ClusterID(), BrokerID: int32(b.id),
		Server: b.server.Stats, Topics: b.traffic, Groups: lag.Groups,
		Partitions: func() iter.Seq[metrics.Partition] {
			return metrics.ReadPartitions(b.id, b.view.Image(), b.replicas.LogOf, func(tp protocol.TopicPartition) bool { return b.dirs.Err(tp) != nil }, b.adding)
		},
		Directories: func() iter.Seq[metrics.Directory] { return metrics.ReadDirectories(b.dirs) },
		Cluster:     b.clusterMetrics,
		Store:       b.storeMetrics,
		Replication: func() metrics.Replication {
			s := b.replicas.Stats()
			return metrics.Replication{Shrinks: s.Shrinks, Expands: s.Expands, Refused: s.Refused, MaxLag: s.MaxLag}
		},
		Panicked: func(source string, cause any, stack []byte) {
			b.logger.Error("metrics are missing after a bug", "source", source, "panic", cause, "stack", string(stack))
		},
	})
	b.metrics.Store(registry)
	return err
}

// adding is how many replicas of a partition that this broker leads are being added.
func (b *Broker) adding(tp protocol.TopicPartition) int {
	p, err := b.replicas.Partition(tp)
	if err != nil {
		return 0
	}
	return p.Adding()
}

// clusterMetrics is the cluster as this broker sees it, and what it has done as controller.
func (b *Broker) clusterMetrics() metrics.Cluster {
	c := metrics.ReadCluster(b.id, b.view.Image())
	c.Elections, c.Unclean = b.controller.Elections()
	c.Moving, c.Awaited = b.controller.Moving(), len(b.controller.Waits())
	return c
}

// observe takes note of an answered request, once there is a registry.
func (b *Broker) observe(o api.Observation) {
	if registry := b.metrics.Load(); registry != nil {
		registry.Observe(o.Key, o.Version, o.Local, o.Total)
	}
}

// traffic lists what was produced and fetched by topic.
func (b *Broker) traffic() iter.Seq[metrics.Topic] {
	return func(yield func(metrics.Topic) bool) {
		more := true
		b.api.Traffic().All(func(name string, t *api.TopicTraffic) {
			more = more && yield(metrics.Topic{
				Name: name, BytesIn: t.BytesIn.Load(), RecordsIn: t.RecordsIn.Load(), BytesOut: t.BytesOut.Load(), RecordsOut: -1,
				FailedProduces: t.FailedProduces.Load(), FailedFetches: t.FailedFetches.Load(),
			})
		})
	}
}

// Metrics answers scrapes of this broker's metrics.
func (b *Broker) Metrics() http.Handler { return b.metrics.Load().Handler() }

// Unready lists why the broker does not serve clients, as pairs of a word and a sentence; none means that it does.
//
// It is what /readyz answers: a load balancer takes the broker out, a supervisor does not restart it.
func (b *Broker) Unready() [][2]string {
	select {
	case <-b.server.Draining():
		return [][2]string{{"stopping", "the broker is stopping, or has stopped"}}
	default:
		return nil
	}
}

// Degraded lists what is not served while the rest is, in the form of Unready: partitions of a directory that failed,
// and those in which damage was found.
func (b *Broker) Degraded() [][2]string {
	var reasons [][2]string
	if offline := b.dirs.Offline(); len(offline) > 0 {
		reasons = append(reasons, [2]string{"partitions", strconv.Itoa(len(offline)) + " partitions are offline, the first is " + offline[0].String()})
	}
	for _, dir := range b.dirs.Dirs() {
		if dir.Err != nil {
			reasons = append(reasons, [2]string{"directory", dir.Path + " is offline"})
		}
	}
	return reasons
}
