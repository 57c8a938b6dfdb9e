package broker_test

import (
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// alterBroker sets a property of all brokers, or removes it where value is nil.
func (c *conn) alterBroker(key string, value *string) protocol.Code {
	c.t.Helper()
	q := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType = kmsg.ConfigResourceTypeBroker
	change := kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: key, Value: value}
	if value == nil {
		change.Op = kmsg.IncrementalAlterConfigOpDelete
	}
	r.Configs = append(r.Configs, change)
	q.Resources = append(q.Resources, r)
	return protocol.Code(ask[*kmsg.IncrementalAlterConfigsResponse](c, q).Resources[0].ErrorCode)
}

// A dynamic property of the broker is the default of its topics, and in force when the change is answered.
func TestDynamicPropertyReachesTopics(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory()}
	b := s.start()
	c := b.dial()
	c.create("orders", 1)
	c.create("large", 1, "max.message.bytes", "1000000")
	records := batch(record.BuilderOptions{}, strings.Repeat("x", 500))
	produce := func(topic string, want protocol.Code) {
		t.Helper()
		if code := protocol.Code(c.produce(topic, 0, append([]byte(nil), records...)).ErrorCode); code != want {
			t.Errorf("500 bytes to %s: %v, want %v", topic, code.Name(), want.Name())
		}
	}
	produce("orders", protocol.None)
	limit := "100"
	if code := c.alterBroker("message.max.bytes", &limit); code != protocol.None {
		t.Fatal(code)
	}
	produce("orders", protocol.MessageTooLarge)
	produce("large", protocol.None) // what is set on the topic itself counts more
	b.stop()
	b = s.start()
	c = b.dial()
	produce("orders", protocol.MessageTooLarge)
	if code := c.alterBroker("message.max.bytes", nil); code != protocol.None {
		t.Fatal(code)
	}
	produce("orders", protocol.None)
}

func TestDynamicPropertyReachesTheServer(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory(), memory: true}
	b := s.start()
	c := b.dial()
	b.dial().alive()
	limit := "1"
	if code := c.alterBroker("max.connections.per.ip", &limit); code != protocol.None {
		t.Fatal(code)
	}
	b.dial().closed("a connection above the limit")
	c.alive()
	if code := c.alterBroker("max.connections.per.ip", nil); code != protocol.None {
		t.Fatal(code)
	}
	b.dial().alive()
}

// Without its store a broker cannot go on: it stops by itself, says why, and gives everything back.
func TestBrokerStopsWhenItsStoreFails(t *testing.T) {
	memory := vfs.NewMemory()
	disk := vfs.NewFaulty(memory)
	s := &site{t: t, fs: disk, forgives: true}
	b := s.start()
	c := b.dial()
	disk.Inject(vfs.Fault{Path: ".barnabas-meta.log.*", Op: vfs.OpSync, Err: syscall.EIO})
	q := kmsg.NewPtrCreateTopicsRequest()
	q.Version, q.TimeoutMillis = 5, 1000
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "orders", 1, 1
	q.Topics = append(q.Topics, topic)
	c.send(q)
	<-b.Done()
	if err := b.Err(); err == nil || !strings.Contains(err.Error(), "/data") {
		t.Errorf("the broker stopped because of %v, want an error that names the directory", err)
	}
	disk.Heal()
	s.start().dial().create("another", 1) // "orders" may have come into being
}
