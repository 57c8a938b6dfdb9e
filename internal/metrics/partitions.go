package metrics

// What is said of the replicas on this broker:
//
//	barnabas_replicas, _leaders, _offline_replicas               counts, also kafka_server_replicamanager_*
//	barnabas_under_replicated_partitions, _under_min_isr_partitions, _at_min_isr_partitions
//	                                                             of led partitions: summed over brokers each counts once
//	barnabas_log_bytes, _log_start_offset, _log_end_offset, barnabas_high_watermark{topic,partition}
//	barnabas_topic_log_bytes, barnabas_topic_replicas{topic}
//	barnabas_log_directory_online, _volume_bytes, _free_bytes{directory}
//	barnabas_active_controller                                   the sum over brokers must be 1
//	kafka_brokers, kafka_broker_info{id,address}                 every broker shows all: take the maximum
//	barnabas_controller_epoch                                    differs for long: a broker does not hear its controller
//	barnabas_awaited_partitions, barnabas_reassigning_partitions, kafka_controller_kafkacontroller_*
//	                                                             zero on all but the active controller
//	barnabas_leader_elections_total, _unclean_leader_elections_total
//	                                                             of its terms as controller: sum them over brokers

// partitionCounts are what a broker's replicas add up to.
type partitionCounts struct {
	all, leaders, underReplicated, underMin, atMin, offline int
}

// topicSize is what the replicas of one topic on this broker add up to.
type topicSize struct {
	partitions int
	bytes      int64
}

// collectPartitions shows the replicas on this broker: each, by topic, and all.
func (r *Registry) collectPartitions(to sink) {
	if r.options.Partitions == nil {
		return
	}
	var counts partitionCounts
	topics := make(map[string]topicSize)
	scrape := r.partitions.begin()
	for p := range r.options.Partitions() {
		counts.add(&p)
		size := topics[p.Topic]
		size.partitions++
		size.bytes += p.Size
		topics[p.Topic] = size
		if r.partitions.admit(scrape, p.Topic+"-"+number(p.Partition)) {
			collectPartition(to, &p)
			if r.options.PartitionNames {
				collectPartitionNames(to, &p)
			}
		}
	}
	counts.collect(to)
	r.collectSizes(to, topics)
}

// collectSizes shows the sums by topic, within the limit for topics that the traffic has, too.
func (r *Registry) collectSizes(to sink, topics map[string]topicSize) {
	bytes := gauge("barnabas_topic_log_bytes", "Bytes on disk of the topic's replicas on this broker.", "topic")
	replicas := gauge("barnabas_topic_replicas", "Replicas of the topic on this broker.", "topic")
	scrape := r.sizes.begin()
	for topic, size := range topics {
		if r.sizes.admit(scrape, topic) {
			to.put(bytes, float64(size.bytes), topic)
			to.put(replicas, float64(size.partitions), topic)
		}
	}
}

// add counts one replica.
func (c *partitionCounts) add(p *Partition) {
	c.all++
	if p.Offline {
		c.offline++
	}
	if !p.Leads {
		return
	}
	c.leaders++
	if p.InSync < p.Replicas {
		c.underReplicated++
	}
	switch {
	case p.InSync < p.MinInSync:
		c.underMin++
	case p.InSync == p.MinInSync:
		c.atMin++
	}
}

// collect shows the counts under both names.
func (c *partitionCounts) collect(to sink) {
	for _, f := range []struct {
		native, kafka, help string
		value               int
	}{
		{"barnabas_replicas", "partitioncount", "Replicas on this broker.", c.all},
		{"barnabas_leaders", "leadercount", "Partitions that this broker leads.", c.leaders},
		{"barnabas_under_replicated_partitions", "underreplicatedpartitions", "Led partitions with a replica out of sync.", c.underReplicated},
		{"barnabas_under_min_isr_partitions", "underminisrpartitioncount", "Led partitions with fewer replicas in sync than min.insync.replicas.", c.underMin},
		{"barnabas_at_min_isr_partitions", "atminisrpartitioncount", "Led partitions with just min.insync.replicas in sync.", c.atMin},
		{"barnabas_offline_replicas", "offlinereplicacount", "Replicas on this broker that cannot be used.", c.offline},
	} {
		to.put(gauge(f.native, f.help), float64(f.value))
		to.put(gauge("kafka_server_replicamanager_"+f.kafka, f.help), float64(f.value))
	}
}

// collectPartition shows one replica under native names.
func collectPartition(to sink, p *Partition) {
	partition := number(p.Partition)
	to.put(gauge("barnabas_log_bytes", "Bytes on disk of a log.", "topic", "partition"), float64(p.Size), p.Topic, partition)
	to.put(gauge("barnabas_log_start_offset", "First offset that is there.", "topic", "partition"), float64(p.Start), p.Topic, partition)
	to.put(gauge("barnabas_log_end_offset", "Offset that the next record gets.", "topic", "partition"), float64(p.End), p.Topic, partition)
	to.put(gauge("barnabas_high_watermark", "Offset below which records are committed.", "topic", "partition"),
		float64(p.HighWatermark), p.Topic, partition)
}

// collectPartitionNames shows one replica under the names of Kafka and, where it leads, kafka_exporter.
func collectPartitionNames(to sink, p *Partition) {
	partition := number(p.Partition)
	put := func(name, help string, value float64) {
		to.put(gauge(name, help, "topic", "partition"), value, p.Topic, partition)
	}
	put("kafka_log_log_size", "Bytes on disk of a log.", float64(p.Size))
	put("kafka_log_log_logstartoffset", "First offset that is there.", float64(p.Start))
	put("kafka_log_log_logendoffset", "Offset that the next record gets.", float64(p.End))
	if !p.Leads {
		return
	}
	put("kafka_cluster_partition_replicascount", "Replicas of the partition.", float64(p.Replicas))
	put("kafka_cluster_partition_insyncreplicascount", "Replicas in sync.", float64(p.InSync))
	put("kafka_cluster_partition_underreplicated", "1 where a replica is out of sync.", truth(p.InSync < p.Replicas))
	put("kafka_cluster_partition_underminisr", "1 where fewer than min.insync.replicas are in sync.", truth(p.InSync < p.MinInSync))
	put("kafka_cluster_partition_atminisr", "1 where just min.insync.replicas are in sync.", truth(p.InSync == p.MinInSync))
	put("kafka_topic_partition_current_offset", "Offset below which records are committed.", float64(p.HighWatermark))
	put("kafka_topic_partition_oldest_offset", "First offset that is there.", float64(p.Start))
	put("kafka_topic_partition_leader", "Broker that leads the partition.", float64(p.Leader))
	put("kafka_topic_partition_leader_is_preferred", "1 where the preferred replica leads.", truth(p.Preferred))
	put("kafka_topic_partition_replicas", "Replicas of the partition.", float64(p.Replicas))
	put("kafka_topic_partition_in_sync_replica", "Replicas in sync.", float64(p.InSync))
	put("kafka_topic_partition_under_replicated_partition", "1 where a replica is out of sync.", truth(p.InSync < p.Replicas))
}

// collectDirectories shows the log directories.
func (r *Registry) collectDirectories(to sink) {
	if r.options.Directories == nil {
		return
	}
	offline := 0
	for d := range r.options.Directories() {
		to.put(gauge("barnabas_log_directory_online", "1 while the directory works.", "directory"), truth(d.Online), d.Path)
		if !d.Online {
			offline++
			continue
		}
		to.put(gauge("barnabas_log_directory_volume_bytes", "Size of its volume.", "directory"), float64(d.Total), d.Path)
		to.put(gauge("barnabas_log_directory_free_bytes", "What is free of it for the broker.", "directory"), float64(d.Free), d.Path)
	}
	to.put(gauge("kafka_log_logmanager_offlinelogdirectorycount", "Directories that do not work."), float64(offline))
}

// collectCluster shows the cluster, as far as this broker answers for it.
func (r *Registry) collectCluster(to sink) {
	if r.options.Cluster == nil {
		return
	}
	c := r.options.Cluster()
	to.put(gauge("barnabas_active_controller", "1 where this broker is the active controller."), truth(c.Controller))
	to.put(gauge("kafka_controller_kafkacontroller_activecontrollercount", "1 where this broker is the active controller."),
		truth(c.Controller))
	to.put(gauge("kafka_brokers", "Living brokers."), float64(len(c.Brokers)))
	for _, b := range c.Brokers {
		to.put(gauge("kafka_broker_info", "1; a living broker.", "id", "address"), 1, number(b.ID), b.Address)
	}
	// Kafka's controllers that are not active report zero.
	if !c.Controller {
		c.Topics, c.Partitions, c.Offline, c.Astray, c.Moving, c.Awaited = 0, 0, 0, 0, 0, 0
	}
	to.put(gauge("kafka_controller_kafkacontroller_globaltopiccount", "Topics of the cluster."), float64(c.Topics))
	to.put(gauge("kafka_controller_kafkacontroller_globalpartitioncount", "Partitions of the cluster."), float64(c.Partitions))
	to.put(gauge("kafka_controller_kafkacontroller_offlinepartitionscount", "Partitions without a leader."), float64(c.Offline))
	to.put(gauge("kafka_controller_kafkacontroller_preferredreplicaimbalancecount", "Partitions that another replica leads than the preferred one."),
		float64(c.Astray))
	to.put(gauge("barnabas_awaited_partitions", "Partitions without a leader for whose in-sync replicas the controller waits, before it elects uncleanly."),
		float64(c.Awaited))
	to.put(gauge("barnabas_reassigning_partitions", "Partitions of the cluster that are being reassigned."), float64(c.Moving))
	to.put(gauge("kafka_server_replicamanager_reassigningpartitions", "Partitions of the cluster that are being reassigned."), float64(c.Moving))
	to.put(gauge("barnabas_controller_epoch", "Epoch of the newest controller that this broker has heard."), float64(c.ControllerEpoch))
	for _, f := range []struct {
		native, kafka, help string
		value               int64
	}{
		{"barnabas_leader_elections_total", "leaderelectionrateandtimems_count", "Leaders that this broker has elected as controller.", c.Elections},
		{"barnabas_unclean_leader_elections_total", "uncleanleaderelections_total", "Those of them that may lack acknowledged records.", c.Unclean},
	} {
		to.put(counter(f.native, f.help), float64(f.value))
		to.put(counter("kafka_controller_controllerstats_"+f.kafka, f.help), float64(f.value))
	}
}
