package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/test/process"
)

// batch is a batch with the records of one producer.
func batch(base protocol.Offset, epoch protocol.LeaderEpoch, ids ...identity) []byte {
	b := record.NewBuilder(record.BuilderOptions{BaseOffset: base, LeaderEpoch: epoch})
	for _, id := range ids {
		b.Append(1, nil, value(id))
	}
	return b.Build()
}

func TestCheckLogsFindsWhatIsWrong(t *testing.T) {
	ids := []identity{{1, 1}, {1, 2}, {2, 1}}
	whole := append(batch(0, 3, ids[0], ids[1]), batch(2, 4, ids[2])...)
	damaged := append([]byte(nil), whole...)
	damaged[len(damaged)-1]++
	for name, c := range map[string]struct {
		other []byte
		want  string
	}{
		"nothing is":      {whole, ""},
		"a short replica": {batch(0, 3, ids[0], ids[1]), "2 records, read were 3"},
		"another record":  {append(batch(0, 3, ids[0], identity{1, 3}), batch(2, 4, ids[2])...), "offset 1 holds"},
		"another epoch":   {append(batch(0, 3, ids[0], ids[1]), batch(2, 5, ids[2])...), "the batches at offset 2 differ"},
		"other batches":   {append(append(batch(0, 3, ids[0]), batch(1, 3, ids[1])...), batch(2, 4, ids[2])...), "the batches at offset 0 differ"},
		"damage":          {damaged, "damage in"},
		"an empty log":    {nil, "0 records, read were 3"},
	} {
		t.Run(name, func(t *testing.T) {
			var brokers []*broker
			for id, content := range [][]byte{whole, c.other} {
				b := &broker{id: id, Broker: process.Broker{Dir: t.TempDir()}}
				if err := os.MkdirAll(b.folder(one), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(b.folder(one), "00000000000000000000.log"), content, 0o644); err != nil {
					t.Fatal(err)
				}
				brokers = append(brokers, b)
			}
			_, err := checkLogs(brokers, map[topicPartition][]int32{one: {0, 1}}, map[topicPartition][]identity{one: ids})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestCheckLogsNeedsAllPartitions(t *testing.T) {
	_, err := checkLogs(nil, map[topicPartition][]int32{}, map[topicPartition][]identity{one: {{1, 1}}})
	if err == nil || !strings.Contains(err.Error(), "nobody says where orders-1 lies") {
		t.Errorf("got %v", err)
	}
}
