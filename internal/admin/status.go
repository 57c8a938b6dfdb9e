package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/config"
)

// Status is the whole cluster: who is there, what is wrong, and what is under way.
type Status struct {
	Cluster
	// ControllerEpoch is -1 where no broker could be asked (see [Observed]).
	ControllerEpoch int64
	// Members are the brokers that live, and those that have replicas and do not; sorted by id.
	Members            []BrokerStatus
	Topics, Partitions int
	// Troubles are the partitions that are not as they should be, by topic and partition.
	Troubles []Trouble
	// Moving are the reassignments under way, and Throttles the brokers whose replication is slowed down.
	Moving    []Arrival
	Throttles []Throttle
	// Unlisted says why the reassignments are not known.
	Unlisted error
	// Throttled are the topics that have replicas which are slowed down.
	Throttled []string
}

// BrokerState says whether a broker is there.
type BrokerState string

// The states of brokers.
const (
	// Running brokers are registered and answer.
	Running BrokerState = "running"
	// Closed ones run and are to get no replicas (cordoned.log.dirs).
	Closed BrokerState = "closed"
	// Silent ones are registered and do not answer.
	Silent BrokerState = "silent"
	// Down ones are not registered.
	Down BrokerState = "down"
)

// BrokerStatus is one broker.
type BrokerStatus struct {
	Broker
	State BrokerState
	// Leads and Holds count partitions and replicas, Behind those of them that are not in sync.
	Leads, Holds, Behind int
	// Bytes is what its replicas take on disk, -1 where it does not tell.
	Bytes int64
	// Observed is what its metrics say; nil where they cannot be read from here.
	Observed *Observed
}

// Trouble is a partition that is not as it should be.
type Trouble struct {
	TopicPartition
	Partition Partition
	// MinInSync is min.insync.replicas.
	MinInSync int
	// Offline: nobody leads it. UnderMin: acks=all is refused. UnderReplicated: a replica is not in sync.
	Offline, UnderMin, UnderReplicated bool
	// Reason is a sentence that says why, and what to do where something can be done.
	Reason string
}

// OK reports whether a controller and all replicas are there, and every broker answers.
func (s *Status) OK() bool {
	return s.Controller >= 0 && s.Unlisted == nil && len(s.Troubles) == 0 && !slices.ContainsFunc(s.Members, func(m BrokerStatus) bool { return m.State == Silent })
}

// Count is how many partitions are in each kind of trouble; one may be in several.
func (s *Status) Count() (offline, underMin, underReplicated int) {
	for _, t := range s.Troubles {
		for _, kind := range []struct {
			is bool
			n  *int
		}{{t.Offline, &offline}, {t.UnderMin, &underMin}, {t.UnderReplicated, &underReplicated}} {
			if kind.is {
				*kind.n++
			}
		}
	}
	return offline, underMin, underReplicated
}

// Status asks any broker for the topics, the controller for reassignments, and each broker for its directories and
// properties. With observe it also reads the metrics of the brokers that it can reach by http.listener.
func (c *Client) Status(ctx context.Context, observe bool) (*Status, error) {
	l, err := c.Layout(ctx)
	if err != nil {
		return nil, err
	}
	topics, err := c.topicSettings(ctx, l)
	if err != nil {
		return nil, err
	}
	s := &Status{Cluster: l.Cluster, ControllerEpoch: -1, Topics: len(l.Topics), Moving: l.arrivals(l.Ongoing), Throttled: topics.throttled, Unlisted: l.Unlisted}
	s.Members = l.members()
	for _, t := range l.Topics {
		s.Partitions += len(t.Partitions)
		for _, p := range t.Partitions {
			if trouble, ok := l.trouble(TopicPartition{t.Name, p.Number}, p, topics.minInSync[t.Name]); ok {
				s.Troubles = append(s.Troubles, trouble)
			}
		}
	}
	var answering []int32
	for _, m := range s.Members {
		if m.State == Running || m.State == Closed {
			answering = append(answering, m.ID)
		}
	}
	var silent map[int32]error
	s.Throttles, silent = c.Throttles(ctx, answering)
	s.hush(silent)
	if observe {
		c.observeAll(ctx, s)
	}
	return s, nil
}

// hush marks brokers that have stopped answering since they were asked first.
func (s *Status) hush(silent map[int32]error) {
	for i := range s.Members {
		if m := &s.Members[i]; silent[m.ID] != nil {
			m.State, m.Bytes = Silent, -1
		}
	}
}

// topicSettings is what matters here of topics' properties.
type topicSettings struct {
	minInSync map[string]int
	// failed says why a topic's minimum is not known.
	failed    map[string]error
	throttled []string
}

func (c *Client) topicSettings(ctx context.Context, l *Layout) (topicSettings, error) {
	settings := topicSettings{minInSync: map[string]int{}, failed: map[string]error{}}
	var names []string
	for _, t := range l.Topics {
		names = append(names, t.Name)
	}
	if len(names) == 0 {
		return settings, nil
	}
	resources, err := c.describeConfigs(ctx, kmsg.ConfigResourceTypeTopic, names, append([]string{"min.insync.replicas"}, config.ThrottledLists[:]...))
	if err != nil {
		return settings, err
	}
	for _, r := range resources {
		settings.take(r)
	}
	return settings, nil
}

// take adds one topic.
func (s *topicSettings) take(r Resource) {
	s.failed[r.Name] = r.Err
	if r.Err == nil {
		s.failed[r.Name] = errNoAnswer
	}
	for _, e := range r.Entries {
		if n, err := strconv.Atoi(e.Text()); e.Name == "min.insync.replicas" && err == nil {
			s.minInSync[r.Name] = n
			delete(s.failed, r.Name)
		}
	}
	if own := r.Own(); own[config.ThrottledLists[0]] != "" || own[config.ThrottledLists[1]] != "" {
		s.throttled = append(s.throttled, r.Name)
	}
}

// minimum is min.insync.replicas of a topic, or why it is not known; of one that has just been deleted it is 1.
func (s *topicSettings) minimum(topic string) (int, error) {
	if err := s.failed[topic]; err != nil && CodeName(err) != "UNKNOWN_TOPIC_OR_PARTITION" {
		return 0, fmt.Errorf("min.insync.replicas of topic %s is not known: %w", topic, err)
	}
	return max(s.minInSync[topic], 1), nil
}

// members counts what brokers have.
func (l *Layout) members() []BrokerStatus {
	all := map[int32]*BrokerStatus{}
	for _, b := range l.Cluster.Brokers {
		m := &BrokerStatus{Broker: b, State: Running}
		switch {
		case l.Silent[b.ID] != nil:
			m.State, m.Bytes = Silent, -1
		case l.Closed[b.ID]:
			m.State = Closed
		}
		all[b.ID] = m
	}
	for _, t := range l.Topics {
		for _, p := range t.Partitions {
			for _, id := range p.Replicas {
				m := all[id]
				if m == nil {
					m = &BrokerStatus{Broker: Broker{ID: id}, State: Down, Bytes: -1}
					all[id] = m
				}
				m.Holds++
				if p.Leader == id {
					m.Leads++
				}
				if !slices.Contains(p.ISR, id) {
					m.Behind++
				}
			}
		}
	}
	for r, size := range l.Sizes {
		if m := all[r.Broker]; m != nil && m.Bytes >= 0 {
			m.Bytes += size
		}
	}
	var members []BrokerStatus
	for _, id := range slices.Sorted(maps.Keys(all)) {
		members = append(members, *all[id])
	}
	return members
}

// trouble says what is wrong with a partition; false where nothing is.
//
// While it is being reassigned it should have as many replicas in sync as it had before, whichever.
func (l *Layout) trouble(at TopicPartition, p Partition, minInSync int) (Trouble, bool) {
	expected := p.Replicas
	if o := l.Moving(at); o != nil {
		expected = o.Origin()
	}
	t := Trouble{TopicPartition: at, Partition: p, MinInSync: max(minInSync, 1), Offline: p.Leader < 0, UnderReplicated: len(p.ISR) < len(expected)}
	t.UnderMin = len(p.ISR) < t.MinInSync
	switch {
	case t.Offline:
		t.Reason = l.whyOffline(at, p)
	case t.UnderReplicated:
		t.Reason = l.whyBehind(p, less(expected, p.ISR))
	case t.UnderMin:
		t.Reason = "it has fewer replicas than min.insync.replicas: barnabas topic set-replication, or lower the minimum"
	}
	return t, t.Offline || t.UnderMin || t.UnderReplicated
}

// observeAll reads the metrics of brokers side by side.
func (c *Client) observeAll(ctx context.Context, s *Status) {
	var asking sync.WaitGroup
	for i := range s.Members {
		if m := &s.Members[i]; m.State != Down && m.State != Silent {
			asking.Go(func() { m.Observed = c.observe(ctx, s.ID, m.Broker) })
		}
	}
	asking.Wait()
	for _, m := range s.Members {
		if m.Observed != nil {
			s.ControllerEpoch = max(s.ControllerEpoch, m.Observed.ControllerEpoch)
		}
	}
}

// severity orders troubles by how bad they are.
func severity(t Trouble) int {
	switch {
	case t.Offline:
		return 0
	case t.UnderMin:
		return 1
	}
	return 2
}

// Worst lists the troubles, the worst first.
func (s *Status) Worst() []Trouble {
	sorted := slices.Clone(s.Troubles)
	slices.SortStableFunc(sorted, func(a, b Trouble) int { return cmp.Compare(severity(a), severity(b)) })
	return sorted
}
