package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// family is one metric name with its labels. It stands in the code where its series are made.
type family struct {
	name, help string
	labels     []string
	kind       prometheus.ValueType
}

// gauge is a value that goes up and down.
func gauge(name, help string, labels ...string) family {
	return family{name, help, labels, prometheus.GaugeValue}
}

// counter is a value that only rises.
func counter(name, help string, labels ...string) family {
	return family{name, help, labels, prometheus.CounterValue}
}

// descriptions keeps what the library makes of families, since it costs more than a series.
type descriptions struct {
	mu    sync.RWMutex
	known map[described]*prometheus.Desc
}

// described tells families apart: Kafka has some with and without labels.
type described struct {
	name   string
	labels int
}

// of finds or makes the description of a family.
func (d *descriptions) of(f *family) *prometheus.Desc {
	key := described{f.name, len(f.labels)}
	d.mu.RLock()
	desc := d.known[key]
	d.mu.RUnlock()
	if desc == nil {
		desc = prometheus.NewDesc(f.name, f.help, f.labels, nil)
		d.mu.Lock()
		d.known[key] = desc
		d.mu.Unlock()
	}
	return desc
}

// sink takes the series of one source in one scrape.
//
// It is used by one goroutine. A label too many or too few is a bug of ours, and panics; the collector catches
// that.
type sink struct {
	descriptions *descriptions
	ch           chan<- prometheus.Metric
}

// put adds one series.
func (s sink) put(f family, value float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(s.descriptions.of(&f), f.kind, value, labels...)
}
