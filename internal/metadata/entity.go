package metadata

import (
	"strconv"
	"strings"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Entity names what a configuration belongs to, in the form that change notifications use: a type and a
// sanitised name, such as topics/orders, brokers/1, brokers/<default> or users/alice/clients/<default>.
type Entity string

// The types of entities, which are also the names of the znodes under /config.
const (
	TopicEntities  = "topics"
	BrokerEntities = "brokers"
	ClientEntities = "clients"
	UserEntities   = "users"
	IPEntities     = "ips"
	// GroupEntities came with Kafka 4.0, which has no znodes; the name is ours.
	GroupEntities = "groups"
)

// DefaultEntity stands for all entities of a type that have no configuration of their own.
const DefaultEntity = "<default>"

// TopicEntity names the configuration of a topic; topic names need no sanitising.
func TopicEntity(name string) Entity { return Entity(TopicEntities + "/" + name) }

// BrokerEntity names the configuration of one broker, or for NoBroker the default for all of them.
func BrokerEntity(id P.BrokerID) Entity {
	if id == P.NoBroker {
		return BrokerEntities + "/" + DefaultEntity
	}
	return Entity(BrokerEntities + "/" + strconv.Itoa(int(id)))
}

// Type is the part before the first slash.
func (e Entity) Type() string {
	kind, _, _ := strings.Cut(string(e), "/")
	return kind
}

// Name is the part behind the first slash, still sanitised.
func (e Entity) Name() string {
	_, name, _ := strings.Cut(string(e), "/")
	return name
}
