package api

import (
	"sync"
	"sync/atomic"
)

// Traffic counts what was produced and fetched, by topic. Its methods may be called concurrently.
type Traffic struct{ topics sync.Map }

// TopicTraffic are the counters of one topic since the broker's start; they only rise.
type TopicTraffic struct {
	// BytesIn and RecordsIn are what producers appended, BytesOut what consumers were sent.
	BytesIn, RecordsIn, BytesOut atomic.Int64
	// FailedProduces and FailedFetches count refused partitions of requests.
	FailedProduces, FailedFetches atomic.Int64
}

func newTraffic() *Traffic { return new(Traffic) }

// Topic is the counters of a topic; they come into being here.
func (t *Traffic) Topic(name string) *TopicTraffic {
	if counters, ok := t.topics.Load(name); ok {
		return counters.(*TopicTraffic)
	}
	counters, _ := t.topics.LoadOrStore(name, new(TopicTraffic))
	return counters.(*TopicTraffic)
}

// All calls f for every topic that had traffic, in no order.
func (t *Traffic) All(f func(topic string, counters *TopicTraffic)) {
	t.topics.Range(func(name, counters any) bool {
		f(name.(string), counters.(*TopicTraffic))
		return true
	})
}

// Forget drops the counters of a deleted topic.
func (t *Traffic) Forget(name string) { t.topics.Delete(name) }
