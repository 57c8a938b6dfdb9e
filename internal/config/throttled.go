package config

import (
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// ThrottledReplicas is the value of leader.replication.throttled.replicas or of follower.replication.throttled.replicas:
// replicas of one topic as partition:broker, with commas between them, or * for all. It is comparable.
type ThrottledReplicas string

// Has reports whether the list names a broker's replica of a partition.
func (list ThrottledReplicas) Has(partition int32, broker protocol.BrokerID) bool {
	if list == "" || list == "*" {
		return list == "*"
	}
	one := strconv.Itoa(int(partition)) + ":" + strconv.Itoa(int(broker))
	for rest := string(list); ; {
		at := strings.Index(rest, one)
		if at < 0 {
			return false
		}
		end := at + len(one)
		if (at == 0 || rest[at-1] == ',') && (end == len(rest) || rest[end] == ',') {
			return true
		}
		rest = rest[end:]
	}
}
