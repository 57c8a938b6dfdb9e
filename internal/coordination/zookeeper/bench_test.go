package zookeeper

import (
	"fmt"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/coordination"
)

// BenchmarkReadStates reads the states of 100,000 partitions, as a controller does when it is elected.
func BenchmarkReadStates(b *testing.B) {
	const topics, partitions = 100, 1000
	s := openSession(b, storeOn(nil, server(b).Address), 0)
	state := []byte(`{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2,3]}`)
	if err := coordination.EnsurePath(bounded(b), s, "/bench"); err != nil {
		b.Fatal(err)
	}
	var paths []string
	for t := range topics {
		ops := []coordination.Op{coordination.Create(fmt.Sprintf("/bench/t%d", t), nil, coordination.CreateOptions{})}
		for p := range partitions {
			path := fmt.Sprintf("/bench/t%d/%d", t, p)
			paths = append(paths, path)
			ops = append(ops, coordination.Create(path, state, coordination.CreateOptions{}))
		}
		if _, err := s.Txn(bounded(b), ops...); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for b.Loop() {
		results, err := s.GetMany(bounded(b), paths)
		if err != nil || len(results) != topics*partitions || results[len(results)-1].Err != nil {
			b.Fatal(err)
		}
	}
}
