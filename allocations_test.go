//go:build !race

package barnabas_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas"
	"github.com/barnabas-mq/barnabas/test/raw"
)

// The budgets of one request on its whole way through a broker, in allocations. The race detector drops
// pooled objects, so these tests are no part of its build.
const (
	produceAllocations = 3
	fetchAllocations   = 1 // whatever the number of partitions
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

// hold fails where a request that has been prepared costs more than most allocations.
func hold(t *testing.T, c *raw.Conn, most float64) {
	t.Helper()
	allocations := testing.AllocsPerRun(1000, func() {
		if _, err := c.Do(); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > most {
		t.Errorf("%v allocations a request, at most %v are allowed", allocations, most)
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
	for _, version := range []int16{3, 9, 12, 13} {
		for _, count := range []int32{1, partitions} {
			topic.Partitions = count
			t.Run(fmt.Sprintf("version %d, %d partitions", version, count), func(t *testing.T) {
				c.Prepare(raw.Produce(topic, 1024), version)
				answer := decode(t, c, new(kmsg.ProduceResponse))
				if got := answer.Topics[0].Partitions; len(got) != int(count) || got[0].ErrorCode != 0 {
					t.Fatalf("%+v", got)
				}
				hold(t, c, produceAllocations)
			})
		}
	}
}

func TestFetchAllocations(t *testing.T) {
	const partitions, size = 8, 64 << 10
	c, topic := dial(t, partitions)
	c.Prepare(raw.Produce(topic, 1024), 12)
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
				hold(t, c, fetchAllocations)
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
				hold(t, c, fetchAllocations)
			})
		}
	}
}
