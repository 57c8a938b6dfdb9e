package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kmsg"
)

//	barnabas_request_duration_seconds{api,phase}     a histogram, from the last byte received
//	    total      to the finished answer; not to its last byte sent
//	    local      the part in the connection's reader, behind which the connection's other requests stand
//	    wait       the rest, of requests that waited: long polls, acks=all, rebalances
//	barnabas_requests_total{api,version}             also kafka_network_requestmetrics_requests_total{request,version}
//
// A total far above the local time is no trouble by itself: a Fetch waits for as long as the client wants.

// maxVersion is the highest version of any API that is counted by itself; none comes near.
const maxVersion = 31

// requests are the times and counts of answered requests, by API.
type requests struct {
	durations *prometheus.HistogramVec
	keys      [kmsg.MaxKey + 2]atomic.Pointer[apiRequests] // the last one for keys without a name
}

// apiRequests are those of one API, found without looking up labels.
type apiRequests struct {
	local, total prometheus.Observer
	wait         func() prometheus.Observer // made when something waits: most APIs never do
	versions     [maxVersion + 1]atomic.Int64
}

// newRequests starts with none.
func newRequests() *requests {
	return &requests{durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "barnabas_request_duration_seconds",
		Help: "Time from the last byte of a request to its finished answer: all of it (total), the part in which" +
			" the connection's later requests had to stand behind (local), and the rest of those that waited (wait).",
		Buckets: []float64{
			.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30,
		},
	}, []string{"api", "phase"})}
}

// Observe counts one answered request: total is the whole time, local the part in the connection's reader.
// It allocates nothing once an API has been seen.
func (r *Registry) Observe(key, version int16, local, total time.Duration) {
	a := r.requests.of(key)
	a.versions[max(0, min(version, maxVersion))].Add(1)
	a.local.Observe(local.Seconds())
	a.total.Observe(total.Seconds())
	if total > local {
		a.wait().Observe((total - local).Seconds())
	}
}

// of finds the counters of an API.
//
// Two that come at once both make counters, and one of them wins: those of the loser are the same series.
func (q *requests) of(key int16) *apiRequests {
	slot := &q.keys[slotOf(key)]
	if a := slot.Load(); a != nil {
		return a
	}
	name := nameOf(slotOf(key))
	slot.CompareAndSwap(nil, &apiRequests{
		local: q.durations.WithLabelValues(name, "local"),
		total: q.durations.WithLabelValues(name, "total"),
		wait:  sync.OnceValue(func() prometheus.Observer { return q.durations.WithLabelValues(name, "wait") }),
	})
	return slot.Load()
}

// slotOf is the index of a key in requests.keys.
func slotOf(key int16) int {
	if key < 0 || key > kmsg.MaxKey {
		return kmsg.MaxKey + 1
	}
	return int(key)
}

// nameOf is Kafka's name of the API in a slot.
func nameOf(slot int) string {
	if slot > kmsg.MaxKey {
		return "Unknown"
	}
	return kmsg.NameForKey(int16(slot))
}

// count is how many requests of one API there were, in all versions.
func (q *requests) count(key kmsg.Key) (all int64) {
	if a := q.keys[slotOf(int16(key))].Load(); a != nil {
		for i := range a.versions {
			all += a.versions[i].Load()
		}
	}
	return all
}

// collectRequests shows the counts by version.
func (r *Registry) collectRequests(to sink) {
	native := counter("barnabas_requests_total", "Answered requests.", "api", "version")
	kafka := counter("kafka_network_requestmetrics_requests_total", "Answered requests.", "request", "version")
	for slot := range r.requests.keys {
		a := r.requests.keys[slot].Load()
		if a == nil {
			continue
		}
		for version := range a.versions {
			if n := a.versions[version].Load(); n > 0 {
				to.put(native, float64(n), nameOf(slot), number(int32(version)))
				to.put(kafka, float64(n), nameOf(slot), number(int32(version)))
			}
		}
	}
}
