package adopt

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/quorum"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// topicA is the id of topic a in the made directories.
const topicA = "AAAAAAAAAAAAAAAAAAAAZA"

const clusterID = "0Xdv8gocR0SHlnUz4LPb7w"

func put(t testing.TB, files vfs.FS, name, content string) {
	t.Helper()
	must(t, files.MkdirAll(path.Dir(name), 0o755))
	f, err := files.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	must(t, err)
	_, err = f.WriteAt([]byte(content), 0)
	must(t, err)
	must(t, f.Sync())
	must(t, f.Close())
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		must(t, files.SyncDir(dir))
		if dir == "/" {
			return
		}
	}
}

// kafkaDir is an empty log directory of broker 7 of Kafka 3.9.
func kafkaDir(t testing.TB) *vfs.Memory {
	t.Helper()
	files := vfs.NewMemory()
	put(t, files, "/data/meta.properties", "#\n#Sun Nov 29 19:51:26 UTC 2026\nbroker.id=7\nversion=0\ncluster.id="+clusterID+"\n")
	return files
}

// folder makes the folder of a partition; the batch in it has the given leader epoch and producer id.
func folder(t testing.TB, files vfs.FS, dir, name, id string, epoch P.LeaderEpoch, producer P.ProducerID) {
	t.Helper()
	put(t, files, dir+"/"+name+"/partition.metadata", "version: 0\ntopic_id: "+id)
	b := record.NewBuilder(record.BuilderOptions{LeaderEpoch: epoch, ProducerID: producer, Idempotent: producer >= 0})
	b.Append(1700000000000, nil, []byte("value"))
	put(t, files, dir+"/"+name+"/00000000000000000000.log", string(b.Build()))
	put(t, files, dir+"/"+name+"/leader-epoch-checkpoint", "0\n1\n0 0\n")
}

// open opens an adoption that the test closes.
func open(t testing.TB, files vfs.FS, change func(*Options)) *Adoption {
	t.Helper()
	a, err := tryOpen(files, change)
	must(t, err)
	t.Cleanup(func() { must(t, a.Close()) })
	return a
}

func tryOpen(files vfs.FS, change func(*Options)) (*Adoption, error) {
	o := Options{FS: files, Dirs: []string{"/data"}}
	if change != nil {
		change(&o)
	}
	return Open(context.Background(), o)
}

// refused checks that an adoption is refused in these words.
func refused(t *testing.T, files vfs.FS, change func(*Options), words ...string) {
	t.Helper()
	a, err := tryOpen(files, change)
	if err == nil {
		must(t, a.Close())
		t.Fatalf("it was not refused; want an error with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error %q lacks %q", err, w)
		}
	}
}

// notice finds the notice about a subject.
func (p *Plan) notice(subject string) *Notice {
	if i := slices.IndexFunc(p.Notices, func(n Notice) bool { return n.Subject == subject }); i >= 0 {
		return &p.Notices[i]
	}
	return nil
}

// wantNotice checks that there is a notice about names.
func wantNotice(t *testing.T, p *Plan, subject string, names ...string) {
	t.Helper()
	n := p.notice(subject)
	if n == nil || !slices.Equal(n.Names, names) || n.Meaning == "" {
		t.Errorf("the notice about %s is %+v, want names %q", subject, n, names)
	}
}

// topicOf finds a topic of the plan.
func (p *Plan) topicOf(t *testing.T, name string) Topic {
	t.Helper()
	i := slices.IndexFunc(p.Topics, func(topic Topic) bool { return topic.Name == name })
	if i < 0 {
		t.Fatalf("topic %s is not in the plan", name)
	}
	return p.Topics[i]
}

// stored lists what a store holds: one line a node, without what a restart changes.
func stored(t testing.TB, files vfs.FS, dir string, broker P.BrokerID) []string {
	t.Helper()
	s, err := quorum.Open(quorum.Options{FS: files, Dir: dir, NodeID: broker})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	session, err := s.Open(context.Background(), coordination.SessionOptions{})
	must(t, err)
	defer func() { must(t, session.Close()) }()
	var lines []string
	var walk func(at string)
	walk = func(at string) {
		data, stat, err := session.Get(context.Background(), at)
		must(t, err)
		lines = append(lines, fmt.Sprintf("%s v%d %s", at, stat.Version, data))
		names, _, err := session.Children(context.Background(), at)
		must(t, err)
		for _, name := range names {
			walk(path.Join(at, name))
		}
	}
	walk("/")
	return lines
}

// treeOf is a dump with a topic a of two partitions, and whatever nodes are given as path and data.
func treeOf(nodes ...string) string {
	nodes = append([]string{
		znode.ClusterIDPath, string(znode.EncodeClusterID(clusterID)),
		znode.EntityPath(metadata.TopicEntity("a")), `{"version":1,"config":{"retention.ms":"5"}}`,
	}, nodes...)
	var lines []string
	for i := 0; i < len(nodes); i += 2 {
		lines = append(lines, fmt.Sprintf("{\"path\":%q,\"data\":%q}", "/chroot"+nodes[i], nodes[i+1]))
	}
	return strings.Join(lines, "\n")
}

const topicAPath = "/brokers/topics/a"

func topicJSON(assignment string) string {
	return `{"partitions":` + assignment + `,"topic_id":"` + topicA + `","adding_replicas":{},"removing_replicas":{},"version":3}`
}
