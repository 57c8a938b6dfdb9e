package group

import (
	"bytes"
	"log/slog"
	"os"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/shard"
)

// seedRecords adds the records that real brokers wrote.
func seedRecords(f *testing.F, add func(key, value []byte)) {
	for _, file := range []string{"2.8.2/0", "3.9.2/0", "3.9.2/3", "4.4.0/0", "4.4.0/2", "4.4.0/3"} {
		segment, err := os.ReadFile("testdata/golden/" + file + ".log")
		if err != nil {
			f.Fatal(err)
		}
		for entry, err := range record.Entries(segment) {
			if err != nil {
				f.Fatal(err)
			}
			for r, err := range entry.Records(nil) {
				if err != nil {
					f.Fatal(err)
				}
				if !entry.Control() {
					add(bytes.Clone(r.Key), bytes.Clone(r.Value))
				}
			}
		}
	}
}

// FuzzReplay gives records of any bytes to a machine: it must not crash, and stay consistent.
func FuzzReplay(f *testing.F) {
	seedRecords(f, func(key, value []byte) {
		f.Add(key, value, int64(-1))
		f.Add(key, value, int64(7))
	})
	f.Add([]byte{0, 1}, []byte{0, 9}, int64(-1))
	f.Fuzz(func(t *testing.T, key, value []byte, producer int64) {
		s := newStage(t)
		s.machine = NewMachine(DefaultConfig, slog.New(slog.DiscardHandler))
		r := shard.Replayed{Offset: 1, ProducerID: protocol.ProducerID(producer), Key: key, Value: value}
		if len(value) == 0 {
			r.Value = nil
		}
		s.machine.Replay(r)
		s.machine.Loaded(s.now())
		s.check()
		s.machine.EndTransaction(protocol.ProducerID(producer), true)
		for id := range s.machine.groups {
			s.machine.DescribeGroup(id, 6)
		}
		s.machine.ListGroups(nil, nil)
		r.Value = nil
		s.machine.Replay(r)
		s.check()
	})
}

// FuzzRecords holds what is read from a record, written again, and read once more to be the same.
func FuzzRecords(f *testing.F) {
	seedRecords(f, func(key, value []byte) { f.Add(key, value) })
	f.Fuzz(func(t *testing.T, key, value []byte) {
		switch kind, err := typeOf(key); {
		case err != nil:
		case kind == keyOffset || kind == keyOffsetLegacy:
			group, tp, err := offsetKeyOf(key)
			c, bad := committedOf(value, 3)
			if err != nil || bad != nil {
				return
			}
			again := offsetRecord(group, tp, c, true)
			group2, tp2, err := offsetKeyOf(again.Key)
			c2, bad := committedOf(again.Value, 3)
			if err != nil || bad != nil || group2 != group || tp2 != tp {
				t.Fatalf("%q %v written again: %q %v, %v, %v", group, tp, group2, tp2, err, bad)
			}
			if c.expireTime != noExpiry { // such records have neither an epoch nor an id
				c.leaderEpoch, c.topicID = noLeaderEpoch, [16]byte{}
			}
			if c2 != c {
				t.Fatalf("%+v written again: %+v", c, c2)
			}
		case kind == keyGroup:
			id, err := groupOf(key)
			v, bad := groupValueOf(value)
			if err != nil || bad != nil {
				return
			}
			again := classicFromRecord(&group{id: id}, v).record(nil)
			v2, err := groupValueOf(again.Value)
			if err != nil {
				t.Fatal(err)
			}
			if third := classicFromRecord(&group{id: id}, v2).record(nil); !bytes.Equal(third.Value, again.Value) {
				t.Fatalf("%x written again: %x", again.Value, third.Value)
			}
		}
	})
}

// FuzzSubscription reads subscriptions of any bytes.
func FuzzSubscription(f *testing.F) {
	f.Add(subscription("t1+t2"))
	f.Add([]byte{})
	f.Add([]byte{0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 1})
	f.Fuzz(func(t *testing.T, metadata []byte) {
		topics, ok := subscribedTopics(metadata)
		size := 0
		for _, topic := range topics {
			size += len(topic)
		}
		if !ok && topics != nil || size > len(metadata) {
			t.Errorf("%d bytes of topics in %d bytes, %t", size, len(metadata), ok)
		}
	})
}
