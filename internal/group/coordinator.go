package group

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// textMax is the longest text that goes into a record: its length there is an int16.
const textMax = 1<<15 - 1

// memberIDClientMax is how much of a client id goes into a member id.
const memberIDClientMax = 1 << 10

// Options are what a Coordinator is made of.
type Options struct {
	// Partitions is how many partitions __consumer_offsets has.
	Partitions int
	// Config is asked whenever it matters; nil means Kafka's defaults.
	Config func() Config
	// Log is how records are written; nil means defaults.
	Log func() shard.Config
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
	// Random is where member ids come from; nil means the system's randomness.
	Random io.Reader
	// Logger is where is told what groups do; nil means nowhere.
	Logger *slog.Logger
}

// Coordinator coordinates the groups of the partitions that this broker leads. All methods may be called
// concurrently.
//
// A method answers when what it says is committed. Those of JoinGroup, SyncGroup, Heartbeat, LeaveGroup and
// OffsetCommit come in two phases too: Begin… returns when the request has taken its place in the log, in the
// order of the calls, and what it returns waits for the answer and must be called once. Responses have no
// throttle time. Requests must stay as they are until they are answered; their byte fields are copied where
// they are kept, their texts must not alias a buffer that is used again (kmsg's ReadFrom copies them).
// Authorization is the caller's.
type Coordinator struct {
	runtime *shard.Runtime[*Machine]
	config  func() Config
	random  io.Reader
}

// NewCoordinator makes a coordinator that leads nothing yet. Close it in the end.
func NewCoordinator(options Options) *Coordinator {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Config == nil {
		options.Config = DefaultConfig
	}
	if options.Random == nil {
		options.Random = rand.Reader
	}
	return &Coordinator{
		config: options.Config, random: options.Random,
		runtime: shard.NewRuntime(shard.Options[*Machine]{
			Topic: protocol.GroupMetadataTopic, Partitions: options.Partitions,
			Machine: func(partition int32) *Machine {
				return NewMachine(options.Config, options.Logger.With("partition", partition))
			},
			Config: options.Log, Now: options.Now, Logger: options.Logger,
		}),
	}
}

// Lead starts loading a partition of __consumer_offsets that this broker leads since epoch.
func (c *Coordinator) Lead(partition int32, epoch protocol.LeaderEpoch, log shard.Partition) {
	c.runtime.Lead(partition, epoch, log)
}

// Resign drops a partition that this broker leads no more.
func (c *Coordinator) Resign(partition int32) { c.runtime.Resign(partition) }

// Await returns once a partition is loaded; NOT_COORDINATOR where it is not led.
func (c *Coordinator) Await(ctx context.Context, partition int32) error {
	return c.runtime.Await(ctx, partition)
}

// Close resigns from everything.
func (c *Coordinator) Close() { c.runtime.Close() }

// PartitionFor is the partition that holds a group.
func (c *Coordinator) PartitionFor(group string) int32 {
	return PartitionFor(group, int32(c.runtime.Partitions()))
}

// EndTransaction appends a transaction marker to a partition of __consumer_offsets and applies it.
func (c *Coordinator) EndTransaction(ctx context.Context, partition int32, m shard.Marker) error {
	return c.runtime.EndTransaction(ctx, partition, m)
}

// ForgetTopics forgets the offsets of topics that are gone, in all partitions that this broker leads; those
// that are still loading are waited for. gone is asked with a topic's name and the id for which an offset was
// committed, zero where that is not known; it must know all topics that there are. It may be called
// concurrently.
func (c *Coordinator) ForgetTopics(ctx context.Context, gone func(topic string, id protocol.TopicID) bool) error {
	for _, partition := range c.runtime.Led() {
		err := c.runtime.Await(ctx, partition)
		if err == nil {
			err = c.runtime.Write(ctx, partition, func(m *Machine, _ shard.Now) (shard.Decision, error) {
				return m.ForgetTopics(gone), nil
			})
		}
		if err != nil && protocol.CodeOf(err) != protocol.NotCoordinator {
			return fmt.Errorf("forgetting offsets of deleted topics in partition %d: %w", partition, err)
		}
	}
	return nil
}

// newMemberID makes a member id as Kafka does: instance or client id, a dash, a random UUID.
func (c *Coordinator) newMemberID(client ClientInfo, instanceID *string) (string, error) {
	var u [16]byte
	if _, err := io.ReadFull(c.random, u[:]); err != nil {
		return "", fmt.Errorf("member id: %w", err)
	}
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	prefix := client.ClientID
	if instanceID != nil {
		prefix = *instanceID
	}
	prefix = prefix[:min(len(prefix), memberIDClientMax)]
	return fmt.Sprintf("%s-%x-%x-%x-%x-%x", prefix, u[:4], u[4:6], u[6:8], u[8:10], u[10:]), nil
}

// byPartition sorts groups by the partition that holds them, in order; the values are their places in the
// list.
func (c *Coordinator) byPartition(groups []string) iter.Seq2[int32, []int] {
	places := map[int32][]int{}
	for i, group := range groups {
		partition := c.PartitionFor(group)
		places[partition] = append(places[partition], i)
	}
	return func(yield func(int32, []int) bool) {
		for _, partition := range slices.Sorted(maps.Keys(places)) {
			if !yield(partition, places[partition]) {
				return
			}
		}
	}
}
