package adopt

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/logdir"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Of a topic that nothing is known of but its folders, nothing is deleted.
func TestFoldersAlone(t *testing.T) {
	files := kafkaDir(t)
	folder(t, files, "/data", "a-0", topicA, 4, 8123)
	folder(t, files, "/data", "a-2", topicA, 0, -1)
	folder(t, files, "/data", "__consumer_offsets-0", "AAAAAAAAAAAAAAAAAAAAZQ", 0, -1)
	a := open(t, files, nil)
	p := a.Plan()
	topic := p.topicOf(t, "a")
	if p.Cluster != clusterID || p.Broker != 7 || topic.ID.String() != topicA || len(topic.Partitions) != 3 {
		t.Errorf("the plan is %+v", p)
	}
	if diff := cmp.Diff(map[string]string{"cleanup.policy": ""}, topic.Config); diff != "" {
		t.Error(diff)
	}
	if got := p.topicOf(t, "__consumer_offsets").Config["cleanup.policy"]; got != "compact" {
		t.Errorf("cleanup.policy of __consumer_offsets is %q", got)
	}
	if topic.Partitions[0].LeaderEpoch != 5 || topic.Partitions[2].LeaderEpoch != 1 {
		t.Errorf("leader epochs are %+v", topic.Partitions)
	}
	if p.ProducerIDs != 9000+producerMargin {
		t.Errorf("producer ids begin at %d", p.ProducerIDs)
	}
	if p.Defaults["log.retention.ms"] != "-1" {
		t.Errorf("defaults are %v", p.Defaults)
	}
	wantNotice(t, p, "topics with unknown properties", "a")
	wantNotice(t, p, "partitions without a folder", "a-1")
	wantNotice(t, p, "default retention", "log.retention.ms=-1")
	if _, err := config.Default().Topic(topic.Config); err != nil {
		t.Errorf("the properties are not valid: %v", err)
	}

	must(t, a.CarryOut(context.Background()))
	must(t, a.Close())
	lines := strings.Join(stored(t, files, "/data", 7), "\n")
	for _, want := range []string{
		`/brokers/topics/a v0 {"partitions":{"0":[7],"1":[7],"2":[7]},"topic_id":"` + topicA + `","adding_replicas":{},"removing_replicas":{},"version":3}`,
		`/brokers/topics/a/partitions/0/state v0 {"controller_epoch":0,"leader":7,"version":1,"leader_epoch":5,"isr":[7]}`,
		`/cluster/id v0 {"version":"1","id":"` + clusterID + `"}`,
		`/config/topics/a v0 {"version":1,"config":{"cleanup.policy":""}}`,
		`/config/brokers/<default> v0 {"version":1,"config":{"log.retention.ms":"-1"}}`,
		`/latest_producer_id_block v1 {"version":1,"broker":7,"block_start":"108000","block_end":"108999"}`,
	} {
		if !strings.Contains(lines, want+"\n") {
			t.Errorf("the store lacks %s:\n%s", want, lines)
		}
	}
	if again := open(t, files, nil); !again.Plan().Done {
		t.Errorf("it is to be done again: %+v", again.Plan())
	}
}

// A folder that comes later is added to what is there; what was set here stays.
func TestSecondDirectoryLater(t *testing.T) {
	files := kafkaDir(t)
	folder(t, files, "/data", "a-0", topicA, 0, -1)
	first := open(t, files, nil)
	must(t, first.CarryOut(context.Background()))
	must(t, first.Close())
	folder(t, files, "/data", "b-0", "AAAAAAAAAAAAAAAAAAAAZg", 3, 500_000)
	second := open(t, files, nil)
	p := second.Plan()
	if p.Done || len(p.Topics) != 1 || p.Topics[0].Name != "b" || p.ProducerIDs != 501_000+producerMargin {
		t.Errorf("the plan is %+v", p)
	}
	must(t, second.CarryOut(context.Background()))
	must(t, second.Close())
	folder(t, files, "/data", "a-1", topicA, 0, -1)
	refused(t, files, nil, "a-1", "1 partitions", "move the folder away")
}

func TestTree(t *testing.T) {
	files := kafkaDir(t)
	folder(t, files, "/data", "a-0", topicA, 1, 10)
	folder(t, files, "/data", "new-0", "AAAAAAAAAAAAAAAAAAAAZg", 0, -1)
	put(t, files, "/tree", treeOf(
		topicAPath, topicJSON(`{"0":[8,7],"1":[8]}`),
		topicAPath+"/partitions/0/state", `{"controller_epoch":3,"leader":8,"version":1,"leader_epoch":9,"isr":[8]}`,
		"/config/topics/a", `{"version":1,"config":{"retention.ms":"5","segment.bytes":"abc","what.is.this":"1"}}`,
		"/brokers/topics/elsewhere", `{"partitions":{"0":[8]},"version":1}`,
		"/config/brokers/7", `{"version":1,"config":{"num.io.threads":"3","listener.name.x.ssl.keystore.password":"p"}}`,
		"/config/brokers/<default>", `{"version":1,"config":{"log.retention.ms":"77"}}`,
		"/config/users/al%40ice", `{"version":1,"config":{"SCRAM-SHA-256":"salt=x","producer_byte_rate":"5"}}`,
		"/kafka-acl/Topic/a", `{"version":1,"acls":[{"principal":"User:a"}]}`,
		"/kafka-acl-extended/prefixed/Group/g", `{"version":1,"acls":[{"principal":"User:a"}]}`,
		"/delegation_token/tokens/tok", `{}`, "/admin/delete_topics/a", "", "/consumers/old/offsets/a/0", "5",
		"/latest_producer_id_block", `{"version":1,"broker":1,"block_start":"5000","block_end":"5999"}`,
	))
	p := open(t, files, func(o *Options) { o.ZooKeeperTree = "/tree" }).Plan()
	topic := p.topicOf(t, "a")
	want := Topic{Name: "a", ID: topic.ID, WasReplicated: 2, ConfigKnown: true,
		Config:     map[string]string{"retention.ms": "5", "segment.bytes": "abc", "what.is.this": "1"},
		Partitions: []Partition{{LeaderEpoch: 10, Dir: "/data"}, {LeaderEpoch: 0}}}
	if diff := cmp.Diff(want, topic, cmp.AllowUnexported(Topic{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"log.retention.ms": "77"}, p.Defaults); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"num.io.threads": "3"}, p.BrokerConfig); diff != "" {
		t.Error(diff)
	}
	if p.ProducerIDs != 6000+producerMargin {
		t.Errorf("producer ids begin at %d", p.ProducerIDs)
	}
	wantNotice(t, p, "topics unknown to the old cluster", "new")
	wantNotice(t, p, "topics with unknown properties", "new")
	wantNotice(t, p, "replicated topics", "a")
	wantNotice(t, p, "copies that were not in sync", "a-0")
	wantNotice(t, p, "partitions without a folder", "a-1")
	wantNotice(t, p, "topics that are not here", "elsewhere")
	wantNotice(t, p, "SCRAM users", "al@ice")
	wantNotice(t, p, "properties that are not valid here", "a: segment.bytes=abc", "a: what.is.this=1")
	wantNotice(t, p, "quotas", "users/al@ice")
	wantNotice(t, p, "ACLs", "Group/g", "Topic/a")
	wantNotice(t, p, "delegation tokens", "tok")
	wantNotice(t, p, "topic deletions", "a")
	wantNotice(t, p, "offsets in ZooKeeper", "old")
	wantNotice(t, p, "broker properties", "listener.name.x.ssl.keystore.password")
}

// What the broker had and is not here may lie in a directory that was not named.
func TestMissingPartitions(t *testing.T) {
	files := kafkaDir(t)
	folder(t, files, "/data", "a-0", topicA, 1, 10)
	put(t, files, "/tree", treeOf(topicAPath, topicJSON(`{"0":[7],"1":[7]}`), "/brokers/topics/gone", `{"partitions":{"0":[7]},"version":1}`))
	withTree := func(o *Options) { o.ZooKeeperTree = "/tree" }
	refused(t, files, withTree, "2 partitions that broker 7 had", "a-1, gone-0", "--allow-missing")
	p := open(t, files, func(o *Options) { withTree(o); o.AllowMissing = true }).Plan()
	wantNotice(t, p, "partitions without a folder", "a-1")
	wantNotice(t, p, "topics that are not here", "gone (its folders are missing)")
	if len(p.Topics) != 1 || len(p.Topics[0].Partitions) != 2 {
		t.Errorf("the plan is %+v", p.Topics)
	}
}

func TestRefused(t *testing.T) {
	files := kafkaDir(t)
	refused(t, files, nil, "no partitions in /data")
	folder(t, files, "/data", "a-0", topicA, 1, 10)
	refused(t, files, func(o *Options) { o.Dirs = []string{"/dat"} }, "/dat has no meta.properties")
	refused(t, files, func(o *Options) { o.Dirs = nil }, "no directory")
	if _, err := files.Stat("/dat"); err == nil {
		t.Error("a mistyped directory was made")
	}

	lock, err := files.Lock("/data/.lock")
	must(t, err)
	refused(t, files, nil, "in use by another broker")
	must(t, lock.Close())

	put(t, files, "/other", `{"path":"/cluster/id","data":"{\"version\":\"1\",\"id\":\"other\"}"}`)
	refused(t, files, func(o *Options) { o.ZooKeeperTree = "/other" }, "/other: it is the tree of the cluster other", clusterID)
	put(t, files, "/none", `{"path":"/zookeeper","data":null}`)
	refused(t, files, func(o *Options) { o.ZooKeeperTree = "/none" }, "is it a dump of Kafka's tree?")
	put(t, files, "/bad", "{\"path\":\"/a\"}\nno JSON")
	refused(t, files, func(o *Options) { o.ZooKeeperTree = "/bad" }, "/bad: line 2")
	put(t, files, "/users", "Quota configs for user-principal 'alice' are producer_byte_rate=1000.0\n")
	refused(t, files, func(o *Options) { o.Configs = "/users" }, "/users: it says nothing of topics")

	put(t, files, "/tree", treeOf(topicAPath, strings.ReplaceAll(topicJSON(`{"0":[7]}`), topicA, "AAAAAAAAAAAAAAAAAAAAZg")))
	refused(t, files, func(o *Options) { o.ZooKeeperTree = "/tree" }, "topic a had the id AAAAAAAAAAAAAAAAAAAAZg", topicA)
	folder(t, files, "/data", "a-1", "AAAAAAAAAAAAAAAAAAAAZg", 1, 10)
	refused(t, files, nil, "different ids")
	folder(t, files, "/data", "odd-2147483647", "AAAAAAAAAAAAAAAAAAAAZg", 1, 10)
	must(t, files.RemoveAll("/data/a-1"))
	refused(t, files, nil, "topic odd would have 2147483648 partitions")
	put(t, files, "/data/a-1/partition.metadata", "nonsense")
	refused(t, files, nil, "the id of a-1 cannot be read")
}

// The metadata of KRaft may lie in a directory of its own.
func TestMetadataDirectory(t *testing.T) {
	files := vfs.NewMemory()
	identity := "node.id=7\nversion=1\ncluster.id=" + clusterID + "\ndirectory.id="
	put(t, files, "/data/meta.properties", identity+"NV4_ueZYv-GIoATEVmlvTQ\n")
	put(t, files, "/meta/meta.properties", identity+"NV4_ueZYv-GIoATEVmlvTg\n")
	folder(t, files, "/data", "a-0", topicA, 1, 10)
	put(t, files, "/meta/__cluster_metadata-0/00000000000000000000.log", "")
	refused(t, files, nil, "none of them has its metadata", "--server-properties")
	put(t, files, "/server.properties", "node.id=7\nlog.dirs=/data\nmetadata.log.dir=/meta\nprocess.roles=broker,controller\n"+
		"controller.quorum.voters=7@localhost:9093\ncontroller.listener.names=CONTROLLER\nlisteners=PLAINTEXT://:9092,CONTROLLER://:9093\n")
	withFile := func(o *Options) { o.ServerProperties = "/server.properties" }
	a := open(t, files, withFile)
	p := a.Plan()
	if p.Source != "/meta/__cluster_metadata-0" || p.MetadataDir != "/meta" || p.Start != "barnabas start --data-dir /data --override metadata.log.dir=/meta" {
		t.Errorf("the plan is %+v", p)
	}
	wantNotice(t, p, "topics unknown to the old cluster", "a")
	must(t, a.CarryOut(context.Background()))
	must(t, a.Close())
	if lines := stored(t, files, "/meta", 7); len(lines) < 20 {
		t.Errorf("the store in /meta is %q", lines)
	}
	put(t, files, "/tree", treeOf(topicAPath, topicJSON(`{"0":[7]}`)))
	folder(t, files, "/data", "b-0", "AAAAAAAAAAAAAAAAAAAAZg", 1, 10)
	refused(t, files, func(o *Options) { withFile(o); o.ZooKeeperTree = "/tree" }, "have their own metadata in /meta/__cluster_metadata-0")
}

// Behind the last index entry there are few batches to look at; an index that lies costs a longer look.
func TestIndexedTail(t *testing.T) {
	files := kafkaDir(t)
	folder(t, files, "/data", "a-0", topicA, 9, 3)
	index := "/data/a-0/00000000000000000000.index"
	for text, want := range map[string]int64{
		"": 0, "\x00\x00\x00\x01\x00\x00\x00\x05": 5, strings.Repeat("\x00", 800): 0,
		"\x00\x00\x00\x01\x00\x00\x00\x05\x00\x00\x00\x02\x00\x00\x00\x09" + strings.Repeat("\x00", 800): 9,
	} {
		put(t, files, index, text)
		if got, err := lastIndexed(files, index); err != nil || got != want {
			t.Errorf("%q: position %d, want %d, %v", text, got, want, err)
		}
		if end, err := scanPartition(files, "/data/a-0", false); err != nil || end.epoch != 9 {
			t.Errorf("%q: the end is %+v, %v", text, end, err)
		}
	}
}

func TestSeveralDirectories(t *testing.T) {
	files := kafkaDir(t)
	put(t, files, "/disk two/meta.properties", "broker.id=7\nversion=0\ncluster.id="+clusterID+"\n")
	folder(t, files, "/data", "a-0", topicA, 1, 10)
	folder(t, files, "/disk two", "a-1", topicA, 1, 10)
	put(t, files, "/disk two/b-0.0123456789abcdef0123456789abcdef-stray/x", "")
	put(t, files, "/disk two/c-0.0123456789abcdef0123456789abcdef-delete/x", "")
	put(t, files, "/disk two/a-0.0123456789abcdef0123456789abcdef-future/x", "")
	put(t, files, "/server.properties", `
broker.id=7
log.dirs=/data,/disk two
log.retention.hours=-1
log.segment.bytes=2000000
log.roll.hours=2
offsets.retention.minutes=43200
zookeeper.connect=localhost:2181
`)
	a := open(t, files, func(o *Options) { o.Dirs, o.ServerProperties = nil, "/server.properties" })
	p := a.Plan()
	must(t, a.Close())
	want := map[string]string{"log.retention.ms": "-1", "log.segment.bytes": "2000000", "log.roll.ms": "7200000"}
	if diff := cmp.Diff(want, p.Defaults); diff != "" {
		t.Error(diff)
	}
	if want := "barnabas start --override 'log.dirs=/data,/disk two' --override offsets.retention.minutes=43200"; p.Start != want {
		t.Errorf("to start: %s\nwant      %s", p.Start, want)
	}
	if p.notice("default retention") != nil {
		t.Error("the default retention counts as unknown")
	}
	wantNotice(t, p, "folders -stray", "b-0.0123456789abcdef0123456789abcdef-stray")
	wantNotice(t, p, "folders -delete", "c-0.0123456789abcdef0123456789abcdef-delete")
	wantNotice(t, p, "folders -future", "a-0.0123456789abcdef0123456789abcdef-future")

	folder(t, files, "/disk two", "a-0", topicA, 1, 10)
	refused(t, files, func(o *Options) { o.Dirs = []string{"/data", "/disk two"} }, "a-0 is in /data and in /disk two")
}

func TestConfigs(t *testing.T) {
	files := kafkaDir(t)
	folder(t, files, "/data", "orders-0", topicA, 1, 10)
	folder(t, files, "/data", "plain-0", "AAAAAAAAAAAAAAAAAAAAZg", 1, 10)
	folder(t, files, "/data", "unlisted-0", "AAAAAAAAAAAAAAAAAAAAZw", 1, 10)
	put(t, files, "/configs", `Dynamic configs for topic orders are:
  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}
  retention.ms=86400000000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=86400000000, DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=999999999, DEFAULT_CONFIG:log.retention.hours=168}
All configs for topic plain are:
  cleanup.policy=delete sensitive=false synonyms={DEFAULT_CONFIG:log.cleanup.policy=delete}
  retention.ms=999999999 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=999999999, DEFAULT_CONFIG:log.retention.hours=168}
  flush.ms=9223372036854775807 sensitive=false synonyms={}
Dynamic configs for broker 7 are:
  num.io.threads=5 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:num.io.threads=5, DEFAULT_CONFIG:num.io.threads=8}
  ssl.keystore.password=null sensitive=true synonyms={DYNAMIC_BROKER_CONFIG:ssl.keystore.password=null}
Default configs for brokers in the cluster are:
  log.retention.ms=999999999 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=999999999}
Quota configs for user-principal 'alice' are producer_byte_rate=1000.0
`)
	p := open(t, files, func(o *Options) { o.Configs = "/configs" }).Plan()
	got := map[string]map[string]string{"defaults": p.Defaults, "broker": p.BrokerConfig}
	for _, topic := range p.Topics {
		got[topic.Name] = topic.Config
	}
	want := map[string]map[string]string{
		"orders":   {"cleanup.policy": "compact,delete", "retention.ms": "86400000000"},
		"plain":    {},
		"unlisted": {"cleanup.policy": ""},
		"broker":   {"num.io.threads": "5"},
		"defaults": {"log.retention.ms": "999999999"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEpochs(t *testing.T) {
	files := kafkaDir(t)
	folder(t, files, "/data", "a-0", topicA, P.LeaderEpoch(1<<31-1), 10) // a flipped bit
	put(t, files, "/data/a-0/leader-epoch-checkpoint", "0\n2\n3 0\n6 100\n")
	end, err := scanPartition(files, "/data/a-0", true)
	must(t, err)
	if end.epoch != 6 || end.producer != 10 || end.oldFormat {
		t.Errorf("the end is %+v", end)
	}
	for _, text := range []string{"", "0\n", "0\n1\n", "nonsense"} {
		put(t, files, "/data/a-0/leader-epoch-checkpoint", text)
		if epoch, err := checkpointedEpoch(files, "/data/a-0"); err != nil || epoch != P.NoLeaderEpoch {
			t.Errorf("%q has epoch %d, %v", text, epoch, err)
		}
	}
	found, err := scan(context.Background(), files, []logdir.Found{{Dir: "/data", Folder: "nowhere-0"}}, false, func(int, int) {})
	if err == nil {
		t.Errorf("a missing folder has the end %+v", found)
	}
}
