package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/bench/servers"
)

// client makes a client as all loads use it: large batches and large fetches, and a look at the metadata at once.
func client(s *servers.Server, options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(s.Address), kgo.ClientID("bench"), kgo.MetadataMinAge(20 * time.Millisecond),
		kgo.AllowIdempotentProduceCancellation(), kgo.DisableClientMetrics(),
		kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(1 << 20), kgo.MaxBufferedRecords(250_000), kgo.MaxBufferedBytes(256 << 20),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.FetchMaxBytes(50 << 20), kgo.FetchMaxPartitionBytes(8 << 20),
	}, options...)...)
}

// clients makes several.
func clients(s *servers.Server, n int, options ...kgo.Opt) ([]*kgo.Client, func(), error) {
	var all []*kgo.Client
	closeAll := func() {
		for _, c := range all {
			c.Close()
		}
	}
	for range n {
		c, err := client(s, options...)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		all = append(all, c)
	}
	return all, closeAll, nil
}

// acksOne are the options of a producer without idempotence that waits for the leader only.
func acksOne() []kgo.Opt {
	return []kgo.Opt{kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()}
}

// newTopic creates a topic under a fresh name, and waits until its partitions are led. Its files go when it does, so
// that what is left of one round is not written during the next.
func (c *comparison) newTopic(s *servers.Server, partitions int, configs map[string]*string) (string, error) {
	c.topic++
	name := fmt.Sprintf("bench-%d", c.topic)
	cl, err := client(s)
	if err != nil {
		return "", err
	}
	defer cl.Close()
	zero := "0"
	if configs == nil {
		configs = map[string]*string{}
	}
	configs["file.delete.delay.ms"] = &zero
	admin := kadm.NewClient(cl)
	if _, err := admin.CreateTopic(c.ctx, int32(partitions), 1, configs, name); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(c.ctx, time.Minute)
	defer cancel()
	return name, awaitLeaders(ctx, cl, name, partitions, 20*time.Millisecond)
}

// awaitLeaders waits until the leader of each partition of a topic tells its end. Its metadata is not enough: a KRaft
// broker shows a leader before that one knows of it, and then refuses the first requests.
func awaitLeaders(ctx context.Context, cl *kgo.Client, topic string, partitions int, every time.Duration) error {
	admin := kadm.NewClient(cl)
	return servers.Poll(ctx, every, func() error {
		ends, err := admin.ListEndOffsets(ctx, topic)
		if err == nil {
			err = ends.Error()
		}
		if err != nil || len(ends[topic]) != partitions {
			return errors.Join(fmt.Errorf("of %d partitions of %s %d are told of", partitions, topic, len(ends[topic])), err)
		}
		return nil
	})
}

// dropTopic deletes a topic, and waits until its files are gone, so that no side deletes while another is measured.
func (c *comparison) dropTopic(s *servers.Server, name string) error {
	cl, err := client(s)
	if err != nil {
		return err
	}
	defer cl.Close()
	if _, err := kadm.NewClient(cl).DeleteTopic(c.ctx, name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.ctx, time.Minute)
	defer cancel()
	return s.AwaitNoFiles(ctx, name, 5*time.Millisecond)
}
