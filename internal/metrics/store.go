package metrics

import "time"

// Store is how this broker stands with the store of the cluster's metadata, such as ZooKeeper.
type Store struct {
	// Connected says that its session has a connection.
	Connected bool
	// Remaining is for how long the session lives for certain; below zero it may have expired.
	Remaining time.Duration
	// Disconnects and Expirations count cuts and lost sessions since the start.
	Disconnects, Expirations int64
	// Requests is how many were answered, Latency how long that took in sum; both 0 for a store in the process.
	Requests int64
	Latency  time.Duration
}

// collectStore shows the session with the store, in our names and in those of Kafka's exporters.
//
//	barnabas_store_connected                                     0 for longer than the session: the broker is out
//	barnabas_store_session_remaining_seconds                     falls while disconnected; below zero it may be over
//	barnabas_store_requests_total, _request_seconds_total        their quotient is the mean latency
//	kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms_{count,mean}
//	kafka_server_sessionexpirelistener_zookeeper{disconnects,expires}_total
func (r *Registry) collectStore(to sink) {
	if r.options.Store == nil {
		return
	}
	s := r.options.Store()
	to.put(gauge("barnabas_store_connected", "1 where the session with the metadata store has a connection."), truth(s.Connected))
	to.put(gauge("barnabas_store_session_remaining_seconds", "Seconds for which the session lives for certain; below zero it may have expired."),
		s.Remaining.Seconds())
	to.put(counter("barnabas_store_requests_total", "Answered requests to the metadata store."), float64(s.Requests))
	to.put(counter("barnabas_store_request_seconds_total", "Seconds from sending requests to the metadata store to their answers, in sum."),
		s.Latency.Seconds())
	to.put(counter("kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms_count", "Answered requests to the metadata store."), float64(s.Requests))
	if s.Requests > 0 {
		to.put(gauge("kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms_mean", "Mean milliseconds of a request to the metadata store."),
			float64(s.Latency)/float64(s.Requests)/float64(time.Millisecond))
	}
	to.put(counter("kafka_server_sessionexpirelistener_zookeeperdisconnects_total", "Connections to the metadata store that were lost."),
		float64(s.Disconnects))
	to.put(counter("kafka_server_sessionexpirelistener_zookeeperexpires_total", "Sessions with the metadata store that were lost."),
		float64(s.Expirations))
}
