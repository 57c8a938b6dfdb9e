package controller

import (
	"slices"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// commit puts what has been stored into the image and tells the brokers whom it concerns: of a changed
// partition its replicas first, then everybody.
func (t *term) commit(changes ...metadata.Change) {
	d := t.change(changes...)
	if len(d.Partitions) == 0 && !t.refresh {
		return
	}
	for id, q := range t.queues {
		q.add(func(b *backlog) {
			for _, c := range d.Partitions {
				if t.untold(c.TopicPartition, c.New) {
					continue
				}
				what := told{topicID: c.TopicID, state: c.New, fresh: freshOn(id, c)}
				switch ordered := c.Old == nil || c.Old.Epoch == P.AnyEpoch || c.New.LeaderEpoch != c.Old.LeaderEpoch; {
				case !ordered: // its leader has asked for the change, and its followers need not know
					b.amend(c.TopicPartition, what)
					b.metadata(t.cluster.image, c.TopicPartition, what)
				case t.cluster.stopsFollowing(id, c):
					b.metadata(t.cluster.image, c.TopicPartition, what)
					b.stop(t.cluster.image, c.TopicPartition, c.New.LeaderEpoch, false)
				default:
					t.tell(b, id, c.TopicPartition, what)
				}
			}
			if t.refresh {
				b.refresh(t.cluster.image)
			}
		})
	}
	t.refresh = false
}

// freshOn reports whether broker id gets its replica of a partition only now.
func freshOn(id P.BrokerID, c metadata.PartitionChange) bool {
	if c.Old == nil || c.Old.Epoch == P.AnyEpoch {
		return c.New.LeaderEpoch == 0
	}
	return slices.Contains(c.New.Adding, id) && !slices.Contains(c.Old.Replicas, id)
}

// untold reports whether a state must not be pushed: there is none, it has to be read again first, or the
// topic is on its way out.
func (t *term) untold(tp P.TopicPartition, p *metadata.Partition) bool {
	if t.look.state[tp] {
		t.owed[tp] = true
	}
	return p == nil || p.Epoch == P.AnyEpoch || t.look.state[tp] || t.deletions[tp.Topic] != nil
}

// tellOwed tells everybody about partitions whose states are known again.
func (t *term) tellOwed() {
	owed := t.owed
	if len(owed) == 0 {
		return
	}
	t.owed = map[P.TopicPartition]bool{}
	for id, q := range t.queues {
		q.add(func(b *backlog) {
			for _, tp := range sorted(owed) {
				if topic := t.cluster.image.Topic(tp.Topic); topic != nil {
					if p := topic.Partition(tp.Partition); p != nil && !t.untold(tp, p) {
						t.tell(b, id, tp, told{topicID: topic.ID, state: p})
					}
				}
			}
		})
	}
}

// tell puts one partition's state into the backlog of a broker.
func (t *term) tell(b *backlog, id P.BrokerID, tp P.TopicPartition, what told) {
	if slices.Contains(what.state.Replicas, id) {
		b.replica(t.cluster.image, tp, what)
	}
	b.metadata(t.cluster.image, tp, told{topicID: what.topicID, state: what.state})
}

// tellAll puts everything into the backlog of a broker that knows nothing yet.
func (t *term) tellAll(q *queue) {
	image := t.cluster.image
	q.add(func(b *backlog) {
		b.last(image, false).full = true
		for _, name := range image.Topics() {
			topic := image.Topic(name)
			for i, p := range topic.Partitions {
				tp := P.TopicPartition{Topic: name, Partition: int32(i)}
				if p.Known() && !t.untold(tp, p) {
					t.tell(b, q.broker, tp, told{topicID: topic.ID, state: p})
				}
			}
		}
		for _, d := range t.deletions {
			t.tellStop(b, q.broker, d)
		}
		for _, tp := range sorted(t.ending) {
			if p := image.Partition(tp); p != nil && slices.Contains(t.ending[tp].left, q.broker) {
				b.stop(image, tp, p.LeaderEpoch, true)
			}
		}
	})
}

// tellStop puts into the backlog of a broker the replicas that a deletion still waits for.
func (t *term) tellStop(b *backlog, id P.BrokerID, d *deletion) {
	for _, tp := range d.on(id) {
		b.stop(t.cluster.image, tp, epochDuringDelete, true)
	}
}

// answered looks at what a broker said.
func (t *term) answered(a answer) error {
	logger := t.controller.options.Logger
	switch code := errorOf(a.response); code {
	case P.None:
	case P.StaleControllerEpoch:
		logger.Warn("a broker knows a newer controller", "broker", a.broker, "controller-epoch", t.cluster.epoch)
		return t.stillLeading()
	default:
		logger.Warn("a broker refuses a request of the controller",
			"broker", a.broker, "request", kmsg.NameForKey(a.request.Key()), "error", code)
		if response, ok := a.response.(*kmsg.LeaderAndISRResponse); ok {
			return t.ordered(a, response, code)
		}
		return nil
	}
	switch response := a.response.(type) {
	case *kmsg.LeaderAndISRResponse:
		return t.ordered(a, response, P.None)
	case *kmsg.StopReplicaResponse:
		return t.stopped(a, response)
	}
	return nil
}
