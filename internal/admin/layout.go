package admin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/balance"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Layout is where everything lies, as plans are made from.
type Layout struct {
	Cluster Cluster
	// Topics are all of them, sorted by name.
	Topics []Topic
	// Ongoing are the reassignments under way; a plan takes for given that they will end.
	Ongoing []Ongoing
	// Unlisted says why the reassignments are not known: a controller without its store answers nothing. No plan can be
	// made then.
	Unlisted error
	// Elections says when a leader is elected uncleanly, of partitions for whose in-sync replicas the controller waits.
	Elections map[TopicPartition]time.Time
	// Sizes is the bytes of each replica that a broker tells of, and Closed holds the brokers that are to get no
	// replicas any more (cordoned.log.dirs=*).
	Sizes  map[ReplicaOf]int64
	Closed map[int32]bool
	// Silent says why a living broker told nothing.
	Silent map[int32]error
}

// ReplicaOf is a replica by its place.
type ReplicaOf struct {
	TopicPartition
	Broker int32
}

// Layout asks the controller for all topics and reassignments, and every broker for sizes. A broker that does not answer
// for its directories is told of in Silent; the sizes of its replicas are missing.
func (c *Client) Layout(ctx context.Context) (*Layout, error) {
	metadata, err := c.newestMetadata(ctx, nil)
	if err != nil {
		return nil, err
	}
	l := layoutOf(metadata)
	listing, cancel := c.limitOne(ctx)
	defer cancel()
	if l.Ongoing, l.Elections, err = c.undertakings(listing); err != nil {
		l.Unlisted = fmt.Errorf("the controller does not say what is being reassigned (is ZooKeeper there?): %w", err)
	}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, b := range l.Cluster.Brokers {
		asking.Go(func() {
			asking, cancel := c.limitOne(ctx)
			defer cancel()
			dirs, err := c.LogDirs(asking, []int32{b.ID}, nil)
			closed := err == nil && c.closed(asking, b.ID)
			mu.Lock()
			defer mu.Unlock()
			l.Closed[b.ID] = closed
			l.addSizes(dirs)
			if err != nil {
				l.Silent[b.ID] = err
			}
		})
	}
	asking.Wait()
	return l, nil
}

// layoutOf is the part of a layout that Metadata tells.
func layoutOf(metadata *kmsg.MetadataResponse) *Layout {
	l := &Layout{Cluster: clusterOf(metadata), Sizes: map[ReplicaOf]int64{}, Closed: map[int32]bool{}, Silent: map[int32]error{}}
	for i := range metadata.Topics {
		l.Topics = append(l.Topics, topicOf(&metadata.Topics[i]))
	}
	slices.SortFunc(l.Topics, func(a, b Topic) int { return TopicPartition{Topic: a.Name}.Compare(TopicPartition{Topic: b.Name}) })
	return l
}

// newestMetadata asks the controller for the named topics, or with nil for all.
func (c *Client) newestMetadata(ctx context.Context, names []string) (*kmsg.MetadataResponse, error) {
	return newest[*kmsg.MetadataResponse](ctx, c, metadataRequest(names))
}

func (l *Layout) addSizes(dirs []LogDir) {
	for _, d := range dirs {
		for _, replica := range d.Replicas {
			if !replica.Future {
				l.Sizes[ReplicaOf{replica.TopicPartition, d.Broker}] = replica.Size
			}
		}
	}
}

// cordoned is the property by which a broker's directories get no new replicas (KIP-1066).
const cordoned = "cordoned.log.dirs"

// closed reports whether a broker is to get no replicas. Brokers that have no such property never say so.
func (c *Client) closed(ctx context.Context, broker int32) bool {
	resources, err := c.describeConfigs(ctx, kmsg.ConfigResourceTypeBroker, []string{strconv.Itoa(int(broker))}, []string{cordoned})
	return err == nil && resources[0].Err == nil && slices.ContainsFunc(resources[0].Entries, func(e ConfigEntry) bool { return e.Text() == "*" })
}

// SetClosed says that a broker is to get no replicas any more, or with false that it may again.
func (c *Client) SetClosed(ctx context.Context, broker int32, closed bool) error {
	op := ConfigOp{Name: cordoned, Kind: kmsg.IncrementalAlterConfigOpDelete}
	if closed {
		op.Kind, op.Value = kmsg.IncrementalAlterConfigOpSet, kmsg.StringPtr("*")
	}
	return c.AlterConfigs(ctx, kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(broker)), []ConfigOp{op}, false)
}

// Alive reports whether a broker is there.
func (l *Layout) Alive(broker int32) bool {
	return slices.ContainsFunc(l.Cluster.Brokers, func(b Broker) bool { return b.ID == broker })
}

// Moving finds the reassignment of a partition; nil where there is none.
func (l *Layout) Moving(at TopicPartition) *Ongoing {
	if i, ok := slices.BinarySearchFunc(l.Ongoing, at, func(o Ongoing, at TopicPartition) int { return o.Compare(at) }); ok {
		return &l.Ongoing[i]
	}
	return nil
}

// Astray lists the partitions that another replica leads than the first one, although that is in sync.
func (l *Layout) Astray() []TopicPartition {
	var all []TopicPartition
	for _, t := range l.Topics {
		for _, p := range t.Partitions {
			at := TopicPartition{t.Name, p.Number}
			if p.Leader >= 0 && len(p.Replicas) > 0 && p.Leader != p.Replicas[0] && slices.Contains(p.ISR, p.Replicas[0]) && l.Moving(at) == nil {
				all = append(all, at)
			}
		}
	}
	return all
}

// Size is the bytes of a partition: those of its leader, else of its largest replica.
func (l *Layout) Size(at TopicPartition, p Partition) int64 {
	if size, ok := l.Sizes[ReplicaOf{at, p.Leader}]; ok {
		return size
	}
	var size int64
	for _, id := range p.Replicas {
		size = max(size, l.Sizes[ReplicaOf{at, id}])
	}
	return size
}

// Plan begins a plan from how the cluster will be when what is under way has ended.
func (l *Layout) Plan() *balance.Cluster {
	var brokers []balance.Broker
	for _, b := range l.Cluster.Brokers {
		one := balance.Broker{ID: protocol.BrokerID(b.ID), Closed: l.Closed[b.ID]}
		if b.Rack != nil {
			one.Rack = *b.Rack
		}
		brokers = append(brokers, one)
	}
	var partitions []balance.Partition
	for _, t := range l.Topics {
		for _, p := range t.Partitions {
			at := TopicPartition{t.Name, p.Number}
			replicas := p.Replicas
			if o := l.Moving(at); o != nil {
				replicas = o.Target()
			}
			partitions = append(partitions, balance.Partition{
				TopicPartition: protocol.TopicPartition{Topic: t.Name, Partition: p.Number},
				Replicas:       brokerIDs(replicas), InSync: brokerIDs(p.ISR), Bytes: l.Size(at, p),
			})
		}
	}
	return balance.New(brokers, partitions)
}

func brokerIDs(ids []int32) []protocol.BrokerID {
	all := make([]protocol.BrokerID, len(ids))
	for i, id := range ids {
		all[i] = protocol.BrokerID(id)
	}
	return all
}

// BrokerNumbers are broker ids as the requests of this package have them.
func BrokerNumbers(ids []protocol.BrokerID) []int32 {
	all := make([]int32, len(ids))
	for i, id := range ids {
		all[i] = int32(id)
	}
	return all
}
