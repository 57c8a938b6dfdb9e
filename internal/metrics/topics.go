package metrics

import "github.com/twmb/franz-go/pkg/kmsg"

// brokerTopicMetrics is Kafka's prefix for traffic, as the JMX exporter writes it.
const brokerTopicMetrics = "kafka_server_brokertopicmetrics_"

// collectTopics shows the traffic by topic, and, as Kafka does, summed up under the same names without the
// label.
//
// The sum counts all topics, those beyond the limit of series too. Topics that are deleted take their part of
// the sum with them, which a rate takes for a restart.
func (r *Registry) collectTopics(to sink) {
	if r.options.Topics == nil {
		return
	}
	var sum Topic
	scrape := r.topics.begin()
	for t := range r.options.Topics() {
		sum.BytesIn += t.BytesIn
		sum.BytesOut += t.BytesOut
		sum.RecordsIn += t.RecordsIn
		sum.FailedProduces += t.FailedProduces
		sum.FailedFetches += t.FailedFetches
		if r.topics.admit(scrape, t.Name) {
			collectTopic(to, &t)
			collectKafkaTopic(to, &t, []string{"topic"}, []string{t.Name})
		}
	}
	collectKafkaTopic(to, &sum, nil, nil)
	for name, key := range map[string]kmsg.Key{"totalproducerequests_total": kmsg.Produce, "totalfetchrequests_total": kmsg.Fetch} {
		to.put(counter(brokerTopicMetrics+name, "Requests of all topics."), float64(r.requests.count(key)))
	}
}

// collectTopic shows one topic under native names.
func collectTopic(to sink, t *Topic) {
	for _, f := range []struct {
		family
		value int64
	}{
		{counter("barnabas_topic_in_bytes_total", "Bytes of batches appended.", "topic"), t.BytesIn},
		{counter("barnabas_topic_in_records_total", "Records appended.", "topic"), t.RecordsIn},
		{counter("barnabas_topic_out_bytes_total", "Bytes of batches sent to consumers.", "topic"), t.BytesOut},
		{counter("barnabas_topic_out_records_total", "Records sent to consumers.", "topic"), t.RecordsOut},
		{counter("barnabas_topic_produce_errors_total", "Refused partitions of produce requests.", "topic"), t.FailedProduces},
		{counter("barnabas_topic_fetch_errors_total", "Refused partitions of fetch requests.", "topic"), t.FailedFetches},
	} {
		if f.value >= 0 {
			to.put(f.family, float64(f.value), t.Name)
		}
	}
}

// collectKafkaTopic shows one topic, or all, under Kafka's names.
func collectKafkaTopic(to sink, t *Topic, labels, values []string) {
	for _, f := range []struct {
		name, help string
		value      int64
	}{
		{"messagesin_total", "Records appended.", t.RecordsIn},
		{"bytesin_total", "Bytes of batches appended.", t.BytesIn},
		{"bytesout_total", "Bytes of batches sent to consumers.", t.BytesOut},
		{"failedproducerequests_total", "Refused partitions of produce requests.", t.FailedProduces},
		{"failedfetchrequests_total", "Refused partitions of fetch requests.", t.FailedFetches},
	} {
		to.put(counter(brokerTopicMetrics+f.name, f.help, labels...), float64(f.value), values...)
	}
}
