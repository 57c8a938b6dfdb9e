//go:build !race

package barnabas_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/test/raw"
)

// The budgets of one request on its whole way through a broker, in allocations, whatever the number of partitions. The
// race detector drops pooled objects, so these tests are no part of its build.
const (
	produceAllocations = 1
	fetchAllocations   = 0
	tailAllocations    = 2 // of a record to a consumer that waits: of the request to produce, and to wake who waits
	// growth is what writing the index entries of each MiB comes to for a batch of 1 KiB, and what the broker does beside the
	// requests, such as filling pools again after a collection.
	growth = 0.05
)

// longName is one for which the compiler has no room on the stack, as it has for 32 bytes.
const longName = "orders-of-all-customers-in-all-countries"

// dial connects to a broker on files that has a topic of some partitions.
func dial(t *testing.T, partitions int32) (*raw.Conn, raw.Topic) {
	t.Helper()
	b, err := barnabas.Start(t.Context(), barnabas.Options{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	c, err := raw.Dial(b.Address(), 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	topic, err := c.Create(longName, partitions)
	if err != nil {
		t.Fatal(err)
	}
	return c, topic
}

// warm requests are not counted, then requests are.
const warm, requests = 100, 1000

// hold fails where a request that has been prepared costs more than most allocations.
func hold(t *testing.T, c *raw.Conn, most float64) {
	t.Helper()
	holdEach(t, most, func() error {
		_, err := c.Do()
		return err
	})
}

// holdEach fails where one costs more than most allocations. It leaves the broker one processor, since what is pooled on
// another is sometimes out of reach.
func holdEach(t *testing.T, most float64, one func() error) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var before, after runtime.MemStats
	for i := range warm + requests {
		if i == warm {
			runtime.ReadMemStats(&before)
		}
		if err := one(); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if each := float64(after.Mallocs-before.Mallocs) / requests; each > most {
		t.Errorf("%v allocations a request, at most %v are allowed", each, most)
	}
}

// decode sends the prepared request once and reads its answer.
func decode[R kmsg.Response](t *testing.T, c *raw.Conn, response R) R {
	t.Helper()
	if err := c.Decode(response); err != nil {
		t.Fatal(err)
	}
	return response
}

func TestProduceAllocations(t *testing.T) {
	const partitions = 8
	c, topic := dial(t, partitions)
	id, err := c.ProducerID()
	if err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string]record.BuilderOptions{
		"plain":      {},
		"idempotent": {Idempotent: true, ProducerID: id},
		"lz4":        {Codec: record.Lz4},
		"zstd":       {Codec: record.Zstd},
	} {
		for _, version := range []int16{3, 9, 12, 13} {
			if version < 7 && options.Codec == record.Zstd {
				continue // zstd came with 7
			}
			for _, count := range []int32{1, partitions} {
				topic.Partitions = count
				if options.Idempotent {
					options.ProducerEpoch++ // sequences begin anew
				}
				t.Run(fmt.Sprintf("%s, version %d, %d partitions", name, version, count), func(t *testing.T) {
					c.Produce(raw.Produce(topic, 1024, options), version)
					first := decode(t, c, new(kmsg.ProduceResponse)).Topics[0].Partitions
					if len(first) != int(count) || first[0].ErrorCode != 0 {
						t.Fatalf("%d partitions, error %d", len(first), first[0].ErrorCode)
					}
					hold(t, c, produceAllocations+growth*float64(count))
					last := decode(t, c, new(kmsg.ProduceResponse)).Topics[0].Partitions[0]
					if last.ErrorCode != 0 || last.BaseOffset != first[0].BaseOffset+warm+requests+1 {
						t.Errorf("error %d, from offset %d to %d", last.ErrorCode, first[0].BaseOffset, last.BaseOffset)
					}
				})
			}
		}
	}
}

func TestFetchAllocations(t *testing.T) {
	const partitions, size = 8, 64 << 10
	c, topic := dial(t, partitions)
	c.Produce(raw.Produce(topic, 1024, record.BuilderOptions{}), 12)
	for range 200 {
		decode(t, c, new(kmsg.ProduceResponse))
	}
	for _, version := range []int16{4, 11, 12, 18} {
		for _, count := range []int32{1, partitions} {
			topic.Partitions = count
			t.Run(fmt.Sprintf("version %d, %d partitions", version, count), func(t *testing.T) {
				c.Prepare(raw.Fetch(topic, size), version)
				answer := decode(t, c, new(kmsg.FetchResponse))
				if found := answer.Topics[0].Partitions; len(found) != int(count) || len(found[0].RecordBatches) < size/2 {
					t.Fatalf("%d partitions, the first with %d bytes", len(found), len(found[0].RecordBatches))
				}
				hold(t, c, fetchAllocations+growth)
			})
			t.Run(fmt.Sprintf("version %d, %d partitions, session", version, count), func(t *testing.T) {
				if version < 7 {
					return // sessions came with 7
				}
				if err := c.Session(raw.Fetch(topic, size), version); err != nil {
					t.Fatal(err)
				}
				answer := decode(t, c, new(kmsg.FetchResponse))
				if answer.ErrorCode != 0 || len(answer.Topics) != 1 || len(answer.Topics[0].Partitions) != int(count) {
					t.Fatalf("%+v", answer)
				}
				hold(t, c, fetchAllocations+growth)
			})
		}
	}
}

// TestTailAllocations counts what a record costs that is produced while a consumer waits for it.
func TestTailAllocations(t *testing.T) {
	c, topic := dial(t, 1)
	consumer, err := raw.Dial(c.Address(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = consumer.Close() })
	if err := consumer.Tail(raw.Fetch(topic, 1<<20), 18); err != nil {
		t.Fatal(err)
	}
	c.Produce(raw.Produce(topic, 100, record.BuilderOptions{}), 12)
	holdEach(t, tailAllocations+growth, func() error {
		if err := consumer.Send(); err != nil {
			return err
		}
		if _, err := c.Do(); err != nil {
			return err
		}
		answer, err := consumer.Receive()
		if err == nil && len(answer) < 100 {
			err = fmt.Errorf("an answer of %d bytes, which has no record", len(answer))
		}
		return err
	})
}
