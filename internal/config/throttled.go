package config

import (
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// The properties of throttled replication (KIP-73), each for the leading side first and then for the following one. They
// never change.
var (
	// ThrottledRates are properties of brokers, in bytes a second.
	ThrottledRates = [2]string{"leader.replication.throttled.rate", "follower.replication.throttled.rate"}
	// ThrottledLists are properties of topics, with a [ThrottledReplicas] each.
	ThrottledLists = [2]string{"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}
)

// ThrottledReplicas is the value of one of the [ThrottledLists]: replicas of one topic as [ThrottledReplica] has them,
// with commas between them, or [AllReplicas]. It is comparable.
type ThrottledReplicas string

// AllReplicas is the list of all replicas of a topic; nothing may stand beside it.
const AllReplicas = "*"

// ThrottledReplica is a broker's replica of a partition as the lists have it, partition:broker.
func ThrottledReplica(partition int32, broker protocol.BrokerID) string {
	return strconv.Itoa(int(partition)) + ":" + strconv.Itoa(int(broker))
}

// Has reports whether the list names a broker's replica of a partition.
func (list ThrottledReplicas) Has(partition int32, broker protocol.BrokerID) bool {
	if list == "" || list == AllReplicas {
		return list == AllReplicas
	}
	one := ThrottledReplica(partition, broker)
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
