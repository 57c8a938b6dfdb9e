// Package metrics is what is measured, as Prometheus metrics. A [Registry] belongs to one broker; there is
// no global one.
//
// What happens often is counted where it happens ([Registry.Observe], the counters of the server and of
// the topics); everything else is read from its source when somebody scrapes, so that an unwatched broker
// does nothing for it.
//
// Three families of names stand side by side:
//
//	barnabas_*                 native: base units, real histograms
//	kafka_server_*, …          what the Prometheus JMX exporter makes of Kafka's MBeans, cluster and
//	                           topic level, for existing boards and alerts
//	kafka_topic_*,             what kafka_exporter publishes: lag boards
//	kafka_consumergroup_*
//
// The compatible names of single partitions are left out unless [Options.PartitionNames] asks for them.
//
// Names that come from outside (topics, groups) make series without bound. Each kind of them is admitted up
// to [Options.SeriesLimit]; what is beyond is left out, the same ones at every scrape, and counted in
// barnabas_metrics_dropped_series_total.
package metrics
