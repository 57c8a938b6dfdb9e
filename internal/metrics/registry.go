package metrics

import (
	"context"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// scrapesAtOnce is how many scrapes may run; more are refused, so that a stuck disk does not pile them up.
	scrapesAtOnce = 2
	// scrapeTimeout bounds a scrape.
	scrapeTimeout = 10 * time.Second
)

// Registry holds one broker's metrics. Its methods may be called concurrently.
//
// A scrape, which two may do at a time:
//
//	promhttp → registry.Gather → each source's Collect on a goroutine of its own → sink → text
//
// Nothing is cached between scrapes but descriptions and who was admitted, so that a number is as old as its
// scrape. A source that panics or is slow costs its own series: the others are shown.
type Registry struct {
	options  Options
	registry *prometheus.Registry
	requests *requests
	dropped  *prometheus.CounterVec
	descriptions
	// One bound for each kind of things with a name from outside.
	topics, sizes, partitions, groups, offsets *series
}

// New makes the registry of one broker. Its error is a bug in the names.
func New(options Options) (*Registry, error) {
	if options.SeriesLimit == 0 {
		options.SeriesLimit = DefaultSeriesLimit
	}
	r := &Registry{
		options:  options,
		registry: prometheus.NewRegistry(),
		requests: newRequests(),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "barnabas_metrics_dropped_series_total",
			Help: "Things left out of a scrape because there are more of their kind than the limit.",
		}, []string{"kind"}),
	}
	r.descriptions.known = make(map[described]*prometheus.Desc)
	r.topics, r.sizes, r.partitions = r.newSeries("topic"), r.newSeries("topic-size"), r.newSeries("partition")
	r.groups, r.offsets = r.newSeries("group"), r.newSeries("group-offset")
	all := []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		r.dropped, r.requests.durations,
	}
	for _, c := range []source{
		{"identity", r.collectIdentity}, {"requests", r.collectRequests}, {"network", r.collectNetwork},
		{"topics", r.collectTopics}, {"partitions", r.collectPartitions}, {"directories", r.collectDirectories},
		{"groups", r.collectGroups}, {"cluster", r.collectCluster},
		{"store", r.collectStore}, {"replication", r.collectReplication},
	} {
		all = append(all, collector{registry: r, source: c})
	}
	for _, c := range all {
		if err := r.registry.Register(c); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Gatherer is the registry for whoever reads it in the process.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.registry }

// Handler answers scrapes.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: scrapesAtOnce,
		Timeout:             scrapeTimeout,
		ErrorHandling:       promhttp.ContinueOnError, // what can be read is worth more than nothing
	})
}

// source is one group of metrics that are read at a scrape.
type source struct {
	name    string
	collect func(sink)
}

// collector fits a source to the library. It describes nothing, which tells the library not to expect
// the same labels in all series of a name: Kafka's topic metrics come with and without the topic.
type collector struct {
	registry *Registry
	source   source
}

// Describe is part of prometheus.Collector.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect is part of prometheus.Collector. The library calls it in a goroutine of its own, where a panic
// would end the process.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	defer func() {
		if cause := recover(); cause != nil && c.registry.options.Panicked != nil {
			c.registry.options.Panicked(c.source.name, cause, debug.Stack())
		}
	}()
	c.source.collect(sink{&c.registry.descriptions, ch})
}

// truth is a value for a yes or no.
func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// number is a partition or broker id as a label.
func number(n int32) string { return strconv.Itoa(int(n)) }

// collectIdentity says who this is.
func (r *Registry) collectIdentity(to sink) {
	to.put(gauge("barnabas_build_info", "1; what runs.", "version", "go"), 1, r.options.Version, runtime.Version())
	to.put(gauge("barnabas_broker_info", "1; who this is.", "broker", "cluster"), 1, number(r.options.BrokerID), r.options.ClusterID)
}

// scrape is the context of one scrape.
func scrape() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), scrapeTimeout)
}
