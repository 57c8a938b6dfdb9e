package broker_test

import (
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

// TestFullDisk fills the disk under a broker (BR-019): writes of all kinds are refused with errors that
// clients retry, reads go on, nothing is taken offline, and everything works again once there is space,
// without a restart. What was refused is not there later.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := vfs.NewMemory()
		s := &site{t: t, fs: disk, network: new(pipes), properties: map[string]string{"offsets.topic.num.partitions": "2"}}
		s.tolerates = []string{"no space left on device"}
		b := s.start()
		c := b.dial()
		id := c.create("orders", 1)
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

		disk.SetLimit(disk.Used())
		committed := int64(1)
		// What is left of the last page of each file takes some more.
		if code := fill(send); code != protocol.KafkaStorageError {
			t.Fatalf("producing to a full disk: %v", code)
		}
		if code := fill(func() protocol.Code {
			code := c.commit("group", "orders", 0, committed+1)
			if code == protocol.None {
				committed++
			}
			return code
		}); !code.Retriable() {
			t.Fatalf("committing on a full disk: %v", code)
		}
		retention := 1000000
		alter := func() protocol.Code {
			retention++
			return c.alter("orders", "retention.ms", strconv.Itoa(retention))
		}
		if code := fill(alter); !code.Retriable() {
			t.Fatalf("altering on a full disk: %v", code)
		}
		for range 3 {
			fullDisk(t, c, len(acked), committed, id)
			if send() != protocol.KafkaStorageError {
				t.Fatal("the disk is not full any more")
			}
			time.Sleep(time.Minute) // checkpoints fail, elections are tried
		}

		disk.SetLimit(0)
		if code := send(); code != protocol.None {
			t.Errorf("producing with space again: %v", code)
		}
		c.eventually("a commit", func() protocol.Code { return c.commit("group", "orders", 0, 1000) })
		c.eventually("a creation", func() protocol.Code { return c.tryCreate("later") })
		c.eventually("a property", func() protocol.Code { return c.alter("orders", "retention.ms", "8888") })
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
	for what, code := range map[string]protocol.Code{
		"commit":   c.commit("group", "orders", 0, committed+1),
		"creation": c.tryCreate("later"),
		"property": c.alter("orders", "retention.ms", "7777"),
		"deletion": c.deleteTopic("orders"),
	} {
		if !code.Retriable() {
			t.Errorf("a %s on a full disk: %v, want an error that clients retry", what, code)
		}
	}
	if got := c.committed("group", "orders", 0); got != committed {
		t.Errorf("offset %d is committed, want %d", got, committed)
	}
	q := kmsg.NewPtrMetadataRequest()
	q.Version = 12
	topics := ask[*kmsg.MetadataResponse](c, q).Topics
	if len(topics) != 2 || protocol.TopicID(topics[1].TopicID) != id || topics[1].Partitions[0].ErrorCode != 0 {
		t.Errorf("metadata on a full disk: %+v", topics)
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
