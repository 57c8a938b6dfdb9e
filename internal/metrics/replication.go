package metrics

// Replication is how this broker follows and is followed.
type Replication struct {
	// Shrinks and Expands count in-sync sets of led partitions that lost or got members by this broker's proposal,
	// Refused proposals that the controller refused.
	Shrinks, Expands, Refused int64
	// MaxLag is by how many committed records the followed partition that lags most is behind.
	MaxLag int64
}

// collectReplication shows the replication, in our names and in those of Kafka's exporters.
//
// Shrinks without expands mean that a follower has gone for good; both again and again, that one is at its
// limit.
func (r *Registry) collectReplication(to sink) {
	if r.options.Replication == nil {
		return
	}
	s := r.options.Replication()
	for _, f := range []struct {
		native, kafka, help string
		value               int64
	}{
		{"barnabas_isr_shrinks_total", "isrshrinks_total", "In-sync sets that got smaller as a replica lagged.", s.Shrinks},
		{"barnabas_isr_expands_total", "isrexpands_total", "In-sync sets that got larger as a replica caught up.", s.Expands},
		{"barnabas_isr_updates_refused_total", "failedisrupdates_total", "Changes of an in-sync set that the controller refused.", s.Refused},
	} {
		to.put(counter(f.native, f.help), float64(f.value))
		to.put(counter("kafka_server_replicamanager_"+f.kafka, f.help), float64(f.value))
	}
	const lag = "Committed records that the follower here which lags most does not have."
	to.put(gauge("barnabas_follower_max_lag_records", lag), float64(s.MaxLag))
	to.put(gauge("kafka_server_replicafetchermanager_maxlag", lag), float64(s.MaxLag))
}
