package quorum

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// state is about what a partition's state takes.
var state = []byte(`{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1]}`)

// BenchmarkSet writes one node, by some callers at a time, each write durable.
func BenchmarkSet(b *testing.B) {
	for _, callers := range []int{1, 16, 64, 256} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) {
			s := open(b, Options{FS: vfs.OS(), Dir: b.TempDir()})
			session := session(b, s)
			if err := create(session, "/n"); err != nil {
				b.Fatal(err)
			}
			b.SetParallelism(callers) // times the number of processors
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := session.Set(ctx, "/n", state, coordination.AnyVersion); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// load creates 100,000 partitions in transactions of 500 nodes.
func load(b *testing.B, dir string) *Store {
	s := open(b, Options{FS: vfs.OS(), Dir: dir})
	session := session(b, s)
	if err := coordination.EnsurePath(ctx, session, "/brokers/topics/t/partitions"); err != nil {
		b.Fatal(err)
	}
	ops := make([]coordination.Op, 0, 500)
	for partition := range 100_000 {
		path := fmt.Sprintf("/brokers/topics/t/partitions/%d", partition)
		ops = append(ops, coordination.Create(path, nil, coordination.CreateOptions{}),
			coordination.Create(path+"/state", state, coordination.CreateOptions{}))
		if len(ops) == cap(ops) {
			if _, err := session.Txn(ctx, ops...); err != nil {
				b.Fatal(err)
			}
			ops = ops[:0]
		}
	}
	return s
}

// BenchmarkLoad creates 100,000 partitions.
func BenchmarkLoad(b *testing.B) {
	for range b.N {
		if err := load(b, b.TempDir()).Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens a store of 100,000 partitions and its first session, from a snapshot.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := load(b, dir)
	if err := s.raft.Snapshot().Error(); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		s := open(b, Options{FS: vfs.OS(), Dir: dir})
		session(b, s)
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkGet reads a node five levels deep.
func BenchmarkGet(b *testing.B) {
	s := open(b, Options{FS: vfs.NewVolatile()})
	session := session(b, s)
	const path = "/brokers/topics/t/partitions/0"
	if err := coordination.EnsurePath(ctx, session, path); err != nil {
		b.Fatal(err)
	}
	var failures atomic.Int64
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := session.Get(ctx, path); err != nil {
			failures.Add(1)
		}
	}
	if failures.Load() > 0 {
		b.Fatal("some reads failed")
	}
}
