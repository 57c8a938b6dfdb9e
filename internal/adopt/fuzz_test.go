package adopt

import (
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/record"
)

func FuzzTree(f *testing.F) {
	f.Add(treeOf(topicAPath, topicJSON(`{"0":[7]}`), "/config/users/a", `{"version":1,"config":{"x":"y"}}`))
	f.Add(`{"path":"/cluster/id","data_base64":"AA=="}`)
	f.Add(treeOf("/brokers/topics/b", `{"partitions":{"2000000000":[1]},"version":1}`))
	f.Fuzz(func(t *testing.T, text string) {
		if parsed, err := parseTree([]byte(text), clusterID); err == nil {
			_, _ = fromTree(parsed, "tree")
		}
	})
}

func FuzzConfigs(f *testing.F) {
	f.Add("Dynamic configs for topic orders are:\n  retention.ms=1 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1}\n")
	f.Add("  a=b\nDefault configs for brokers in the cluster are:\n  x=y\n\nDynamic configs for broker x are:\n")
	f.Fuzz(func(t *testing.T, text string) {
		s := newSource("fuzz")
		if s.fromConfigs([]byte(text)) == nil && !strings.Contains(text, " are:") {
			t.Error("configs without a heading were taken")
		}
	})
}

func FuzzInternalRecords(f *testing.F) {
	f.Add([]byte("\x00\x03\x00\x01g"), []byte("value"))
	f.Add([]byte("\x00\x00\x00\x02tx"), []byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x01\xff\xff"))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		r := record.Record{Key: key, Value: value}
		takeGroup(map[string]map[string]bool{}, map[string]string{}, r)
		takeTransaction(map[string]transaction{}, r)
	})
}
