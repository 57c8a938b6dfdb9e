package metrics

// Lag, of the groups that this broker coordinates:
//
//	barnabas_groups{state}                                       groups
//	barnabas_group_members{group}                                also kafka_consumergroup_members
//	barnabas_group_committed_offset{group,topic,partition}       where it goes on reading
//	barnabas_group_lag_records{group,topic,partition}            records; missing where another broker leads
//	barnabas_group_lag_seconds{group,topic,partition}            age of the first record not read
//	barnabas_group_topic_lag_records{group,topic}                sum, of the partitions that are known
//	barnabas_group_topic_lag_seconds{group,topic}                the largest
//
// and as kafka_exporter has them, kafka_consumergroup_{current_offset,lag}_sum{consumergroup,topic}, and with
// PartitionNames kafka_consumergroup_{current_offset,lag}{consumergroup,topic,partition}. In a cluster the lag
// of a partition is shown only where one broker both leads it and coordinates the group.

// topicLag is a group's lag in one topic.
type topicLag struct {
	committed, lag int64
	known          bool // the lag of at least one partition is
	shown          bool // at least one partition is
	behind         float64
}

// collectGroups shows the groups that this broker coordinates, and how far they lag.
func (r *Registry) collectGroups(to sink) {
	if r.options.Groups == nil {
		return
	}
	ctx, cancel := scrape()
	defer cancel()
	states := make(map[string]int)
	groups, offsets := r.groups.begin(), r.offsets.begin()
	for g := range r.options.Groups(ctx) {
		states[g.State]++
		if !r.groups.admit(groups, g.Name) {
			continue
		}
		to.put(gauge("barnabas_group_members", "Members of a group.", "group"), float64(g.Members), g.Name)
		to.put(gauge("kafka_consumergroup_members", "Members of a group.", "consumergroup"), float64(g.Members), g.Name)
		r.collectLag(to, &g, offsets)
	}
	count := gauge("barnabas_groups", "Groups coordinated by this broker.", "state")
	for state, n := range states {
		to.put(count, float64(n), state)
	}
}

// collectLag shows one group's lag by partition and by topic.
func (r *Registry) collectLag(to sink, g *Group, scrape int64) {
	topics := make(map[string]topicLag)
	for i := range g.Offsets {
		o := &g.Offsets[i]
		sum := topics[o.Topic]
		sum.committed += o.Committed
		if o.Lag >= 0 {
			sum.lag += o.Lag
			sum.known = true
			sum.behind = max(sum.behind, o.Behind.Seconds())
		}
		if r.offsets.admit(scrape, g.Name+"\x00"+o.Topic+"\x00"+number(o.Partition)) {
			r.collectOffset(to, g.Name, o)
			sum.shown = true
		}
		topics[o.Topic] = sum
	}
	for topic, sum := range topics {
		if !sum.shown {
			continue
		}
		to.put(gauge("kafka_consumergroup_current_offset_sum", "Sum of the committed offsets.", "consumergroup", "topic"),
			float64(sum.committed), g.Name, topic)
		if sum.known {
			to.put(gauge("barnabas_group_topic_lag_records", "Records of a topic that a group has not read.", "group", "topic"),
				float64(sum.lag), g.Name, topic)
			to.put(gauge("barnabas_group_topic_lag_seconds", "Age of the oldest record of a topic that a group has not read.", "group", "topic"),
				sum.behind, g.Name, topic)
			to.put(gauge("kafka_consumergroup_lag_sum", "Records of a topic that a group has not read.", "consumergroup", "topic"),
				float64(sum.lag), g.Name, topic)
		}
	}
}

// collectOffset shows one partition of a group.
func (r *Registry) collectOffset(to sink, group string, o *GroupOffset) {
	labels := []string{group, o.Topic, number(o.Partition)}
	put := func(name, help string, value float64) {
		to.put(gauge(name, help, "group", "topic", "partition"), value, labels...)
	}
	put("barnabas_group_committed_offset", "Offset where a group goes on reading.", float64(o.Committed))
	if o.Lag >= 0 {
		put("barnabas_group_lag_records", "Records that a group has not read.", float64(o.Lag))
	}
	if o.Behind >= 0 {
		put("barnabas_group_lag_seconds", "Age of the oldest record that a group has not read.", o.Behind.Seconds())
	}
	if !r.options.PartitionNames {
		return
	}
	kafka := func(name, help string, value float64) {
		to.put(gauge(name, help, "consumergroup", "topic", "partition"), value, labels...)
	}
	kafka("kafka_consumergroup_current_offset", "Offset where a group goes on reading.", float64(o.Committed))
	if o.Lag >= 0 {
		kafka("kafka_consumergroup_lag", "Records that a group has not read.", float64(o.Lag))
	}
}
