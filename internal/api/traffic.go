package api

import (
	"sync"
	"sync/atomic"
)

// Traffic counts what was produced and fetched, by topic. Its methods may be called concurrently.
//
// mu is held for a look into the map; counting itself is without a lock. Whoever counts often keeps the
// TopicTraffic.
type Traffic struct {
	mu struct {
		sync.RWMutex
		topics map[string]*TopicTraffic
	}
}

// TopicTraffic are the counters of one topic since the broker's start; they only rise.
type TopicTraffic struct {
	// BytesIn and RecordsIn are what producers appended, BytesOut what consumers were sent.
	BytesIn, RecordsIn, BytesOut atomic.Int64
	// FailedProduces and FailedFetches count refused partitions of requests.
	FailedProduces, FailedFetches atomic.Int64
}

func newTraffic() *Traffic {
	t := new(Traffic)
	t.mu.topics = map[string]*TopicTraffic{}
	return t
}

// Topic is the counters of a topic; they come into being here. Only for topics that exist: a name that a
// client made up would be counted for ever.
func (t *Traffic) Topic(name string) *TopicTraffic {
	t.mu.RLock()
	counters := t.mu.topics[name]
	t.mu.RUnlock()
	if counters != nil {
		return counters
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if counters = t.mu.topics[name]; counters == nil {
		counters = new(TopicTraffic)
		t.mu.topics[name] = counters
	}
	return counters
}

// All calls f for every topic that had traffic, in no order.
func (t *Traffic) All(f func(topic string, counters *TopicTraffic)) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for name, counters := range t.mu.topics {
		f(name, counters)
	}
}

// Forget drops the counters of a deleted topic.
func (t *Traffic) Forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.mu.topics, name)
}
