package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/peer"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

// relay stands between the brokers, which have a listener of their own for each other and advertise the relay in its
// place:
//
//	broker 0 ──▶ relay, port 9101 ──▶ broker 1, listener BETWEEN on port 9093
//	             relay, port 9102 ──▶ broker 2
//	clients ───────────────────────▶ listener PLAINTEXT on port 9092
//
// It passes frames on as they are, and can keep one kind of them back: so a broker is killed between two of its
// requests for certain, and not perhaps. What brokers say to themselves does not pass here.
type relay struct {
	listeners []net.Listener
	running   sync.WaitGroup

	mu   sync.Mutex
	kept *keeping
}

// keeping is what the relay keeps back.
type keeping struct {
	what order
	// from are the brokers that such requests are kept from.
	from []int
	// caught are those that have come so far, by broker the controller that sent it.
	caught map[int]int
	// over is closed when nothing is kept back any more. What was kept does not arrive then, either.
	over chan struct{}
}

// order tells a kind of requests of controllers, and which controller one is from.
type order func(wire.RequestHeader, []byte) (controller int, is bool)

// Ports of relays and of listeners for brokers.
const (
	betweenPort = 9093
	relayPort   = 9100
)

// maxFrame bounds one request between brokers, in bytes.
const maxFrame = 100 << 20

// relayed are the properties of a broker that others reach by the relay.
func (n *network) relayed(id int) []string {
	own := n.brokers[id].ip
	return []string{
		fmt.Sprintf("listeners=PLAINTEXT://%s:9092,BETWEEN://%s:%d", own, own, betweenPort),
		fmt.Sprintf("advertised.listeners=PLAINTEXT://%s:9092,BETWEEN://%s:%d", own, n.clients.ip, relayPort+id),
		"listener.security.protocol.map=PLAINTEXT:PLAINTEXT,BETWEEN:PLAINTEXT", "inter.broker.listener.name=BETWEEN",
	}
}

// newRelay listens for all brokers.
func newRelay(n *network) (*relay, error) {
	r := &relay{}
	for id, broker := range n.brokers {
		listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", n.clients.ip, relayPort+id))
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.listeners = append(r.listeners, listener)
		r.running.Go(func() { r.accept(listener, id, fmt.Sprintf("%s:%d", broker.ip, betweenPort)) })
	}
	return r, nil
}

// close takes no more connections; those that there are end with the brokers.
func (r *relay) close() error {
	var errs []error
	for _, l := range r.listeners {
		errs = append(errs, l.Close())
	}
	r.running.Wait()
	return errors.Join(errs...)
}

// accept takes connections to one broker.
func (r *relay) accept(listener net.Listener, id int, address string) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		r.running.Go(func() { r.connect(from, id, address) })
	}
}

// connect serves one connection until either side ends it.
func (r *relay) connect(from net.Conn, id int, address string) {
	defer from.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return // the broker is down, and who asked sees its connection end
	}
	defer to.Close()
	r.running.Go(func() {
		_, _ = io.Copy(from, to)
		_ = from.Close()
	})
	r.pass(from, to, id)
}

// pass hands requests on, one after the other.
func (r *relay) pass(from, to net.Conn, id int) {
	var frame []byte
	for {
		frame = slices.Grow(frame[:0], wire.LengthSize)[:wire.LengthSize]
		if _, err := io.ReadFull(from, frame); err != nil {
			return
		}
		length, err := wire.FrameLength(frame, maxFrame)
		if err != nil {
			return
		}
		frame = slices.Grow(frame, length)[:wire.LengthSize+length]
		if _, err := io.ReadFull(from, frame[wire.LengthSize:]); err != nil {
			return
		}
		if over := r.keep(frame[wire.LengthSize:], id); over != nil {
			<-over
			return
		}
		if _, err := to.Write(frame); err != nil {
			return
		}
	}
}

// keep reports whether a request to a broker is kept back: it returns what ends that.
func (r *relay) keep(frame []byte, id int) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil || !slices.Contains(r.kept.from, id) {
		return nil
	}
	header, body, err := wire.ParseRequestHeader(frame)
	if err != nil {
		return nil
	}
	controller, is := r.kept.what(header, body)
	if !is {
		return nil
	}
	r.kept.caught[id] = controller
	return r.kept.over
}

// erasing is StopReplica that has replicas of a topic deleted. A controller sends it when the broker has answered the
// one that stops them.
func erasing(topic string) order {
	return func(header wire.RequestHeader, body []byte) (int, bool) {
		request := peer.NewStopReplica(header.Version)
		if header.Key != request.Key() || request.ReadFrom(body) != nil {
			return 0, false
		}
		return int(request.ControllerID), slices.ContainsFunc(request.Topics, func(t kmsg.StopReplicaRequestTopic) bool {
			return t.Topic == topic && slices.ContainsFunc(t.PartitionStates, func(p kmsg.StopReplicaRequestTopicPartitionState) bool { return p.Delete })
		})
	}
}

// leading is LeaderAndIsr about partitions of a topic whose in-sync sets do not hold a broker.
func leading(topic string, without int) order {
	return func(header wire.RequestHeader, body []byte) (int, bool) {
		request := kmsg.NewPtrLeaderAndISRRequest()
		request.Version = header.Version
		if header.Key != request.Key() || request.ReadFrom(body) != nil {
			return 0, false
		}
		return int(request.ControllerID), slices.ContainsFunc(request.TopicStates, func(t kmsg.LeaderAndISRRequestTopicState) bool {
			return t.Topic == topic && slices.ContainsFunc(t.PartitionStates, func(p kmsg.LeaderAndISRRequestTopicPartition) bool {
				return !slices.Contains(p.ISR, int32(without))
			})
		})
	}
}

// keepBack begins to keep requests from brokers.
func (r *relay) keepBack(what order, from ...*broker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = &keeping{what: what, caught: map[int]int{}, over: make(chan struct{})}
	for _, b := range from {
		r.kept.from = append(r.kept.from, b.id)
	}
}

// lose drops what was kept back, with its connections, and keeps nothing any more.
func (r *relay) lose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept != nil {
		close(r.kept.over)
		r.kept = nil
	}
}

// caught waits until something was kept back from every broker from which something is to be, and returns the
// controller that had sent it.
func (t *trial) caught(ctx context.Context) (head *broker, err error) {
	err = t.load.until(ctx, "a request to be kept back", func(context.Context) error {
		head = nil
		t.relay.mu.Lock()
		defer t.relay.mu.Unlock()
		kept := t.relay.kept
		for _, id := range kept.from {
			controller, caught := kept.caught[id]
			if !caught {
				return fmt.Errorf("broker %d has not been sent one", id)
			}
			if head != nil && head.id != controller {
				return fmt.Errorf("brokers %d and %d have both sent some", head.id, controller)
			}
			head = t.brokers[controller]
		}
		return nil
	})
	return head, err
}
