package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/record"
)

// listed is how many topics and groups there are at least, so that "all" is many on every broker.
const listed = arrayMax + 2

// side is one broker with the topics and groups that cases use. Both sides have the same names.
//
// next numbers the names that a case makes; both sides are kept at the same number, so that the same case has
// the same names on both, whatever went before on either.
type side struct {
	address string
	run     string
	next    int
	conn    *conn
	// data has two partitions and records in the first one, compact wants keys, big allows small batches only.
	data, compact, small string
	ids                  map[string][16]byte
}

// newSide makes the fixture.
func newSide(address, run string) (*side, error) {
	s := &side{address: address, run: run, ids: map[string][16]byte{}}
	var err error
	if s.conn, err = dial(address); err != nil {
		return nil, err
	}
	// The first coordinator request makes the internal topic.
	if err := s.await("the group coordinator", s.coordinated); err != nil {
		return nil, err
	}
	s.resetBrokers()
	s.data, s.compact, s.small = s.newTopic(2, nil), s.newTopic(1, map[string]string{"cleanup.policy": "compact"}),
		s.newTopic(1, map[string]string{"max.message.bytes": "1000"})
	for range listed {
		s.newTopic(1, nil)
		s.newGroup()
	}
	if err := s.await("the leaders", s.led); err != nil {
		return nil, err
	}
	return s, s.fill()
}

// resetBrokers takes back what an earlier run has set on the broker and on all brokers.
func (s *side) resetBrokers() {
	for _, name := range []string{"1", ""} {
		q := kmsg.NewPtrDescribeConfigsRequest()
		q.Version = 4
		q.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: name}}
		described, err := ask[*kmsg.DescribeConfigsResponse](s, q)
		if err != nil {
			continue
		}
		for _, c := range described.Resources[0].Configs {
			if c.Source != kmsg.ConfigSourceDynamicBrokerConfig && c.Source != kmsg.ConfigSourceDynamicDefaultBrokerConfig {
				continue
			}
			alter := kmsg.NewPtrIncrementalAlterConfigsRequest()
			r := kmsg.NewIncrementalAlterConfigsRequestResource()
			r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeBroker, name
			r.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: c.Name, Op: kmsg.IncrementalAlterConfigOpDelete}}
			alter.Resources = append(alter.Resources, r)
			_, _ = ask[*kmsg.IncrementalAlterConfigsResponse](s, alter)
		}
	}
}

// await tries until a condition holds.
func (s *side) await(what string, ready func() bool) error {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if ready() {
			return nil
		}
	}
	return fmt.Errorf("%s: %s does not come", s.address, what)
}

func (s *side) coordinated() bool {
	q := kmsg.NewPtrFindCoordinatorRequest()
	q.CoordinatorKey = "any"
	found, err := ask[*kmsg.FindCoordinatorResponse](s, q)
	if err != nil || found.ErrorCode != 0 {
		return false
	}
	commit, err := ask[*kmsg.OffsetFetchResponse](s, &kmsg.OffsetFetchRequest{Version: 5, Group: "any"})
	if err != nil || commit.ErrorCode != 0 {
		return false
	}
	given, err := ask[*kmsg.InitProducerIDResponse](s, &kmsg.InitProducerIDRequest{Version: 1})
	return err == nil && given.ErrorCode == 0
}

func (s *side) led() bool {
	q := kmsg.NewPtrMetadataRequest()
	all, err := ask[*kmsg.MetadataResponse](s, q)
	if err != nil {
		return false
	}
	for _, t := range all.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode != 0 {
				return false
			}
		}
	}
	return true
}

// fill writes twenty records into the first partition, in two batches.
func (s *side) fill() error {
	for range 2 {
		q := s.produce(9, s.data, 0, batch(10, record.BuilderOptions{}))
		response, err := ask[*kmsg.ProduceResponse](s, q)
		if err != nil {
			return err
		}
		if code := response.Topics[0].Partitions[0].ErrorCode; code != 0 {
			return fmt.Errorf("%s: filling the topic: %s", s.address, errorName(code))
		}
	}
	return nil
}

// ask sends a request over the side's own connection, which is made again where it was lost.
func ask[R kmsg.Response](s *side, q kmsg.Request) (R, error) {
	response, err := s.conn.request(q)
	if err != nil {
		s.conn.Close()
		var dialErr error
		if s.conn, dialErr = dial(s.address); dialErr != nil {
			s.conn = &conn{}
		}
		var none R
		return none, err
	}
	return response.(R), nil
}

// fresh is a name that nothing has yet; all of them have the same length.
func (s *side) fresh(kind string) string {
	s.next++
	return fmt.Sprintf("%s-%s-%05d", s.run, kind, s.next)
}

// newTopic makes a topic and waits until it can be used.
func (s *side) newTopic(partitions int32, configs map[string]string) string {
	name := s.fresh("topic")
	q := kmsg.NewPtrCreateTopicsRequest()
	q.Version, q.TimeoutMillis = 7, 10_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, 1
	for key, value := range configs {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: key, Value: &value})
	}
	q.Topics = append(q.Topics, t)
	if made, err := ask[*kmsg.CreateTopicsResponse](s, q); err == nil && len(made.Topics) == 1 {
		s.ids[name] = made.Topics[0].TopicID
	}
	return name
}

// newGroup makes a group that has an offset and no members.
func (s *side) newGroup() string {
	name := s.fresh("group")
	q := s.commit(8, name)
	_, _ = ask[*kmsg.OffsetCommitResponse](s, q)
	return name
}

// newMember makes a group with one member, which leads it.
func (s *side) newMember() (group, member string, generation int32) {
	group = s.fresh("group")
	joined, err := ask[*kmsg.JoinGroupResponse](s, s.join(3, group))
	if err != nil {
		return group, "", -1
	}
	q := kmsg.NewPtrSyncGroupRequest()
	q.Version, q.Group, q.MemberID, q.Generation = 3, group, joined.MemberID, joined.Generation
	q.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: joined.MemberID, MemberAssignment: []byte("mine")}}
	_, _ = ask[*kmsg.SyncGroupResponse](s, q)
	return group, joined.MemberID, joined.Generation
}

// batch is a batch of small records.
func batch(records int, o record.BuilderOptions) []byte {
	return batchAt(time.Now().UnixMilli(), records, o)
}

func batchAt(timestamp int64, records int, o record.BuilderOptions) []byte {
	b := record.NewBuilder(o)
	for i := range records {
		b.Append(timestamp, fmt.Appendf(nil, "key %d", i), []byte(strings.Repeat("value ", 4)))
	}
	return b.Build()
}
