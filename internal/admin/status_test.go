package admin

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/config"
)

// livingOnly is a cluster in which some brokers live.
func livingOnly(ids ...int32) *Layout {
	l := &Layout{}
	for _, id := range ids {
		l.Cluster.Brokers = append(l.Cluster.Brokers, Broker{ID: id})
	}
	return l
}

func TestReasonsForTroubles(t *testing.T) {
	at := TopicPartition{"t", 0}
	for _, test := range []struct {
		name  string
		alive []int32
		p     Partition
		moved *Ongoing
		// unclean says that an unclean election is held at noon.
		unclean bool
		want    string
	}{
		{name: "well", alive: []int32{1, 2}, p: Partition{Leader: 1, Replicas: []int32{1, 2}, ISR: []int32{1, 2}}},
		{name: "one is down", alive: []int32{1, 2}, p: Partition{Leader: 1, Replicas: []int32{1, 2, 3}, ISR: []int32{1, 2}},
			want: "under replicated: 3 is down"},
		{name: "behind and under the minimum", alive: []int32{1, 2, 3}, p: Partition{Leader: 1, Replicas: []int32{1, 2, 3}, ISR: []int32{1}, Offline: []int32{3}},
			want: "under min: the log directory of 3 has failed; 2 is catching up"},
		{name: "too few by design", alive: []int32{1}, p: Partition{Leader: 1, Replicas: []int32{1}, ISR: []int32{1}},
			want: "under min: it has fewer replicas than min.insync.replicas: barnabas topic set-replication, or lower the minimum"},
		{name: "a replica that is being added is not missed", alive: []int32{1, 2, 3}, p: Partition{Leader: 1, Replicas: []int32{3, 1, 2}, ISR: []int32{1, 2}},
			moved: &Ongoing{at, []int32{3, 1, 2}, []int32{3}, []int32{2}}},
		{name: "nor one that a reassignment has taken out at its end", alive: []int32{1, 2, 3}, p: Partition{Leader: 1, Replicas: []int32{3, 1}, ISR: []int32{1, 3}},
			moved: &Ongoing{at, []int32{3, 1, 2}, []int32{3}, []int32{2}}},
		{name: "but one that was there before is", alive: []int32{1, 3}, p: Partition{Leader: 1, Replicas: []int32{3, 1, 2}, ISR: []int32{1}},
			moved: &Ongoing{at, []int32{3, 1, 2}, []int32{3}, []int32{2}}, want: "under min: 2 is down"},
		{name: "all in sync are down", alive: []int32{3}, p: Partition{Leader: -1, Replicas: []int32{1, 2, 3}, ISR: []int32{1, 2}},
			want: "offline: no replica in sync can lead: in sync were 1,2; 1,2 are down; 3 is not in sync and may lack acknowledged records. " +
				"Start 1,2 with their disks; if those are lost for good, unclean.leader.election.enable=true on the topic gives up what only they had"},
		{name: "and are waited for", alive: []int32{3}, p: Partition{Leader: -1, Replicas: []int32{1, 2, 3}, ISR: []int32{1, 2}}, unclean: true,
			want: "offline: no replica in sync can lead: in sync were 1,2; 1,2 are down; 3 is not in sync and may lack acknowledged records. " +
				"Start 1,2 with their disks before 12:00:00: then a leader is elected without them, and what only they had is given up (unclean.leader.election.enable)"},
		{name: "nobody lives who could be elected", alive: []int32{4}, p: Partition{Leader: -1, Replicas: []int32{1, 2}, ISR: []int32{1, 2}}, unclean: true,
			want: "offline: no replica in sync can lead: in sync were 1,2; 1,2 are down. Start 1,2 with their disks"},
		{name: "all are back in doubt", alive: []int32{1, 2}, p: Partition{Leader: -1, Replicas: []int32{1, 2}, ISR: []int32{1, 2}},
			want: "offline: no replica in sync can lead: in sync were 1,2; 1,2 are back without an orderly stop and may lack acknowledged records. " +
				"A leader will be elected from what they have"},
		{name: "its only replica", alive: []int32{2}, p: Partition{Leader: -1, Replicas: []int32{1}, ISR: []int32{1}},
			want: "offline: no replica in sync can lead: in sync were 1; 1 is down. Start 1 with its disks"},
		{name: "a member is back in doubt", alive: []int32{1}, p: Partition{Leader: -1, Replicas: []int32{1, 2}, ISR: []int32{1, 2}},
			want: "offline: no replica in sync can lead: in sync were 1,2; 2 is down; 1 is back without an orderly stop and may lack acknowledged records. " +
				"Start 2 with its disks; if those are lost for good, unclean.leader.election.enable=true on the topic gives up what only they had"},
		{name: "its disk has failed", alive: []int32{1, 2}, p: Partition{Leader: -1, Replicas: []int32{1}, ISR: []int32{1}, Offline: []int32{1}},
			want: "offline: no replica in sync can lead: in sync were 1; the log directory of 1 has failed. Start 1 with its disks"},
		{name: "never led", alive: []int32{2}, p: Partition{Leader: -1, Replicas: []int32{1}},
			want: "offline: no replica has ever led it; 1 is down. Start 1 with its disks"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := livingOnly(test.alive...)
			if test.moved != nil {
				l.Ongoing = []Ongoing{*test.moved}
			}
			if test.unclean {
				l.Elections = map[TopicPartition]time.Time{at: time.Date(2026, 5, 6, 12, 0, 0, 0, time.Local)}
			}
			got := ""
			if trouble, ok := l.trouble(at, test.p, 2); ok {
				kind := "under replicated"
				switch {
				case trouble.Offline:
					kind = "offline"
				case trouble.UnderMin:
					kind = "under min"
				}
				got = kind + ": " + trouble.Reason
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestObstacles(t *testing.T) {
	at := TopicPartition{"t", 0}
	for _, test := range []struct {
		replicas, isr []int32
		least         int
		want          string
		failed        []int32
	}{
		{[]int32{1, 2, 3}, []int32{1, 2, 3}, 2, "", nil},
		{[]int32{1, 2, 3}, []int32{2, 3}, 2, "", nil}, // it is out already
		{[]int32{2, 3}, []int32{2}, 2, "", nil},
		{[]int32{1, 2, 3}, []int32{1, 2}, 2, "refused: wait until 3 is in sync again", nil},
		{[]int32{1, 2, 3}, []int32{1}, 1, "offline: wait until 2,3 are in sync again", nil},
		{[]int32{1, 2}, []int32{1, 2}, 2, "refused: min.insync.replicas=2 leaves no room with 2 replicas: barnabas topic set-replication t 3", nil},
		{[]int32{1}, []int32{1}, 1, "offline: it has no other replica: barnabas topic set-replication t 3, or barnabas cluster drain 1 --replicas", nil},
		// A member that has died a moment ago, or whose disk has failed, does not survive the stop.
		{[]int32{1, 9, 2}, []int32{1, 9, 2}, 2, "refused: wait until 9 is in sync again", nil},
		{[]int32{1, 9}, []int32{1, 9}, 1, "offline: wait until 9 is in sync again", nil},
		{[]int32{1, 2, 3}, []int32{1, 2, 3}, 2, "refused: wait until 3 is in sync again", []int32{3}},
	} {
		got := ""
		if o, ok := livingOnly(1, 2, 3).obstacle(at, Partition{Replicas: test.replicas, ISR: test.isr, Offline: test.failed}, test.least, 1); ok {
			got = map[bool]string{true: "offline: ", false: "refused: "}[o.Offline] + o.Advice
		}
		if got != test.want {
			t.Errorf("replicas %v, in sync %v of %d:\ngot  %s\nwant %s", test.replicas, test.isr, test.least, got, test.want)
		}
	}
}

// A minimum that nobody tells is not 1.
func TestUnknownMinimumIsAnError(t *testing.T) {
	two := "2"
	settings := topicSettings{minInSync: map[string]int{}, failed: map[string]error{}}
	for _, r := range []Resource{
		{Name: "known", Entries: []ConfigEntry{{Name: "min.insync.replicas", Value: &two}}},
		{Name: "refused", Err: kerr.TopicAuthorizationFailed},
		{Name: "silent"},
		{Name: "deleted", Err: kerr.UnknownTopicOrPartition},
	} {
		settings.take(r)
	}
	for topic, want := range map[string]string{
		"known": "2", "deleted": "1",
		"refused": "min.insync.replicas of topic refused is not known: " + kerr.TopicAuthorizationFailed.Error(),
		"silent":  "min.insync.replicas of topic silent is not known: " + errNoAnswer.Error(),
	} {
		got, err := settings.minimum(topic)
		if said := strconv.Itoa(got); said != want && (err == nil || err.Error() != want) {
			t.Errorf("%s: %d, %v", topic, got, err)
		}
	}
}

func TestObservedIsTheBrokerThatWasAskedFor(t *testing.T) {
	const scrape = `# HELP barnabas_broker_info 1; who this is.
barnabas_broker_info{broker="7",cluster="abc"} 1
barnabas_controller_epoch 12
barnabas_store_connected 1
barnabas_store_session_remaining_seconds 4.5
barnabas_store_requests_total 10
barnabas_store_request_seconds_total 0.02
barnabas_follower_max_lag_records 3
`
	want := Observed{ControllerEpoch: 12, Connected: true, Remaining: 4500 * time.Millisecond, Latency: 2 * time.Millisecond, MaxLag: 3}
	if got := observed(strings.NewReader(scrape), "abc", 7); got == nil || *got != want {
		t.Errorf("%+v", got)
	}
	for _, other := range []*Observed{observed(strings.NewReader(scrape), "abc", 8), observed(strings.NewReader(scrape), "abd", 7), observed(strings.NewReader(""), "abc", 7)} {
		if other != nil {
			t.Errorf("another broker's metrics were taken: %+v", other)
		}
	}
}

func TestThrottlesOfOthersStay(t *testing.T) {
	own := func(leader, follower string) Resource {
		r := Resource{Type: kmsg.ConfigResourceTypeTopic, Name: "t"}
		for key, value := range map[string]string{config.ThrottledLists[0]: leader, config.ThrottledLists[1]: follower} {
			r.Entries = append(r.Entries, ConfigEntry{Name: key, Value: &value, Source: kmsg.ConfigSourceDynamicTopicConfig})
		}
		return r
	}
	for _, test := range []struct{ leader, follower, want string }{
		{"0:1,0:2,1:1", "0:3", "leader.replication.throttled.replicas=1:1 follower.replication.throttled.replicas deleted"},
		{"1:1,10:1", "*", ""},
		{"", "0:3,0:4", "follower.replication.throttled.replicas deleted"},
	} {
		var said []string
		for _, op := range releases(own(test.leader, test.follower), func(partition string) bool { return partition == "0" }) {
			if op.Value == nil {
				said = append(said, op.Name+" deleted")
			} else {
				said = append(said, fmt.Sprintf("%s=%s", op.Name, *op.Value))
			}
		}
		if got := strings.Join(said, " "); got != test.want {
			t.Errorf("%q and %q: %q", test.leader, test.follower, got)
		}
	}
}

// A broker that answered first and does not any more is silent.
func TestBrokersFallSilent(t *testing.T) {
	s := &Status{Members: []BrokerStatus{{Broker: Broker{ID: 1}, State: Running}, {Broker: Broker{ID: 2}, State: Closed, Bytes: 7}}}
	if s.hush(map[int32]error{2: errNoAnswer}); s.Members[0].State != Running || s.Members[1].State != Silent || s.Members[1].Bytes != -1 {
		t.Errorf("%+v", s.Members)
	}
	c, err := New(Options{Bootstrap: []string{"127.0.0.1:1"}, Timeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if all, silent := c.Throttles(t.Context(), []int32{1, 2}); len(all) != 0 || len(silent) != 2 {
		t.Errorf("%v, %v", all, silent)
	}
}
