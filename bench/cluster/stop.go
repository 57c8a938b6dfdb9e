package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// stopRate is how many records a second the idempotent producer writes while a broker stops.
const stopRate = 1000

// Stop ends a broker in order, which leads about a third of the partitions, under an idempotent producer that writes to
// all of them, and starts it again afterwards. The clock starts with SIGTERM. A record that fails is an error.
func (s *Stage) Stop(ctx context.Context) ([]Figure, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	id, leaders, err := s.choose(ctx, Other)
	if err != nil {
		return nil, err
	}
	w, err := s.startWriter(ctx)
	if err != nil {
		return nil, err
	}
	figures, err := s.stop(ctx, id)
	if err := errors.Join(err, w.end()); err != nil {
		return nil, err
	}
	full, err := s.restore(ctx, id)
	return slices.Concat([]Figure{count("leaders handed over", int64(leaders))}, figures, []Figure{
		count("records acknowledged meanwhile", w.acked.Load()),
		seconds("slowest acknowledgement", time.Duration(w.slowest.Load())), seconds("back, every in-sync set full", full),
	}), err
}

func (s *Stage) stop(ctx context.Context, id int32) ([]Figure, error) {
	var ended time.Duration
	stopped := make(chan error, 1)
	began := time.Now()
	go func() {
		err := s.cluster.Brokers[id-1].Stop()
		ended = time.Since(began)
		stopped <- err
	}()
	led, err := s.asker.see(ctx, began, s.without(id), ledByOther(id))
	if failed := <-stopped; failed != nil {
		return nil, failed
	}
	return []Figure{seconds(lastLeader, led), seconds(processGone, ended)}, err
}

// writer is an idempotent producer that writes at a rate to all partitions of some topics.
type writer struct {
	client         *kgo.Client
	cancel         context.CancelFunc
	done           chan struct{}
	acked, slowest atomic.Int64          // slowest in ns
	failed         atomic.Pointer[error] // the first
}

// startWriter returns when a record has been acknowledged for each topic.
func (s *Stage) startWriter(ctx context.Context) (*writer, error) {
	topics := s.asker.topics
	client, err := newClient(s.cluster, kgo.ProducerLinger(0),
		kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		return nil, err
	}
	for _, topic := range topics {
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("first")}).FirstErr(); err != nil {
			client.Close()
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &writer{client: client, cancel: cancel, done: make(chan struct{})}
	go w.write(ctx, topics)
	return w, nil
}

func (w *writer) write(ctx context.Context, topics []string) {
	defer close(w.done)
	tick := time.NewTicker(time.Second / stopRate)
	defer tick.Stop()
	value := make([]byte, 100)
	for i := 0; ; i++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		sent := time.Now()
		w.client.Produce(context.WithoutCancel(ctx), &kgo.Record{Topic: topics[i%len(topics)], Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				w.failed.CompareAndSwap(nil, &err)
				return
			}
			w.acked.Add(1)
			took := int64(time.Since(sent))
			for old := w.slowest.Load(); took > old && !w.slowest.CompareAndSwap(old, took); old = w.slowest.Load() {
			}
		})
	}
}

// end waits for what is under way, and returns why a record failed if one did.
func (w *writer) end() error {
	w.cancel()
	<-w.done
	_ = w.client.Flush(context.Background()) // with this context it does not fail
	w.client.Close()
	if failed := w.failed.Load(); failed != nil {
		return fmt.Errorf("a record of the idempotent producer failed: %w", *failed)
	}
	return nil
}
