package kafka

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func offsetSample() (key, value []byte) {
	k := kmsg.OffsetCommitKey{Version: 1, Group: "g", Topic: "t", Partition: 7}
	v := kmsg.NewOffsetCommitValue()
	v.Version, v.Offset, v.LeaderEpoch, v.CommitTimestamp = 3, 42, 5, 1700000000000
	return k.AppendTo(nil), v.AppendTo(nil)
}

func groupSample() (key, value []byte) {
	k := kmsg.GroupMetadataKey{Version: 2, Group: "g"}
	subscription := kmsg.NewConsumerMemberMetadata()
	subscription.Version, subscription.Topics = 1, []string{"t"}
	assignment := kmsg.NewConsumerMemberAssignment()
	topic := kmsg.NewConsumerMemberAssignmentTopic()
	topic.Topic, topic.Partitions = "t", []int32{0, 1}
	assignment.Topics = append(assignment.Topics, topic)
	v := kmsg.NewGroupMetadataValue()
	v.Version, v.ProtocolType, v.Generation = 3, "consumer", 4
	m := kmsg.NewGroupMetadataValueMember()
	m.MemberID, m.ClientID, m.ClientHost, m.Subscription, m.Assignment = "m", "c", "/127.0.0.1", subscription.AppendTo(nil), assignment.AppendTo(nil)
	v.Members = append(v.Members, m)
	return k.AppendTo(nil), v.AppendTo(nil)
}

func TestDecodeOffsets(t *testing.T) {
	key, value := offsetSample()
	k, v := decodeOffsets(key, value)
	if *k != `{"type":"1","data":{"group":"g","topic":"t","partition":7}}` ||
		*v != `{"version":"3","data":{"offset":42,"leaderEpoch":5,"metadata":"","commitTimestamp":1700000000000}}` {
		t.Errorf("%s %s", *k, *v)
	}
	if _, v := decodeOffsets(key, nil); *v != "<DELETE>" {
		t.Error(*v)
	}
	key, value = groupSample()
	k, v = decodeOffsets(key, value)
	for _, want := range []string{
		`"protocolType":"consumer","generation":4`, `"memberId":"m","groupInstanceId":null,"clientId":"c","clientHost":"/127.0.0.1"`,
		`"subscription":{"topics":["t"],"userData":null,"ownedPartitions":[]}`, `"assignment":{"assignedPartitions":[{"topic":"t","partitions":[0,1]}],"userData":null}`,
	} {
		if !strings.Contains(*v, want) {
			t.Errorf("no %s in %s", want, *v)
		}
	}
	if *k != `{"type":"2","data":{"group":"g"}}` {
		t.Error(*k)
	}
	if k, v := decodeOffsets([]byte{0, 99}, nil); !strings.Contains(*k, "Unknown record type 99") || v != nil {
		t.Error(*k, v)
	}
}

func FuzzDecodeRecords(f *testing.F) {
	for _, sample := range []func() ([]byte, []byte){offsetSample, groupSample} {
		key, value := sample()
		f.Add(key, value)
		f.Add(key[:len(key)-1], value[:len(value)-2])
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		decodeOffsets(key, value)
		decodeTransactions(key, value)
	})
}
