package main

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// special lists what takes more than one request, or a body that mutations do not find.
func special() []testCase {
	all := append(batches(), sequences()...)
	for _, version := range []int16{7, 12, 13, 18} {
		all = append(all, testCase{fmt.Sprintf("fetch session v%d", version), func(s *side, level detail) string {
			return fetchSession(s, version, level)
		}})
	}
	return all
}

// oddBatch is a batch that is wrong in one way, or only unusual.
//
// Positions in a batch, for the changes below:
//
//	 0  base offset      16  magic          23  last offset delta     43  producer id     57  record count
//	 8  length           17  CRC-32C        27  base timestamp        51  producer epoch  61  records
//	12  leader epoch     21  attributes     35  max timestamp         53  base sequence
type oddBatch struct {
	name  string
	bytes []byte
}

// changed is a batch of three records with something done to its bytes, and the CRC set right again.
func changed(name string, change func(b []byte)) oddBatch {
	return changedOf(name, batch(3, record.BuilderOptions{}), change)
}

func changedOf(name string, b []byte, change func(b []byte)) oddBatch {
	change(b)
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return oddBatch{name, b}
}

func oddBatches() []oddBatch {
	plain := func() []byte { return batch(3, record.BuilderOptions{}) }
	flipped := plain()
	flipped[len(flipped)-3] ^= 1
	now, day := time.Now().UnixMilli(), int64(24*time.Hour/time.Millisecond)
	all := []oddBatch{
		{"with a wrong crc", flipped},
		{"twice", append(plain(), plain()...)},
		{"cut short", plain()[:50]},
		{"of a header alone", plain()[:61]},
		{"and a byte", append(plain(), 0)},
		{"far in the future", batchAt(now+2*day, 3, record.BuilderOptions{})},
		{"far in the past", batchAt(now-20*365*day, 3, record.BuilderOptions{})},
		{"with a negative time", batchAt(-5, 3, record.BuilderOptions{})},
		{"without a time", batchAt(-1, 3, record.BuilderOptions{})},
		{"too large", batch(40_000, record.BuilderOptions{})},
		{"transactional", batch(3, record.BuilderOptions{Transactional: true, Idempotent: true, ProducerID: 5})},
		{"of control records", batch(1, record.BuilderOptions{Control: true, Idempotent: true, ProducerID: 5})},
		changedOf("zstd", batch(3, record.BuilderOptions{Codec: record.Zstd}), func([]byte) {}),
		changedOf("gzip, damaged", batch(30, record.BuilderOptions{Codec: record.Gzip}), func(b []byte) { b[70] ^= 0xff }),
	}
	return append(all, changedHeaders()...)
}

func changedHeaders() []oddBatch {
	return []oddBatch{
		changed("at a base offset", func(b []byte) { b[7] = 9 }),
		changed("that is longer than it says", func(b []byte) { b[11]-- }),
		changed("that is shorter than it says", func(b []byte) { b[11]++ }),
		changed("of length 0", func(b []byte) { copy(b[8:12], "\x00\x00\x00\x00") }),
		changed("of negative length", func(b []byte) { copy(b[8:12], "\xff\xff\xff\xff") }),
		changed("of magic 3", func(b []byte) { b[16] = 3 }),
		changed("of magic 1", func(b []byte) { b[16] = 1 }),
		changed("of magic 0", func(b []byte) { b[16] = 0 }),
		changed("of codec 5", func(b []byte) { b[22] = 5 }),
		changed("of codec 7", func(b []byte) { b[22] = 7 }),
		changed("that says gzip", func(b []byte) { b[22] = 1 }),
		changed("of log append time", func(b []byte) { b[22] = 8 }),
		changed("with a delete horizon", func(b []byte) { b[22] = 64 }),
		changed("with unused attributes", func(b []byte) { b[21], b[22] = 0x7f, 0x80 }),
		changed("with a last delta too small", func(b []byte) { b[26] = 1 }),
		changed("with a last delta too large", func(b []byte) { b[26] = 9 }),
		changed("with a negative last delta", func(b []byte) { copy(b[23:27], "\xff\xff\xff\xff") }),
		changed("of a wrong max timestamp", func(b []byte) { b[42] ^= 1 }),
		changed("with a count too small", func(b []byte) { b[60] = 2 }),
		changed("with a count too large", func(b []byte) { b[60] = 4 }),
		changed("with count 0", func(b []byte) { b[60] = 0 }),
		changed("with a negative count", func(b []byte) { copy(b[57:61], "\xff\xff\xff\xff") }),
		changed("with a producer id and no epoch", func(b []byte) { copy(b[43:51], "\x00\x00\x00\x00\x00\x00\x00\x09") }),
		changed("with a producer id and no sequence", func(b []byte) { copy(b[43:53], "\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00") }),
		changed("with a first record of a negative length", func(b []byte) { b[61] = 1 }),
		changed("with a first record that is too long", func(b []byte) { b[61] = 0x7e }),
		changed("with a first record at delta 1", func(b []byte) { b[64] = 2 }),
	}
}

func batches() []testCase {
	var all []testCase
	for _, version := range []int16{3, 7, 13} {
		for _, odd := range oddBatches() {
			all = append(all, testCase{fmt.Sprintf("Produce v%d a batch %s", version, odd.name), func(s *side, level detail) string {
				return once(s, s.produce(version, s.data, 1, odd.bytes), level)
			}})
		}
	}
	keyless := record.NewBuilder(record.BuilderOptions{})
	keyless.Append(time.Now().UnixMilli(), nil, []byte("value"))
	bytes := keyless.Build()
	return append(all,
		testCase{"Produce v9 a record without a key into a compacted topic", func(s *side, level detail) string {
			return once(s, s.produce(9, s.compact, 0, bytes), level)
		}},
		testCase{"Produce v9 a batch above max.message.bytes", func(s *side, level detail) string {
			return once(s, s.produce(9, s.small, 0, batch(100, record.BuilderOptions{})), level)
		}},
		testCase{"Produce v9 a transactional batch in a transactional request", func(s *side, level detail) string {
			q := s.produce(9, s.data, 1, batch(3, record.BuilderOptions{Transactional: true, Idempotent: true, ProducerID: 5}))
			id := "a-transaction"
			q.TransactionID = &id
			return once(s, q, level)
		}},
		testCase{"Produce v9 one good partition and one that there is not", func(s *side, level detail) string {
			q := s.produce(9, s.data, 1, batch(3, record.BuilderOptions{}))
			other := q.Topics[0].Partitions[0]
			other.Partition = 77
			q.Topics[0].Partitions = append(q.Topics[0].Partitions, other)
			return once(s, q, level)
		}},
		testCase{"Produce v9 acks 0, then something else", acksNone})
}

// acksNone shows whether a connection lives on after a request that wants no answer.
func acksNone(s *side, level detail) string {
	c, err := dial(s.address)
	if err != nil {
		return "no connection"
	}
	defer c.Close()
	q := s.produce(9, s.data, 1, batch(3, record.BuilderOptions{}))
	q.Acks = 0
	if _, err := c.Write(frame(q.Key(), q.Version, q.IsFlexible(), q.AppendTo(nil))); err != nil {
		return errClosed.Error()
	}
	response, err := c.request(&kmsg.ListGroupsRequest{})
	if err != nil {
		return err.Error()
	}
	return errorName(response.(*kmsg.ListGroupsResponse).ErrorCode)
}

// step is one batch of an idempotent producer.
type step struct {
	epoch    int16
	sequence int32
}

// sequences lists the orders in which an idempotent producer's batches of three records may come.
func sequences() []testCase {
	orders := map[string][]step{
		"in order":                    {{0, 0}, {0, 3}, {0, 6}},
		"repeated":                    {{0, 0}, {0, 0}, {0, 3}, {0, 3}, {0, 0}},
		"with a gap":                  {{0, 0}, {0, 4}},
		"that overlaps":               {{0, 0}, {0, 2}},
		"not from zero":               {{0, 5}, {0, 8}},
		"of a new epoch":              {{0, 0}, {1, 0}, {1, 3}},
		"of a new epoch not at zero":  {{0, 0}, {1, 3}},
		"of an old epoch":             {{1, 0}, {0, 3}},
		"of a repeat long ago":        {{0, 0}, {0, 3}, {0, 6}, {0, 9}, {0, 12}, {0, 15}, {0, 0}},
		"that wraps":                  {{0, 1<<31 - 3}, {0, 0}},
		"of a negative epoch":         {{-2, 0}},
		"of a negative sequence":      {{0, -2}},
		"of a large epoch and repeat": {{32767, 0}, {32767, 0}},
	}
	var all []testCase
	for name, steps := range orders {
		all = append(all, testCase{"idempotent batches " + name, func(s *side, level detail) string {
			return produceSteps(s, steps, level)
		}})
	}
	return all
}

func produceSteps(s *side, steps []step, level detail) string {
	given, err := ask[*kmsg.InitProducerIDResponse](s, &kmsg.InitProducerIDRequest{Version: 1})
	if err != nil {
		return err.Error()
	}
	var answers []string
	for _, at := range steps {
		b := batch(3, record.BuilderOptions{Idempotent: true, ProducerID: protocol.ProducerID(given.ProducerID), ProducerEpoch: protocol.ProducerEpoch(at.epoch), BaseSequence: at.sequence})
		answers = append(answers, once(s, s.produce(9, s.data, 1, b), level))
	}
	return strings.Join(answers, " ")
}

// fetchSession walks a session through its right and its wrong turns, on one connection.
func fetchSession(s *side, version int16, level detail) string {
	c, err := dial(s.address)
	if err != nil {
		return "no connection"
	}
	defer c.Close()
	var answers []string
	ask := func(session, epoch int32, change func(*kmsg.FetchRequest)) *kmsg.FetchResponse {
		q := s.fetch(version, session, epoch)
		change(q)
		response, err := c.request(q)
		answers = append(answers, outcome(response, err, level))
		if err != nil {
			return kmsg.NewPtrFetchResponse()
		}
		return response.(*kmsg.FetchResponse)
	}
	same := func(*kmsg.FetchRequest) {}
	none := func(q *kmsg.FetchRequest) { q.Topics = nil }
	id := ask(0, 0, same).SessionID
	ask(id, 1, none)
	ask(id, 2, same)
	ask(id, 2, none)
	ask(id, 3, func(q *kmsg.FetchRequest) { q.Topics[0].Partitions[0].Partition = 9 })
	ask(id, 4, none)
	ask(id, 5, func(q *kmsg.FetchRequest) { q.Topics[0].Topic, q.Topics[0].TopicID = "missing", [16]byte{9} })
	ask(id, 6, func(q *kmsg.FetchRequest) {
		q.ForgottenTopics = []kmsg.FetchRequestForgottenTopic{{Topic: s.data, TopicID: s.ids[s.data], Partitions: []int32{0, 9}}}
		q.Topics = nil
	})
	ask(id, 7, func(q *kmsg.FetchRequest) { q.Topics[0].Partitions[0].FetchOffset = 1000 })
	ask(id, 70, same)
	ask(id, 0, none)
	ask(id, 8, same)
	id = ask(0, 0, same).SessionID
	ask(id, -1, none)
	ask(id, 1, same)
	ask(12345, 1, same)
	ask(12345, -1, same)
	ask(0, 1, same)
	ask(0, -2, same)
	ask(0, 0, none)
	return strings.Join(answers, " ")
}
