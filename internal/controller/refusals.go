package controller

import (
	"time"

	"github.com/barnabas-mq/barnabas/internal/peer"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// How long a controller waits before it repeats orders that brokers could not carry out: it doubles from the
// first to the second.
const (
	repeatOrdersMin = time.Second
	repeatOrdersMax = time.Minute
)

// refusals are the orders that brokers could not carry out because of something that may pass: a full disk,
// no descriptors, a store that did not answer. Nobody but the controller knows that they are still to be
// done, so it repeats them until they are, or are void.
type refusals struct {
	// orders holds the partitions by broker; true where the order said that the partition has just been made.
	orders map[P.BrokerID]map[P.TopicPartition]bool
	// repeat is set while there are any; delay is how long it waits next.
	repeat <-chan time.Time
	delay  time.Duration
}

// ordered looks at the answer to a LeaderAndIsr. whole is its error as a whole.
func (t *term) ordered(a answer, response *kmsg.LeaderAndISRResponse, whole P.Code) error {
	request, ok := a.request.(*kmsg.LeaderAndISRRequest)
	if !ok {
		return nil
	}
	codes, ends := t.saidOf(a, response)
	var offline, served []P.TopicPartition
	for _, topic := range request.TopicStates {
		for _, p := range topic.PartitionStates {
			code := whole
			if code == P.None {
				code = codes[answered{topic.TopicID, p.Partition}]
			}
			tp := P.TopicPartition{Topic: topic.Topic, Partition: p.Partition}
			t.judge(a.broker, tp, p.IsNew, code)
			switch code {
			case P.KafkaStorageError:
				offline = append(offline, tp)
			case P.None, P.StaleControllerEpoch: // carried out now, or before
				served = append(served, tp)
			}
		}
	}
	t.armRepeat()
	if b := t.cluster.image.Broker(a.broker); b == nil || b.Epoch != a.epoch {
		return nil // it has begun another life
	}
	err := t.setOffline(a.broker, offline, true)
	if err == nil {
		err = t.setOffline(a.broker, served, false)
	}
	if err == nil {
		err = t.learnEnds(a.broker, ends)
	}
	return t.survive(err)
}

// answered is a partition as LeaderAndIsr names it in its answer.
type answered struct {
	topic     P.TopicID
	partition int32
}

// saidOf takes out of an answer what the broker said of each partition, and what its replicas without a leader
// hold.
func (t *term) saidOf(a answer, response *kmsg.LeaderAndISRResponse) (map[answered]P.Code, map[P.TopicPartition]logEnd) {
	codes, ends := map[answered]P.Code{}, map[P.TopicPartition]logEnd{}
	for _, topic := range response.Topics {
		for _, p := range topic.Partitions {
			codes[answered{topic.TopicID, p.Partition}] = P.Code(p.ErrorCode)
			epoch, end, ok := peer.End(&p.UnknownTags)
			if of := t.cluster.image.TopicByID(topic.TopicID); ok && of != nil {
				ends[P.TopicPartition{Topic: of.Name, Partition: p.Partition}] = logEnd{a.epoch, epoch, end}
			}
		}
	}
	return codes, ends
}

// judge notes what a broker answered for one partition.
func (t *term) judge(id P.BrokerID, tp P.TopicPartition, fresh bool, code P.Code) {
	_, known := t.unmet.orders[id][tp]
	if code != P.None && code != P.StaleControllerEpoch && !known {
		t.controller.options.Logger.Warn("a broker cannot lead or follow a partition", "broker", id, "partition", tp, "error", code)
	}
	if code != P.KafkaStorageError && code != P.UnknownServerError {
		delete(t.unmet.orders[id], tp)
		return
	}
	if t.unmet.orders == nil {
		t.unmet.orders = map[P.BrokerID]map[P.TopicPartition]bool{}
	}
	if t.unmet.orders[id] == nil {
		t.unmet.orders[id] = map[P.TopicPartition]bool{}
	}
	t.unmet.orders[id][tp] = fresh || t.unmet.orders[id][tp] // it has not been made since either
}

// armRepeat sets the timer where there is something to repeat.
func (t *term) armRepeat() {
	for id, orders := range t.unmet.orders {
		if len(orders) == 0 {
			delete(t.unmet.orders, id)
		}
	}
	switch {
	case len(t.unmet.orders) == 0:
		t.unmet = refusals{}
	case t.unmet.repeat == nil:
		t.unmet.delay = min(max(2*t.unmet.delay, repeatOrdersMin), repeatOrdersMax)
		t.unmet.repeat = time.After(t.unmet.delay)
	}
}

// repeatOrders tells brokers again what they could not do, as it is now.
func (t *term) repeatOrders() {
	t.unmet.repeat = nil
	for id, orders := range t.unmet.orders {
		q := t.queues[id]
		if q == nil {
			delete(t.unmet.orders, id) // it will be told everything when it comes back
			continue
		}
		q.add(func(b *backlog) {
			for _, tp := range sorted(orders) {
				topic := t.cluster.image.Topic(tp.Topic)
				if topic == nil || topic.Partition(tp.Partition) == nil || t.untold(tp, topic.Partition(tp.Partition)) {
					delete(orders, tp)
					continue
				}
				t.tell(b, id, tp, told{topicID: topic.ID, state: topic.Partition(tp.Partition), fresh: orders[tp]})
			}
		})
	}
	t.armRepeat()
}
