package adopt

import (
	"maps"
	"slices"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// source is what the old cluster knew, from wherever it comes.
//
//	                  kraft log   ZooKeeper tree   kafka-configs   nothing
//	topics, ids       all         all              names           -
//	replicas, isr     yes         yes              -               -
//	epochs            yes         yes              -               -
//	properties        all         all              all             -
//	producer ids      certain     as of the dump   -               -
type source struct {
	// name says where it comes from.
	name string
	// kraft is true where it is a metadata log.
	kraft bool
	// complete is true where it knows all topics, so that one it does not know was deleted or is newer.
	complete bool
	topics   map[string]*oldTopic
	// defaults hold for all brokers, brokers for one.
	defaults map[string]string
	brokers  map[P.BrokerID]map[string]string
	// nextProducerID is the first id that was never given out, or NoProducerID. Where it is certain, it
	// cannot be older than the logs.
	nextProducerID P.ProducerID
	certain        bool
	notices        []Notice
}

// oldTopic is a topic as the old cluster knew it.
type oldTopic struct {
	id          P.TopicID
	partitions  map[int32]oldPartition
	config      map[string]string
	configKnown bool
}

// oldPartition is a partition as the old cluster knew it.
type oldPartition struct {
	replicas []P.BrokerID
	// synced are those that have all committed records; nil where that is not known.
	synced []P.BrokerID
	epoch  P.LeaderEpoch
}

func newSource(name string) *source {
	return &source{
		name: name, topics: map[string]*oldTopic{}, defaults: map[string]string{},
		brokers: map[P.BrokerID]map[string]string{}, nextProducerID: P.NoProducerID,
	}
}

// topic is the topic of that name, made where it is missing.
func (s *source) topic(name string) *oldTopic {
	t := s.topics[name]
	if t == nil {
		t = &oldTopic{partitions: map[int32]oldPartition{}}
		s.topics[name] = t
	}
	return t
}

// names lists the topics, in order.
func (s *source) names() []string { return slices.Sorted(maps.Keys(s.topics)) }

// count is one more than the highest partition.
func (t *oldTopic) count() int {
	highest := int32(-1)
	for number := range t.partitions {
		highest = max(highest, number)
	}
	return int(highest) + 1
}

// factor is the largest number of replicas of a partition.
func (t *oldTopic) factor() int {
	most := 0
	for _, p := range t.partitions {
		most = max(most, len(p.replicas))
	}
	return most
}

// notice adds a notice if there are names that it is about.
func (s *source) notice(subject, meaning string, names []string) {
	if len(names) > 0 {
		slices.Sort(names)
		s.notices = append(s.notices, Notice{Subject: subject, Names: slices.Compact(names), Meaning: meaning})
	}
}

// What becomes of things that have no place here yet.
const (
	meaningSCRAM  = "not carried: nobody is asked for a password here; create the users again when SASL is used"
	meaningACLs   = "not carried: everybody may do everything here"
	meaningQuotas = "not carried: no client is throttled here"
	meaningTokens = "not carried: they are worth nothing here"
)
