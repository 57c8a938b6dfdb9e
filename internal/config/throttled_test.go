package config

import "testing"

func TestThrottledReplicas(t *testing.T) {
	for _, one := range []struct {
		list      ThrottledReplicas
		partition int32
		want      bool
	}{
		{"", 1, false},
		{"*", 1, true},
		{"1:3", 1, true},
		{"0:3,1:3,2:3", 1, true},
		{"0:3,1:3", 1, true},
		{"1:3,2:3", 1, true},
		{"1:31,11:3", 1, false},
		{"11:3,1:3", 1, true},
		{"11:3,11:33,1:32", 1, false},
		{"1:2", 1, false},
	} {
		if got := one.list.Has(one.partition, 3); got != one.want {
			t.Errorf("%q has partition %d of broker 3: %v", one.list, one.partition, got)
		}
	}
}

// The lists of a topic's properties reach the settings in the form that they are looked up in, spaces taken out.
func TestThrottledReplicasOfATopic(t *testing.T) {
	topic, err := Default().Topic(map[string]string{
		"leader.replication.throttled.replicas": "0:1, 1:2", "follower.replication.throttled.replicas": "*",
	})
	if err != nil || !topic.ThrottledLeaders.Has(1, 2) || topic.ThrottledLeaders.Has(1, 1) || !topic.ThrottledFollowers.Has(7, 7) {
		t.Errorf("%v, leaders %q, followers %q", err, topic.ThrottledLeaders, topic.ThrottledFollowers)
	}
}
