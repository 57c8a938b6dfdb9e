package adopt

import (
	"strings"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// Plan is what an adoption will do, or has done.
//
// As 'barnabas adopt' prints it:
//
//	result              planned, adopted, or adopted before
//	cluster, broker     from meta.properties
//	source              where properties and replication come from
//	broker_defaults     properties that will hold for all brokers, in /config/brokers/<default>
//	next_producer_id    written as the end of a block, /latest_producer_id_block
//	start               the command to run next
//	topics              name, id, partitions, was_replicated, leader_epoch, properties
//	notices             what is left behind, and what follows from it
//	going_back          what Kafka will not know, should it take the directories back
type Plan struct {
	// Done is true where the store knows everything already.
	Done bool
	// Cluster and Broker are whose the directories are, as their meta.properties say.
	Cluster string
	Broker  P.BrokerID
	// Dirs are the log directories, MetadataDir is where the store lies.
	Dirs        []string
	MetadataDir string
	// Source says where the properties of topics come from.
	Source string
	// Topics are those that will be registered, by name.
	Topics []Topic
	// ProducerIDs is the first producer id that will be given out; NoProducerID where nothing is written.
	ProducerIDs P.ProducerID
	// Defaults are properties that will hold for all brokers, BrokerConfig those of this one.
	Defaults, BrokerConfig map[string]string
	// Notices are what a person should know before agreeing.
	Notices []Notice
	// GoingBack says what is lost if Kafka takes the directories back later.
	GoingBack []string
	// Start is the command that serves the directories afterwards.
	Start string
}

// Topic is one topic of a plan.
type Topic struct {
	Name string
	ID   P.TopicID
	// Partitions are the states to write, by number.
	Partitions []Partition
	// WasReplicated is the replication factor in the old cluster, 0 where it is not known. It becomes 1.
	WasReplicated int
	// Config are the topic's own properties; ConfigKnown is false where nobody knows what they were.
	Config      map[string]string
	ConfigKnown bool

	// unfinished is true where an earlier adoption was interrupted within this topic.
	unfinished bool
}

// Partition is one partition of a topic of a plan.
type Partition struct {
	// LeaderEpoch is what the state is written with.
	LeaderEpoch P.LeaderEpoch
	// Dir is the log directory that holds it; empty where none does.
	Dir string
}

// LeaderEpoch is the highest leader epoch of the topic's partitions.
func (t Topic) LeaderEpoch() P.LeaderEpoch {
	highest := P.NoLeaderEpoch
	for _, p := range t.Partitions {
		highest = max(highest, p.LeaderEpoch)
	}
	return highest
}

// Notice is one thing to know.
type Notice struct {
	// Subject is what it is about, such as "SCRAM users".
	Subject string
	// Names are what it is about in particular; may be empty.
	Names []string
	// Meaning says what follows from it.
	Meaning string
}

// goingBack is what Kafka would not know after an adoption.
func goingBack(kraft bool) []string {
	where := "ZooKeeper"
	if kraft {
		where = metadataFolder
	}
	return []string{
		"records and committed offsets stay readable: their files are Kafka's",
		"topics made here are not known to " + where + ": Kafka sets their folders aside or leaves them alone; topics deleted here come back, empty",
		"properties changed here since are not known to Kafka",
		"leader epochs are higher here: consumers of groups that committed here wait in Kafka until its own are higher too; each restart of Kafka raises them",
		"Kafka gives out producer ids again that were given out here: start idempotent producers anew",
	}
}

// startCommand is how to start on the directories.
func startCommand(dirs []string, metadata string, overrides []string) string {
	words := []string{"barnabas start"}
	if len(dirs) == 1 {
		words = append(words, "--data-dir "+quoted(dirs[0]))
	} else {
		words = append(words, "--override "+quoted("log.dirs="+strings.Join(dirs, ",")))
	}
	if metadata != dirs[0] {
		words = append(words, "--override "+quoted("metadata.log.dir="+metadata))
	}
	for _, o := range overrides {
		words = append(words, "--override "+quoted(o))
	}
	return strings.Join(words, " ")
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if strings.ContainsAny(word, " \t'\"\\$&;|<>()*?#!`~") {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}
