package metrics

import (
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/server"
)

// collectNetwork shows the server's counters.
func (r *Registry) collectNetwork(to sink) {
	if r.options.Server == nil {
		return
	}
	stats := r.options.Server()
	to.put(gauge("barnabas_network_frames_bytes", "Bytes of large requests that are being read or handled."),
		float64(stats.InFlightBytes))
	to.put(gauge("barnabas_network_free_buffers_bytes", "Bytes of buffers kept for reuse."), float64(stats.FreeBufferBytes))
	for i := range stats.Listeners {
		collectListener(to, &stats.Listeners[i])
	}
}

// collectListener shows one listener.
//
// The processor label of Kafka's connection count is always 0: there are no processors here, and boards sum
// over it.
func collectListener(to sink, l *server.ListenerStats) {
	for _, f := range []struct {
		family
		value float64
	}{
		{gauge("barnabas_connections", "Open connections.", "listener"), float64(l.Connections)},
		{counter("barnabas_connections_accepted_total", "Connections ever taken.", "listener"), float64(l.Accepted)},
		{counter("barnabas_network_requests_total", "Requests that came in whole.", "listener"), float64(l.Requests)},
		{gauge("barnabas_network_requests_in_flight", "Requests without an answer yet.", "listener"), float64(l.InFlight)},
		{counter("barnabas_network_in_bytes_total", "Bytes received.", "listener"), float64(l.BytesIn)},
		{counter("barnabas_network_out_bytes_total", "Bytes sent.", "listener"), float64(l.BytesOut)},
		{counter("barnabas_network_sendfile_bytes_total", "Bytes sent from files without a copy.", "listener"),
			float64(l.SendfileBytes)},
		{counter("barnabas_network_throttled_seconds_total", "Time for which connections were muted.", "listener"),
			l.Throttled.Seconds()},
	} {
		to.put(f.family, f.value, l.Listener)
	}
	to.put(gauge("kafka_server_socket_server_metrics_connection_count", "Open connections.", "listener", "networkProcessor"),
		float64(l.Connections), l.Listener, "0")
	refused := counter("barnabas_connections_refused_total", "Connections not taken.", "listener", "reason")
	for _, reason := range slices.Sorted(maps.Keys(l.Refused)) {
		to.put(refused, float64(l.Refused[reason]), l.Listener, reason)
	}
	closed := counter("barnabas_connections_closed_total", "Connections that have ended.", "listener", "reason")
	for _, reason := range slices.Sorted(maps.Keys(l.Closed)) {
		to.put(closed, float64(l.Closed[reason]), l.Listener, reason)
	}
}
