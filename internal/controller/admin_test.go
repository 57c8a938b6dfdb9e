package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/memory"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// One bad topic does not keep the others from being made, and duplicates are refused, both of them.
func TestEachTopicForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		create(t, one.controller, simple("existing", 1, 1))
		bad := simple("bad", 1, 1)
		value := "x"
		bad.Configs = map[string]*string{"retention.ms": &value}
		topics := []NewTopic{simple("good", 1, 1), bad, simple("existing", 1, 1), simple("twice", 1, 1), simple("twice", 2, 1), simple("good2", 1, 1)}
		want := []P.Code{P.None, P.InvalidConfig, P.TopicAlreadyExists, P.InvalidRequest, P.InvalidRequest, P.None}
		before := c.store.Tree().Zxid()
		for i, r := range one.controller.CreateTopics(t.Context(), topics, true) {
			if P.CodeOf(r.Err) != want[i] || !r.ID.IsZero() || r.Err == nil && (r.Partitions != 1 || r.ReplicationFactor != 1) {
				t.Errorf("validate only: %+v", r)
			}
		}
		if c.store.Tree().Zxid() != before {
			t.Error("validate only has written something")
		}
		for i, r := range one.controller.CreateTopics(t.Context(), topics, false) {
			if P.CodeOf(r.Err) != want[i] || (r.Err == nil) == r.ID.IsZero() {
				t.Errorf("%+v", r)
			}
		}
		if got := fmt.Sprint(c.children("/brokers/topics")); got != "[existing good good2]" {
			t.Error(got)
		}
	})
}

// A client whose time was up when it asked hears that, however quick the controller was, and finds the topic
// all the same (BR-063).
func TestTimeIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r := one.controller.CreateTopics(ctx, []NewTopic{simple("t", 100, 1)}, false)[0]; !errors.Is(r.Err, context.Canceled) {
			t.Error(r.Err)
		}
		synctest.Wait()
		for range 50 {
			if r := one.controller.CreatePartitions(ctx, []Growth{{Topic: "t", Count: 101}}, true)[0]; !errors.Is(r.Err, context.Canceled) {
				t.Fatal(r.Err)
			}
		}
		r := one.controller.CreateTopics(t.Context(), []NewTopic{simple("t", 100, 1)}, false)[0]
		if P.CodeOf(r.Err) != P.TopicAlreadyExists {
			t.Error(r.Err)
		}
	})
}

func TestDeleteAndCreateAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		old := create(t, one.controller, simple("t", 1, 1), simple("u", 1, 1))
		one.told()
		results := one.controller.DeleteTopics(t.Context(), []TopicRef{{Name: "t"}, {ID: old[1].ID}, {Name: "no"}, {ID: P.TopicID{1}}})
		for i, want := range []P.Code{P.None, P.None, P.UnknownTopicOrPartition, P.UnknownTopicID} {
			if P.CodeOf(results[i].Err) != want {
				t.Errorf("%+v", results[i])
			}
		}
		if results[0].ID != old[0].ID || results[1].Name != "u" {
			t.Errorf("%+v", results)
		}
		for _, path := range []string{"/brokers/topics/t", "/config/topics/t", "/admin/delete_topics/t", "/config/topics/u"} {
			if _, ok := c.data(path); ok {
				t.Errorf("%s is still there", path)
			}
		}
		if got := one.told(); !strings.HasPrefix(got, "alive [1]\nshow t-0 leader -2 epoch 0 isr [1] version 0") ||
			!strings.Contains(got, "stop t-0 epoch -2 delete false") || !strings.HasSuffix(got, "delete true") {
			t.Errorf("the broker heard:\n%s", got)
		}
		fresh := create(t, one.controller, simple("t", 1, 1))[0]
		if fresh.ID == old[0].ID {
			t.Error("the new topic has the old id")
		}
		expect(t, "the new topic", one.told(), "lead t-0 leader 1 epoch 0 isr [1] version 0", "alive [1]", "show t-0 leader 1 epoch 0 isr [1] version 0")
	})
}

// A dead replica holds the end of a deletion back, across a change of controllers, until it returns.
func TestDeletionWaitsForADeadReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		two := c.start(2, false, znode.StopNever)
		create(t, one.controller, simple("t", 1, 2), simple("void", 1, 1))
		two.stop()
		if r := one.controller.DeleteTopics(t.Context(), []TopicRef{{Name: "t"}})[0]; r.Err != nil {
			t.Error(r.Err)
		}
		if r := one.controller.CreateTopics(t.Context(), []NewTopic{simple("t", 1, 1)}, false)[0]; P.CodeOf(r.Err) != P.TopicAlreadyExists {
			t.Error("the topic was made again too early:", r.Err)
		}
		one.stop()
		one = c.start(1, true, znode.StopKilled)
		if got := one.told(); strings.Contains(got, "lead t-0") || !strings.Contains(got, "stop t-0 epoch -2 delete true") {
			t.Errorf("the new controller said:\n%s", got)
		}
		if _, ok := c.data("/brokers/topics/t"); !ok {
			t.Error("the topic went with a replica left")
		}
		two = c.start(2, false, znode.StopClean)
		if got := two.told(); strings.Contains(got, "t-0 leader") || !strings.Contains(got, "stop t-0 epoch -2 delete true") {
			t.Errorf("the returned broker heard:\n%s", got)
		}
		if _, ok := c.data("/brokers/topics/t"); ok {
			t.Error("the topic is still there")
		}
		if len(c.children("/admin/delete_topics")) != 0 {
			t.Error("the request is still there")
		}
	})
}

func TestDeletionIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		create(t, one.controller, simple("t", 1, 1))
		one.mu.Lock()
		one.answers[5] = P.KafkaStorageError
		one.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r := one.controller.DeleteTopics(ctx, []TopicRef{{Name: "t"}})[0]; P.CodeOf(r.Err) != P.RequestTimedOut {
			t.Error(r.Err)
		}
		one.mu.Lock()
		one.answers[5] = P.None
		one.mu.Unlock()
		<-time.After(2 * repeatDeletion)
		if _, ok := c.data("/brokers/topics/t"); ok {
			t.Error("the topic is still there")
		}
	})
}

// Requests by other programs: for a topic, and for none.
func TestForeignDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		create(t, one.controller, simple("t", 3, 1))
		s := c.open()
		for _, name := range []string{"t", "none"} {
			if _, _, err := s.Create(t.Context(), "/admin/delete_topics/"+name, nil, coordination.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if left := append(c.children("/admin/delete_topics"), c.children("/brokers/topics")...); len(left) > 0 {
			t.Error(left)
		}
	})
}

func TestCreatePartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		r := create(t, one.controller, simple("t", 1, 1), simple("u", 1, 1))
		one.told()
		growths := []Growth{{Topic: "t", Count: 3}, {Topic: "t", Count: 4}, {Topic: "u", Count: 2}, {Topic: "x", Count: 2}}
		want := []P.Code{P.InvalidRequest, P.InvalidRequest, P.None, P.UnknownTopicOrPartition}
		for i, g := range one.controller.CreatePartitions(t.Context(), growths, false) {
			if P.CodeOf(g.Err) != want[i] {
				t.Errorf("%+v", g)
			}
		}
		expect(t, "one partition more", one.told(), "lead u-1 leader 1 epoch 0 isr [1] version 0", "alive [1]", "show u-1 leader 1 epoch 0 isr [1] version 0")
		if g := one.controller.CreatePartitions(t.Context(), []Growth{{Topic: "t", Count: 700}}, true)[0]; g.Err != nil {
			t.Error(g.Err)
		}
		if g := one.controller.CreatePartitions(t.Context(), []Growth{{Topic: "t", Count: 700}}, false)[0]; g.Err != nil {
			t.Error(g.Err)
		}
		topic := one.controller.Image().Topic("t")
		if len(topic.Partitions) != 700 || topic.ID != r[0].ID || topic.Partitions[699].Leader != 1 {
			t.Errorf("%d partitions", len(topic.Partitions))
		}
	})
}

func text1(s string) *string { return &s }

func TestAlterConfigs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		create(t, one.controller, simple("t", 1, 1))
		set := func(entity metadata.Entity, name, value string) ConfigChange {
			return ConfigChange{Entity: entity, Ops: []config.Op{{Name: name, Value: &value}}}
		}
		changes := []ConfigChange{
			set("topics/t", "retention.ms", "5"), set("topics/none", "retention.ms", "5"), set("brokers/<default>", "message.max.bytes", "2000"),
			set("brokers/x", "message.max.bytes", "1"), set("groups/g", "consumer.session.timeout.ms", "46000"), set("users/u", "a", "b"),
		}
		want := []P.Code{P.None, P.UnknownTopicOrPartition, P.None, P.InvalidRequest, P.None, P.InvalidRequest}
		before := c.store.Tree().Zxid()
		for i, err := range one.controller.AlterConfigs(t.Context(), changes, true) {
			if P.CodeOf(err) != want[i] {
				t.Errorf("validate only %s: %v", changes[i].Entity, err)
			}
		}
		if c.store.Tree().Zxid() != before {
			t.Error("validate only has written something")
		}
		for i, err := range one.controller.AlterConfigs(t.Context(), changes, false) {
			if P.CodeOf(err) != want[i] {
				t.Errorf("%s: %v", changes[i].Entity, err)
			}
		}
		for path, want := range map[string]string{
			"/config/topics/t":                         `{"version":1,"config":{"retention.ms":"5"}}`,
			"/config/brokers/<default>":                `{"version":1,"config":{"message.max.bytes":"2000"}}`,
			"/config/groups/g":                         `{"version":1,"config":{"consumer.session.timeout.ms":"46000"}}`,
			"/config/changes/config_change_0000000000": `{"version":2,"entity_path":"topics/t"}`,
			"/config/changes/config_change_0000000001": `{"version":2,"entity_path":"brokers/<default>"}`,
		} {
			if got, _ := c.data(path); got != want {
				t.Errorf("%s holds %s, want %s", path, got, want)
			}
		}
		list := func(kind config.OpKind, value string) error {
			return one.controller.AlterConfigs(t.Context(), []ConfigChange{{Entity: "topics/t", Ops: []config.Op{{Name: "cleanup.policy", Kind: kind, Value: text1(value)}}}}, false)[0]
		}
		if err := errors.Join(list(config.OpAppend, "compact"), list(config.OpAppend, "compact"), list(config.OpSubtract, "delete")); err != nil {
			t.Error(err)
		}
		if got, _ := c.data("/config/topics/t"); got != `{"version":1,"config":{"cleanup.policy":"compact","retention.ms":"5"}}` {
			t.Error(got)
		}
		replace := ConfigChange{Entity: "topics/t", Replace: true, Ops: []config.Op{{Name: "retention.bytes", Value: text1("7")}}}
		if errs := one.controller.AlterConfigs(t.Context(), []ConfigChange{replace, replace}, false); P.CodeOf(errs[0]) != P.InvalidRequest || P.CodeOf(errs[1]) != P.InvalidRequest {
			t.Error(errs)
		}
		if err := one.controller.AlterConfigs(t.Context(), []ConfigChange{replace}, false)[0]; err != nil {
			t.Error(err)
		}
		if got, _ := c.data("/config/topics/t"); got != `{"version":1,"config":{"retention.bytes":"7"}}` {
			t.Error(got)
		}
	})
}

// Many at once change different keys of one topic: none is lost.
func TestConfigChangesDoNotOverwriteEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		create(t, one.controller, simple("t", 1, 1))
		c.store.Inject(func(memory.Operation) memory.Fault { return memory.Fault{Delay: time.Millisecond} })
		keys := []string{"retention.ms", "retention.bytes", "segment.ms", "flush.ms", "delete.retention.ms", "file.delete.delay.ms"}
		var wait sync.WaitGroup
		for _, key := range keys {
			wait.Go(func() {
				change := ConfigChange{Entity: "topics/t", Ops: []config.Op{{Name: key, Value: text1("9")}}}
				if err := one.controller.AlterConfigs(t.Context(), []ConfigChange{change}, false)[0]; err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		c.store.Inject(nil)
		got, _ := c.data("/config/topics/t")
		for _, key := range keys {
			if !strings.Contains(got, `"`+key+`":"9"`) {
				t.Errorf("%s is lost: %s", key, got)
			}
		}
	})
}

func TestOldConfigChangesArePurged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		create(t, one.controller, simple("t", 1, 1))
		for i := range 5 {
			change := ConfigChange{Entity: "topics/t", Ops: []config.Op{{Name: "retention.ms", Value: text1(fmt.Sprint(i + 1))}}}
			if err := one.controller.AlterConfigs(t.Context(), []ConfigChange{change}, false)[0]; err != nil {
				t.Fatal(err)
			}
			<-time.After(6 * time.Minute)
		}
		if got := fmt.Sprint(c.children("/config/changes")); got != "[config_change_0000000002 config_change_0000000003 config_change_0000000004]" {
			t.Error(got)
		}
	})
}

func TestProducerIDsAreNeverGivenTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		one := c.start(1, true, znode.StopNever)
		n := 0
		var mu sync.Mutex
		c.store.Inject(func(o memory.Operation) memory.Fault {
			mu.Lock()
			defer mu.Unlock()
			n++
			if o.Name == "txn" && n%3 == 0 {
				return memory.Fault{Outcome: memory.AnswerLost}
			}
			return memory.Fault{Delay: time.Millisecond}
		})
		seen := map[P.ProducerID]bool{}
		var wait sync.WaitGroup
		for range 20 {
			wait.Go(func() {
				first, count, err := one.controller.AllocateProducerIDs(t.Context(), 1)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil && P.CodeOf(err) != P.RequestTimedOut:
					t.Error(err)
				case err == nil && (count != 1000 || first%1000 != 0 || seen[first]):
					t.Errorf("block %d of %d", first, count)
				case err == nil:
					seen[first] = true
				}
			})
		}
		wait.Wait()
		if len(seen) == 0 {
			t.Error("nobody got a block")
		}
	})
}
