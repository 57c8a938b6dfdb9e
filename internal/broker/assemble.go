package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/api"
	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/controller"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/group"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/replica"
	"github.com/barnabas-mq/barnabas/internal/server"
	"github.com/barnabas-mq/barnabas/internal/view"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// assemble makes the parts that answer requests. None of them runs yet; they reach each other through the
// broker, as some are made before what they use:
//
//	server ─▶ api ─▶ replicas, groups, controller, view
//	controller ─▶ server.Pipe ─▶ api ─▶ view ─▶ apply ─▶ replicas, groups
func (b *Broker) assemble(ctx, _ context.Context) error {
	b.toController, b.forwarding = &controllerChannel{broker: b}, &controllerChannel{broker: b}
	b.replicas = replica.New(replica.Options{
		Self: b.id, Dirs: b.dirs, Config: b.Config, Logger: b.logger,
		Dial: b.dialLeader, Controller: b.toController.do, BrokerEpoch: func() protocol.BrokerEpoch { return b.view.BrokerEpoch() },
		Draining: func() <-chan struct{} { return b.server.Draining() },
		Topic:    func(overrides map[string]string) (config.Topic, error) { return b.Config().Topic(overrides) },
	})
	partitions, err := b.groupPartitions(ctx)
	if err != nil {
		return err
	}
	b.groups = group.NewCoordinator(group.Options{
		Partitions: partitions, Config: b.groupConfig, Log: b.groupLog, Now: b.options.Now, Logger: b.logger,
	})
	b.controller = controller.New(controller.Options{
		BrokerID: b.id, Config: b.Config, Now: b.options.Now, Logger: b.logger, Seed: uint64(b.options.Now().UnixNano()),
		Dial: b.dial, MinInSync: b.minInSync, Closed: b.closed,
	})
	b.view = view.New(view.Options{Self: b.id, ClusterID: b.dirs.ClusterID(), Apply: b.apply, Logger: b.logger,
		End: b.logEnd, Offline: func(tp protocol.TopicPartition) bool { return b.dirs.Err(tp) != nil }})
	b.api = api.New(api.Options{
		Self: b.id, ClusterID: b.dirs.ClusterID(), Config: b.Config, Replicas: b.replicas, Dirs: b.dirs, View: b.view,
		Controller: b.controller, Groups: b.groups, GroupPartitions: partitions, Now: b.options.Now, Observe: b.observe, Logger: b.logger,
		Draining:  func() <-chan struct{} { return b.server.Draining() },
		Clustered: b.shared(), Forward: b.forwarding.do, ForeignController: b.foreignController,
	})
	return nil
}

// logEnd says what this broker has of a partition. Where it cannot know, as the log may be in a directory that does not
// work, it says nothing. That it has none, as of a partition of an internal topic that was never used, is an answer, too.
func (b *Broker) logEnd(tp protocol.TopicPartition) (protocol.LeaderEpoch, protocol.Offset, bool) {
	if l := b.dirs.Get(tp); l != nil {
		return l.LatestEpoch(), l.EndOffset(), true
	}
	return protocol.NoLeaderEpoch, 0, b.dirs.Absent(tp)
}

// minInSync is min.insync.replicas of a topic.
func (b *Broker) minInSync(topic string) int {
	if n, err := strconv.Atoi(b.view.Image().TopicConfig(topic)["min.insync.replicas"]); err == nil {
		return n
	}
	return int(b.Config().Int("min.insync.replicas"))
}

// closed reports whether a broker is to get no new replicas: all its log directories are cordoned (KIP-1066), as far as
// that was set dynamically.
func (b *Broker) closed(id protocol.BrokerID) bool {
	if id == b.id {
		return slices.Contains(b.Config().List("cordoned.log.dirs"), "*")
	}
	dirs := strings.Split(b.view.Image().BrokerConfig(id)["cordoned.log.dirs"], ",")
	return slices.ContainsFunc(dirs, func(dir string) bool { return strings.TrimSpace(dir) == "*" })
}

// groupPartitions is how many partitions __consumer_offsets has: what an existing one has, otherwise what is
// configured. It never changes afterwards, since a group's partition follows from it.
func (b *Broker) groupPartitions(ctx context.Context) (int, error) {
	data, _, err := b.session().Get(ctx, znode.TopicPath(protocol.GroupMetadataTopic))
	switch {
	case errors.Is(err, coordination.ErrNoNode):
		return int(b.Config().Int("offsets.topic.num.partitions")), nil
	case err != nil: // a guess would send groups to partitions where their offsets are not
		return 0, err
	}
	topic, err := znode.DecodeTopic(protocol.GroupMetadataTopic, data)
	if err != nil {
		return 0, err
	}
	return len(topic.Replicas), nil
}

// listen binds the listeners; clients wait in the backlog until the broker has joined.
func (b *Broker) listen(context.Context, context.Context) error {
	c := b.Config()
	var listeners []server.Listener
	for _, l := range c.Listeners() {
		if l.Protocol != config.Plaintext {
			return fmt.Errorf("listener %s uses %s, which is not supported yet: only PLAINTEXT is", l.Name, l.Protocol)
		}
		listeners = append(listeners, server.Listener{
			Name: l.Name, Address: l.Address(), Protocol: l.Protocol.String(),
			InterBroker: l.Name == c.InterBrokerListener() && len(c.Listeners()) > 1,
		})
	}
	limits, err := connectionLimits(c)
	if err != nil {
		return err
	}
	b.server, err = server.New(server.Options{
		Listeners: listeners, Listen: b.options.Listen, Handler: b.api.Handle, Limits: limits, Logger: b.logger,
		IdleTimeout: c.Duration("connections.max.idle.ms"),
		SendBuffer:  socketBuffer(c, "socket.send.buffer.bytes"), ReceiveBuffer: socketBuffer(c, "socket.receive.buffer.bytes"),
	})
	if err != nil {
		return err
	}
	return b.measure()
}

// socketBuffer is the size of a socket's buffer: what was asked for, otherwise 0, which leaves it to the
// system. Kafka's default of 100 KiB would switch off that the system sizes buffers by the traffic.
func socketBuffer(c *config.Broker, name string) int {
	if !c.IsSet(name) {
		return 0
	}
	return max(int(c.Int(name)), 0)
}

// max.connections, max.connections.per.ip    2147483647 is none, which is 0 here
// queued.max.request.bytes                   bytes of requests in flight; -1 is the server's own bound
// descriptors                                of the process, less segments and others: connections take the rest
func connectionLimits(c *config.Broker) (server.Limits, error) {
	limits := server.Limits{
		MaxFrame: int(c.Int("socket.request.max.bytes")), MaxConnections: bounded(c.Int("max.connections")),
		PerIP: bounded(c.Int("max.connections.per.ip")), PerIPOverrides: map[string]int{},
	}
	// Segments are opened as they are read, and connections come from outside: of the two the connections are
	// what can be refused.
	if files := descriptorLimit(); files > 0 {
		limits.Descriptors = max(files-segmentFiles(files)-otherFiles, otherFiles)
	}
	if budget := c.Long("queued.max.request.bytes"); budget > 0 {
		limits.InFlightBytes = budget
	}
	overrides, err := c.ConnectionsPerIP()
	for address, n := range overrides {
		limits.PerIPOverrides[address] = int(n)
	}
	return limits, err
}

// bounded turns Kafka's "no limit" into ours.
func bounded(n int32) int {
	if n == 1<<31-1 {
		return 0
	}
	return int(n)
}

// endpoints are the advertised addresses; where a port was left to the system, the one that it gave.
func (b *Broker) endpoints() []metadata.Endpoint {
	c := b.Config()
	hostname, err := os.Hostname()
	if err != nil {
		hostname = "localhost"
	}
	var endpoints []metadata.Endpoint
	for _, l := range c.Advertised(hostname) {
		e := metadata.Endpoint{Listener: l.Name, Host: l.Host, Port: l.Port, Protocol: metadata.SecurityProtocol(l.Protocol)}
		if address, ok := b.server.Addr(l.Name).(*net.TCPAddr); ok && e.Port == 0 {
			e.Port = int32(address.Port)
		}
		endpoints = append(endpoints, e)
	}
	return endpoints
}
