package znode

import (
	"testing"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/google/go-cmp/cmp"
)

func TestSanitize(t *testing.T) {
	for name, want := range map[string]string{
		"user@with space/ä":     "user%40with%20space%2F%C3%A4",
		"app 2/x*":              "app%202%2Fx%2A",
		"a.B-c_9":               "a.B-c_9",
		"~":                     "%7E",
		"<default>":             "<default>",
		"":                      "",
		"CN=bob,OU=x":           "CN%3Dbob%2COU%3Dx",
		"..":                    "..",
		"two<default>":          "two%3Cdefault%3E",
		"plus+":                 "plus%2B",
		"invalid \xff and \x00": "invalid%20%FF%20and%20%00",
	} {
		got := Sanitize(name)
		if got != want {
			t.Errorf("Sanitize(%q) = %q, want %q", name, got, want)
		}
		if back, err := Desanitize(got); err != nil || back != name {
			t.Errorf("Desanitize(%q) = %q, %v", got, back, err)
		}
	}
	for _, bad := range []string{"%", "%4", "%4x", "a%G0"} {
		if _, err := Desanitize(bad); err == nil {
			t.Errorf("Desanitize(%q) succeeded", bad)
		}
	}
	if got, _ := Desanitize("a+b"); got != "a b" {
		t.Errorf("+ became %q", got)
	}
}

func TestEntities(t *testing.T) {
	for want, got := range map[string]metadata.Entity{
		"users/alice/clients/<default>":  ClientEntity("alice", "<default>"),
		"users/<default>":                ClientEntity("<default>", ""),
		"clients/app%201":                ClientEntity("", "app 1"),
		"users/a%2Fb/clients/app%2Fc%2F": ClientEntity("a/b", "app/c/"),
	} {
		if string(got) != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	e, err := DecodeConfigChange([]byte(`{"version":1,"entity_type":"topics","entity_name":"t"}`))
	if err != nil || e != "topics/t" {
		t.Errorf("version 1: %s, %v", e, err)
	}
	for _, bad := range []string{`{}`, `{"entity_path":"topics"}`, `{"entity_path":"/t"}`, `x`, ``} {
		if e, err := DecodeConfigChange([]byte(bad)); err == nil {
			t.Errorf("%s gave %s", bad, e)
		}
	}
}

func TestOldVersionsAndUnknownKeys(t *testing.T) {
	one, err := DecodeRegistration(3, 9, []byte(`{"version":1,"host":"h","port":9092,"jmx_port":1,"timestamp":"17","later":{"x":[1]}}`))
	want := Registration{Broker: metadata.Broker{ID: 3, Epoch: 9, Endpoints: []metadata.Endpoint{{Listener: "PLAINTEXT", Host: "h", Port: 9092}}}, Timestamp: 17}
	if diff := cmp.Diff(want, one); err != nil || diff != "" {
		t.Error(err, diff)
	}
	topic, err := DecodeTopic("t", []byte(`{"version":1,"partitions":{"1":[2],"0":[1]},"later":1}`))
	if diff := cmp.Diff([][]P.BrokerID{{1}, {2}}, topic.Replicas); err != nil || diff != "" || !topic.ID.IsZero() {
		t.Error(err, diff)
	}
	state, err := DecodeState(P.TopicPartition{Topic: "t"}, []byte(`{"leader":1,"leader_epoch":2,"isr":[1],"controller_epoch":3,"version":1,"barnabas_later":[]}`))
	if err != nil || !state.Equal(State{Leader: 1, LeaderEpoch: 2, ISR: []P.BrokerID{1}, ControllerEpoch: 3}) {
		t.Error(err, state)
	}
	c, err := DecodeController([]byte(`{"version":1,"brokerid":4}`))
	if err != nil || c.BrokerID != 4 {
		t.Error(err, c)
	}
}

func TestRegistrationSaysHowItStopped(t *testing.T) {
	rack := `r"1`
	r := Registration{Stopped: StopKilled, Timestamp: 5, Broker: metadata.Broker{
		ID: 1, Rack: &rack, Features: map[string]metadata.VersionRange{"b": {Min: 0, Max: 2}, "a": {Min: 1, Max: 1}},
		Endpoints: []metadata.Endpoint{{Listener: "S", Host: "::1", Port: 9, Protocol: metadata.SASLSSL}},
	}}
	data := EncodeRegistration(r)
	back, err := DecodeRegistration(1, 0, data)
	if diff := cmp.Diff(r, back); err != nil || diff != "" {
		t.Error(err, diff)
	}
	const want = `{"features":{"a":{"min_version":1,"max_version":1},"b":{"min_version":0,"max_version":2}},` +
		`"listener_security_protocol_map":{"S":"SASL_SSL"},"endpoints":["S://[::1]:9"],"rack":"r\"1","jmx_port":-1,` +
		`"port":-1,"host":null,"version":5,"timestamp":"5","barnabas_stopped":"killed"}`
	if string(data) != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
}

func TestProducerIDBlocks(t *testing.T) {
	b, err := NextProducerIDBlock(nil, 1)
	if err != nil || b != (ProducerIDBlock{1, 0, 999}) {
		t.Fatal(b, err)
	}
	b, err = NextProducerIDBlock(EncodeProducerIDBlock(b), 2)
	if err != nil || b != (ProducerIDBlock{2, 1000, 1999}) {
		t.Fatal(b, err)
	}
	for _, bad := range []string{
		`{"broker":1,"block_start":"0","block_end":"9223372036854775807"}`,
		`{"broker":1,"block_start":"9","block_end":"8"}`,
		`{"broker":1,"block_start":"-9","block_end":"8"}`,
		`{"broker":1,"block_start":"","block_end":"8"}`,
	} {
		if b, err := NextProducerIDBlock([]byte(bad), 1); err == nil {
			t.Errorf("%s gave %v", bad, b)
		}
	}
}

func TestTopicOrderAndGaps(t *testing.T) {
	topic := Topic{ID: P.TopicID{1}, Adding: map[int32][]P.BrokerID{10: {3}, 2: {4}}}
	for i := range 12 {
		topic.Replicas = append(topic.Replicas, []P.BrokerID{P.BrokerID(i)})
	}
	topic.Replicas[5] = nil
	back, err := DecodeTopic("t", EncodeTopic(topic))
	if err != nil {
		t.Fatal(err)
	}
	back.Removing = nil
	if diff := cmp.Diff(topic, back); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{`{"partitions":{"999999":[1]}}`, `{"partitions":{"-1":[1]}}`, `{"partitions":{"99999999999":[1]}}`, `{"topic_id":"x"}`, ``} {
		if _, err := DecodeTopic("t", []byte(bad)); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

func TestNumbers(t *testing.T) {
	if GeneratedBrokerID(1, 1000) != 1001 {
		t.Error("the first generated id is not 1001")
	}
	if one, two := NewClusterID(), NewClusterID(); len(one) != 22 || one == two {
		t.Error("cluster ids are not random")
	}
	for _, bad := range []string{"", "x", "1.5", "99999999999"} {
		if e, err := DecodeControllerEpoch([]byte(bad)); err == nil {
			t.Errorf("epoch %q gave %d", bad, e)
		}
	}
	for _, bad := range []string{"", "x", "-1", "99999999999"} {
		if id, err := ParseBrokerName(bad); err == nil {
			t.Errorf("broker %q gave %d", bad, id)
		}
	}
	if _, err := DecodeClusterID([]byte(`{"version":"1"}`)); err == nil {
		t.Error("a cluster id without id was taken")
	}
}

// Whatever lies in the tree, decoding neither fails hard nor gives what cannot be written back.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"partitions":{"0":[1,2]},"topic_id":"BA2QJN3rS-6739pBKUovXw","adding_replicas":{"0":[2]}}`))
	f.Add([]byte(`{"controller_epoch":1,"leader":-1,"leader_epoch":3,"isr":[3],"leader_recovery_state":1}`))
	f.Add([]byte(`{"endpoints":["A://[::1]:1"],"listener_security_protocol_map":{"A":"SSL"},"features":{"f":{}}}`))
	f.Add([]byte(`{"config":{"a":"b"}}`))
	f.Add([]byte(`{"block_start":"0","block_end":"9"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tp := P.TopicPartition{Topic: "t", Partition: 1}
		if v, err := DecodeTopic("t", data); err == nil {
			if _, err := DecodeTopic("t", EncodeTopic(v)); err != nil {
				t.Error(err)
			}
		}
		if v, ok := scanState(data); ok {
			if w, err := decodeState(tp, data); err != nil || !v.Equal(w) {
				t.Error(err, v, w)
			}
		}
		if v, err := DecodeState(tp, data); err == nil {
			if w, err := DecodeState(tp, EncodeState(v)); err != nil || !w.Equal(v) {
				t.Error(err, v, w)
			}
		}
		if v, err := DecodeRegistration(1, 2, data); err == nil {
			if _, err := DecodeRegistration(1, 2, EncodeRegistration(v)); err != nil {
				t.Error(err)
			}
		}
		if v, err := DecodeConfig("topics/t", data); err == nil {
			if w, err := DecodeConfig("topics/t", EncodeConfig(v)); err != nil || len(w) != len(v) {
				t.Error(err)
			}
		}
		_, _ = NextProducerIDBlock(data, 1)
		_, _ = DecodeController(data)
		_, _ = DecodeClusterID(data)
		_, _ = DecodeConfigChange(data)
	})
}

func TestDoubtfulMembers(t *testing.T) {
	s := State{Leader: -1, LeaderEpoch: 7, ISR: []P.BrokerID{1, 2}, Doubtful: []P.BrokerID{1}}
	back, err := DecodeState(P.TopicPartition{}, EncodeState(s))
	if err != nil || !back.Equal(s) {
		t.Error(err, back)
	}
}

func TestScanTakesWhatIsWritten(t *testing.T) {
	for _, s := range []State{
		{ControllerEpoch: 1, Leader: 1, LeaderEpoch: 7, ISR: []P.BrokerID{1, 2, 3}},
		{ControllerEpoch: 12, Leader: -1, LeaderEpoch: 0, ISR: []P.BrokerID{1}, Recovering: true},
		{ISR: []P.BrokerID{}},
	} {
		if got, ok := scanState(EncodeState(s)); !ok || !got.Equal(s) {
			t.Errorf("%+v became %+v", s, got)
		}
	}
}

func BenchmarkDecodeState(b *testing.B) {
	data := EncodeState(State{ControllerEpoch: 1, Leader: 1, LeaderEpoch: 7, ISR: []P.BrokerID{1, 2, 3}})
	tp := P.TopicPartition{Topic: "t", Partition: 1}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeState(tp, data); err != nil {
			b.Fatal(err)
		}
	}
}
