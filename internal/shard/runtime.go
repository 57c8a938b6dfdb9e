package shard

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// What Config means where it says nothing: Kafka's defaults.
const (
	defaultMaxBatchBytes = 1<<20 + record.LogOverhead
	defaultCommitTimeout = 5 * time.Second
	defaultLoadBytes     = 1 << 20
	// loaders is how many shards are loaded at a time: each holds a read's worth of memory.
	loaders = 4
)

// Config is what may change while the runtime runs. Zero fields take Kafka's default.
type Config struct {
	// Codec and Level compress what is appended (offsets.topic.compression.codec and its like).
	Codec record.Codec
	Level int
	// MaxBatchBytes is the topic's max.message.bytes.
	MaxBatchBytes int
	// CommitTimeout bounds the wait for the high watermark (offsets.commit.timeout.ms).
	CommitTimeout time.Duration
	// LoadBytes is what loading reads at a time (offsets.load.buffer.size).
	LoadBytes int
}

// Options are what a Runtime is made of.
type Options[M Machine] struct {
	// Topic is the internal topic, for messages.
	Topic string
	// Partitions is how many partitions the topic has; it never changes.
	Partitions int
	// Machine makes an empty machine for a partition.
	Machine func(partition int32) M
	// Config is asked before every append and load; nil means defaults.
	Config func() Config
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
	// Logger is where losses and retries are told; nil means nowhere.
	Logger *slog.Logger
}

// Runtime runs the shards of one internal topic. All methods may be called concurrently.
//
// Locks, in the order in which they may be taken: a shard's one-slot channel, then mu, then the partition's
// own. mu is held for a look at or a change of the table only, never over I/O; a shard's lock may be held over
// an append. Config, Machine and the decisions are called under a shard's lock and must not call the runtime.
//
// Goroutines: one for each load, counted in loading; one for a moment when a shard's timer fires. Close ends
// both: it waits for the loads, and a timer that fires afterwards finds its shard dropped.
type Runtime[M Machine] struct {
	options Options[M]
	clock   *clock
	logger  *slog.Logger
	slots   chan struct{} // one for each shard that is being loaded

	// context ends with Close; every loading goroutine is counted in loading.
	context context.Context
	cancel  context.CancelFunc
	loading sync.WaitGroup

	// codecs keeps decompression buffers between loads.
	codecs record.Decompressor

	mu struct {
		sync.RWMutex
		shards []*shard[M] // by partition; nil where this broker does not lead
		closed bool
	}
}

// NewRuntime makes a runtime that leads nothing yet.
func NewRuntime[M Machine](options Options[M]) *Runtime[M] {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Runtime[M]{
		options: options, clock: newClock(options.Now), logger: options.Logger.With("topic", options.Topic),
		slots: make(chan struct{}, loaders),
	}
	r.context, r.cancel = context.WithCancel(context.Background())
	r.mu.shards = make([]*shard[M], options.Partitions)
	return r
}

// Partitions is how many partitions the topic has.
func (r *Runtime[M]) Partitions() int { return r.options.Partitions }

// Lead starts loading a partition that this broker leads since epoch; log must be at the start of that
// epoch: what is in it now is what must be committed before the shard opens. An older epoch than the present
// one's, and the same again, change nothing; nor does a newer one where the leadership has not been broken, as when
// a replica left the in-sync set: nobody else can have written, so that the shard knows all there is.
func (r *Runtime[M]) Lead(partition int32, epoch protocol.LeaderEpoch, log Partition) {
	if old, err := r.shard(partition); err == nil && old.log.LedSince(old.epoch) {
		return
	}
	s := newShard(r, partition, epoch, log)
	old, ok := r.replace(partition, s)
	if !ok {
		return
	}
	if old != nil {
		old.drop(protocol.NotCoordinator)
	}
	r.load(s, 0)
}

// replace puts s in its place, unless what is there is as new.
func (r *Runtime[M]) replace(partition int32, s *shard[M]) (old *shard[M], ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if partition < 0 || int(partition) >= len(r.mu.shards) || r.mu.closed {
		return nil, false
	}
	old = r.mu.shards[partition]
	if old != nil && old.epoch >= s.epoch {
		return nil, false
	}
	r.mu.shards[partition] = s
	return old, true
}

// reload replaces a shard whose machine cannot be trusted, unless leadership has gone on meanwhile.
//
// failures travels with the replacement, so that a log that cannot be read is not read in a loop: the delay
// grows from 50 ms to 10 s. It is forgotten once a shard has been open for a while.
func (r *Runtime[M]) reload(s *shard[M]) {
	next := newShard(r, s.partition, s.epoch, s.log)
	next.failures = s.failures + 1
	r.mu.Lock()
	current := !r.mu.closed && r.mu.shards[s.partition] == s
	if current {
		r.mu.shards[s.partition] = next
	}
	r.mu.Unlock()
	if current {
		r.load(next, backoff(s.failures))
	}
}

// Resign drops a partition that this broker leads no more: who waits gets NOT_COORDINATOR.
func (r *Runtime[M]) Resign(partition int32) {
	r.mu.Lock()
	var s *shard[M]
	if partition >= 0 && int(partition) < len(r.mu.shards) {
		s, r.mu.shards[partition] = r.mu.shards[partition], nil
	}
	r.mu.Unlock()
	if s != nil {
		s.drop(protocol.NotCoordinator)
	}
}

// Close resigns from everything and returns once no goroutine of the runtime is left.
func (r *Runtime[M]) Close() {
	r.mu.Lock()
	r.mu.closed = true
	shards := slices.Clone(r.mu.shards)
	clear(r.mu.shards)
	r.mu.Unlock()
	r.cancel()
	for _, s := range shards {
		if s != nil {
			s.drop(protocol.NotCoordinator)
		}
	}
	r.loading.Wait()
}

// Led lists the partitions that this broker leads, open or still loading.
func (r *Runtime[M]) Led() []int32 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var led []int32
	for partition, s := range r.mu.shards {
		if s != nil {
			led = append(led, int32(partition))
		}
	}
	return led
}

// Await returns once a partition's shard is open; NOT_COORDINATOR where it is not led, or no longer.
func (r *Runtime[M]) Await(ctx context.Context, partition int32) error {
	for {
		s, err := r.shard(partition)
		if err != nil {
			return err
		}
		select {
		case <-s.ready:
			return nil
		case <-s.context.Done():
			if s.ended() {
				return protocol.NotCoordinator
			}
			// Its load failed, and another shard tries again.
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// shard finds a partition's shard, or NOT_COORDINATOR.
func (r *Runtime[M]) shard(partition int32) (*shard[M], error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if partition < 0 || int(partition) >= len(r.mu.shards) || r.mu.shards[partition] == nil {
		return nil, protocol.NotCoordinator
	}
	return r.mu.shards[partition], nil
}

// config is the present configuration with defaults filled in.
func (r *Runtime[M]) config() Config {
	var c Config
	if r.options.Config != nil {
		c = r.options.Config()
	}
	if c.MaxBatchBytes <= 0 {
		c.MaxBatchBytes = defaultMaxBatchBytes
	}
	if c.CommitTimeout <= 0 {
		c.CommitTimeout = defaultCommitTimeout
	}
	if c.LoadBytes <= 0 {
		c.LoadBytes = defaultLoadBytes
	}
	return c
}

// backoff is the delay before the load after so many failures in a row: none before the first.
func backoff(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	return min(50*time.Millisecond<<min(failures-1, 10), 10*time.Second)
}
