package kraft

import (
	"maps"
	"slices"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Image is what a metadata log says at its end.
//
// It is what adoption needs, not all that KRaft knows: secrets are left out on purpose, only their owners are
// listed.
type Image struct {
	// End is the offset behind the last record that was read.
	End P.Offset
	// Features are the finalised levels, such as metadata.version.
	Features map[string]int16
	// Topics are those that exist.
	Topics map[P.TopicID]*Topic
	// Configs are the dynamic properties of topics, brokers, groups and client metrics.
	Configs map[Resource]map[string]string
	// Brokers are those that were registered when the log ended, alive or not.
	Brokers map[P.BrokerID]*Broker
	// Voters are the members of the controller quorum, as the last leader named them.
	Voters []P.BrokerID
	// NextProducerID is the first producer id that no broker was given yet.
	NextProducerID P.ProducerID
	// Scram lists the mechanisms of each user that has SCRAM credentials.
	Scram map[string][]string
	// Tokens are the owners of delegation tokens, by token id.
	Tokens map[string]string
	// ACLs are the access rules, by their ids.
	ACLs map[[16]byte]ACL
	// Quotas are the limits, by entity: "user=alice,client-id=<default>".
	Quotas map[string]map[string]float64
	// Unknown counts the records of types that are newer than this package.
	Unknown map[int16]int
	// Damage says where reading stopped before the end of a file, as after a power cut; empty otherwise.
	Damage string
}

// Topic is one topic of the image.
type Topic struct {
	Name string
	ID   P.TopicID
	// Partitions are those that have been created, by number.
	Partitions map[int32]*Partition
}

// Partition is one partition of the image.
type Partition struct {
	Replicas, ISR []P.BrokerID
	// Eligible are replicas outside the in-sync set that have all committed records (KIP-966).
	Eligible []P.BrokerID
	// Leader is NoBroker where there was none.
	Leader      P.BrokerID
	LeaderEpoch P.LeaderEpoch
}

// Broker is a registration.
type Broker struct {
	// Epoch is the offset of the registration.
	Epoch P.BrokerEpoch
	// Directories are the ids of its log directories that were online; none before metadata version 3.7.
	Directories []P.TopicID
}

// ResourceType says what a configuration belongs to, with Kafka's numbers.
type ResourceType int8

// The types of resources that have a configuration.
const (
	TopicResource         ResourceType = 2
	BrokerResource        ResourceType = 4
	ClientMetricsResource ResourceType = 16
	GroupResource         ResourceType = 32
)

// Resource is what a configuration belongs to. The broker without a name stands for all of them.
type Resource struct {
	Type ResourceType
	Name string
}

// ACL is one access rule, with Kafka's numbers for its kinds.
type ACL struct {
	ResourceType int8
	Resource     string
	PatternType  int8
	Principal    string
	Host         string
	Operation    int8
	Permission   int8
}

func newImage() *Image {
	return &Image{
		Features: map[string]int16{}, Topics: map[P.TopicID]*Topic{}, Configs: map[Resource]map[string]string{},
		Brokers: map[P.BrokerID]*Broker{}, Scram: map[string][]string{}, Tokens: map[string]string{},
		ACLs: map[[16]byte]ACL{}, Quotas: map[string]map[string]float64{}, Unknown: map[int16]int{},
	}
}

// Names lists the names of the topics, in order.
func (i *Image) Names() []string {
	names := make([]string, 0, len(i.Topics))
	for _, t := range i.Topics {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}

// Topic finds a topic by its name; nil where there is none.
func (i *Image) Topic(name string) *Topic {
	for _, t := range i.Topics {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Count is how many partitions the topic has: one more than the highest number.
func (t *Topic) Count() int {
	if len(t.Partitions) == 0 {
		return 0
	}
	return int(slices.Max(slices.Collect(maps.Keys(t.Partitions)))) + 1
}
