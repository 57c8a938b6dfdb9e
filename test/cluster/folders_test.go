package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/test/process"
)

func TestHoldsOnlyFindsWhatIsWrong(t *testing.T) {
	const unique = ".5f0c2a6b1d8e4f97a3b0c1d2e3f40516"
	replicas := map[topicPartition][]int32{
		one:                          {1, 0},
		{"two.dots-and-dashes", 0}:   {1, 2},
		{"elsewhere", 3}:             {0, 2},
		{"__consumer_offsets", 1}:    {0, 1, 2},
		{"__consumer_offsets", 2}:    {0, 1, 2},
		{"deleted-and-made-anew", 0}: {1},
	}
	whole := []string{
		"orders-1", "two.dots-and-dashes-0", "__consumer_offsets-2", "deleted-and-made-anew-0",
		"deleted-and-made-anew-0" + unique + "-delete", "elsewhere-3" + unique + "-delete", "lost+found",
	}
	for name, c := range map[string]struct {
		without, more, want string
	}{
		"nothing is":           {},
		"a replica is missing": {without: "orders-1", want: "broker 1 has no log of orders-1, whose replicas are on [1 0]"},
		"one was moved away":   {more: "elsewhere-3", want: "broker 1 has elsewhere-3, whose replicas are on [0 2]"},
		"a topic was deleted":  {more: "doomed-4", want: "broker 1 has doomed-4, of a partition that there is not"},
		"one is kept aside":    {more: "orders-1" + unique + "-stray", want: "broker 1 has orders-1" + unique + "-stray, which is no log in use"},
		"a copy was given up":  {more: "orders-1" + unique + "-future", want: "which is no log in use"},
		"one of a deleted topic is kept aside": {
			more: "doomed-4" + unique + "-stray", want: "has doomed-4" + unique + "-stray, of a partition that there is not",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &broker{id: 1, Broker: process.Broker{Dir: t.TempDir()}}
			for _, folder := range append([]string{c.more}, whole...) {
				if folder == c.without {
					continue
				}
				if err := os.MkdirAll(filepath.Join(b.Dir, "data", folder), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			n, err := b.holdsOnly(replicas)
			if c.want == "" && (err != nil || n != 4) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %d and %v, want %q", n, err, c.want)
			}
		})
	}
}
