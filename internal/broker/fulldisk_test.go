package broker_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// TestFullDisk fills the disk under a broker (BR-019): records and offsets are refused with errors that clients
// retry, reads go on, nothing is taken offline, and everything works again once there is space, without a
// restart. What was refused is not there later. Metadata has a reserve, lest nobody could make room by deleting.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMemory()
		s := &site{t: t, fs: disk, network: new(pipes), properties: map[string]string{"offsets.topic.num.partitions": "2"}}
		s.tolerates = []string{"no space left on device"}
		b := s.start()
		c := b.dial()
		id := c.create("orders", 1)
		for i := range 3 {
			c.create(fmt.Sprint("doomed-", i), 1)
		}
		c.warm("group")
		producer := sentBatch{producer: c.newProducer()}
		var acked []string
		send := func() protocol.Code {
			producer.values = []string{strings.Repeat("x", 1000) + time.Now().String()}
			answer := c.produce("orders", 0, producer.bytes())
			if answer.ErrorCode == 0 {
				acked = append(acked, producer.values[0])
				producer.sequence++
			}
			return protocol.Code(answer.ErrorCode)
		}
		if code := send(); code != protocol.None {
			t.Fatal(code)
		}
		if code := c.commit("group", "orders", 0, 1); code != protocol.None {
			t.Fatal(code)
		}

		committed := int64(1)
		commit := func() protocol.Code {
			code := c.commit("group", "orders", 0, committed+1)
			if code == protocol.None {
				committed++
			}
			return code
		}
		for i := range 3 {
			disk.SetLimit(disk.Used())
			// What is left of the last page of each file takes some more.
			if code := fill(send); code != protocol.KafkaStorageError {
				t.Fatalf("producing to a full disk: %v", code)
			}
			if code := fill(commit); !code.Retriable() {
				t.Fatalf("committing on a full disk: %v, want an error that clients retry", code)
			}
			fullDisk(t, c, len(acked), committed, id)
			if code := c.deleteTopic(fmt.Sprint("doomed-", i)); code != protocol.None {
				t.Errorf("deleting a topic: %v", code)
			}
			time.Sleep(2 * time.Minute) // checkpoints fail, elections are tried, deleted files make room
		}

		disk.SetLimit(0)
		if code := send(); code != protocol.None {
			t.Errorf("producing with space again: %v", code)
		}
		c.eventually("a commit", func() protocol.Code { return c.commit("group", "orders", 0, 1000) })
		c.eventually("producing to the topic that had no log", func() protocol.Code {
			return protocol.Code(c.produce("later", 0, batch(record.BuilderOptions{}, "x")).ErrorCode)
		})
		c.eventually("a property", func() protocol.Code { return c.alter("orders", "retention.ms", "8888888") })
		checkValues(t, c, "orders", acked[1:])

		clone := disk.CrashClone(rand.New(rand.NewPCG(1, 1)), 1)
		b.stop()
		for name, fs := range map[string]*vfs.Memory{"stopped": disk, "killed": clone} {
			again := *s
			again.fs = fs
			b := again.start()
			c := b.dial()
			// Deleted records may be back after a kill: the start of a log is written down once a minute.
			checkValues(t, c, "orders", acked[c.offset("orders", 0, -2):])
			if got := c.committed("group", "orders", 0); got != 1000 {
				t.Errorf("%s: offset %d is committed, want 1000", name, got)
			}
			b.stop()
		}
	})
}

// fill writes until that fails.
func fill(write func() protocol.Code) protocol.Code {
	for range 200 {
		if code := write(); code != protocol.None {
			return code
		}
	}
	return protocol.None
}

// fullDisk tries everything on a broker whose disk is full.
func fullDisk(t *testing.T, c *conn, records int, committed int64, id protocol.TopicID) {
	t.Helper()
	if code := c.deleteRecords("orders", 0, 1); code != protocol.None {
		t.Errorf("deleting records: %v", code)
	}
	if got := len(c.readAll("orders", 0)) + 1; got != records {
		t.Errorf("%d records can be read, want %d", got, records)
	}
	large := batch(record.BuilderOptions{}, strings.Repeat("large", 100_000))
	if code := protocol.Code(c.produce("orders", 0, large).ErrorCode); code != protocol.KafkaStorageError {
		t.Errorf("producing much: %v", code)
	}
	if code := c.alter("orders", "retention.ms", "7777777"); code != protocol.None {
		t.Errorf("altering a property: %v", code)
	}
	if code := c.tryCreate("later"); code != protocol.None && code != protocol.TopicAlreadyExists {
		t.Errorf("creating a topic: %v", code)
	}
	if code := protocol.Code(c.produce("later", 0, batch(record.BuilderOptions{}, "x")).ErrorCode); code != protocol.KafkaStorageError {
		t.Errorf("producing to a topic without a log: %v", code)
	}
	if got := c.committed("group", "orders", 0); got != committed {
		t.Errorf("offset %d is committed, want %d", got, committed)
	}
	q := kmsg.NewPtrMetadataRequest()
	q.Version, q.Topics = 12, []kmsg.MetadataRequestTopic{{Topic: new("orders")}}
	topic := ask[*kmsg.MetadataResponse](c, q).Topics[0]
	if topic.ErrorCode != 0 || protocol.TopicID(topic.TopicID) != id || topic.Partitions[0].ErrorCode != 0 {
		t.Errorf("metadata on a full disk: %+v", topic)
	}
	dirs := ask[*kmsg.DescribeLogDirsResponse](c, &kmsg.DescribeLogDirsRequest{Version: 4})
	if dirs.Dirs[0].ErrorCode != 0 || dirs.Dirs[0].UsableBytes != 0 {
		t.Errorf("log directories on a full disk: %+v", dirs.Dirs)
	}
}

// checkValues compares all values of partition 0 of a topic.
func checkValues(t *testing.T, c *conn, topic string, want []string) {
	t.Helper()
	got := c.readAll(topic, 0)
	if len(got) != len(want) {
		t.Errorf("%d records, want %d", len(got), len(want))
		return
	}
	for i, r := range got {
		if r.value != want[i] || r.offset != got[0].offset+int64(i) {
			t.Errorf("record %d: %.40q at %d, want %.40q", i, r.value, r.offset, want[i])
		}
	}
}

// TestTopicMadeOnAFullDisk makes a topic whose log finds no space, or no descriptor: whatever the creation is
// answered with, the topic works once that has passed.
func TestTopicMadeOnAFullDisk(t *testing.T) {
	for _, passing := range []syscall.Errno{syscall.ENOSPC, syscall.EMFILE} {
		t.Run(passing.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := vfs.NewFaulty(vfs.NewMemory())
				s := &site{t: t, fs: disk, network: new(pipes), memory: true, tolerates: []string{passing.Error()}}
				c := s.start().dial()
				disk.Inject(vfs.Fault{Path: "/data/orders-0", Err: passing})
				first := c.tryCreate("orders")
				time.Sleep(time.Minute)
				disk.Heal()
				if first != protocol.None {
					c.eventually("a creation", func() protocol.Code {
						code := c.tryCreate("orders")
						if code == protocol.TopicAlreadyExists {
							return protocol.None
						}
						return code
					})
				}
				c.eventually("producing", func() protocol.Code {
					return protocol.Code(c.produce("orders", 0, batch(record.BuilderOptions{}, "a")).ErrorCode)
				})
			})
		})
	}
}

// TestStartOnAFullDisk starts brokers, stopped and killed, on a disk without a byte of room: they serve what
// they have, and go on once there is space.
func TestStartOnAFullDisk(t *testing.T) {
	for _, how := range ends {
		t.Run(how.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := vfs.NewMemory()
				s := &site{t: t, fs: disk, network: new(pipes), forgives: true, properties: map[string]string{"offsets.topic.num.partitions": "1"}}
				b := s.start()
				c := b.dial()
				c.create("orders", 1)
				c.warm("group")
				c.commit("group", "orders", 0, 1)
				var acked []string
				send := func() protocol.Code {
					value := strings.Repeat("x", 1000) + strconv.Itoa(len(acked))
					code := protocol.Code(c.produce("orders", 0, batch(record.BuilderOptions{}, value)).ErrorCode)
					if code == protocol.None {
						acked = append(acked, value)
					}
					return code
				}
				send()
				disk.SetLimit(disk.Used())
				fill(send)
				n := 1_000_000
				fill(func() protocol.Code { n++; return c.alter("orders", "retention.ms", strconv.Itoa(n)) })
				how.end(b)
				disk.SetLimit(disk.Used())
				b, err := s.try()
				if err != nil {
					t.Fatalf("a start on a full disk: %v", err)
				}
				c = b.dial()
				checkValues(t, c, "orders", acked)
				if got := c.committed("group", "orders", 0); got != 1 {
					t.Errorf("offset %d is committed", got)
				}
				if code := fill(send); code != protocol.KafkaStorageError {
					t.Errorf("producing: %v", code)
				}
				disk.SetLimit(0)
				c.eventually("producing", send)
				c.eventually("a commit", func() protocol.Code { return c.commit("group", "orders", 0, 2) })
				checkValues(t, c, "orders", acked)
			})
		})
	}
}
