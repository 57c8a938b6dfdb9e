package adopt

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// dumped is one line of a dump of the tree. Keys that are not here are ignored.
//
//	{"path":"/brokers/topics/orders","data":"{\"partitions\":{\"0\":[1]},\"version\":3}"}
//	{"path":"/brokers/ids","data":null}
//	{"path":"/odd","data_base64":"/w=="}
//
// Lines may come in any order. Ephemeral nodes are of no interest: nobody lives any more.
type dumped struct {
	Path   string  `json:"path"`
	Data   *string `json:"data"`
	Base64 *string `json:"data_base64"`
}

// tree is a dump, below the chroot of the cluster.
type tree struct {
	nodes map[string][]byte
	// paths are those of nodes, in order.
	paths []string
}

// parseTree reads a dump; of several clusters with their own chroots it takes the one with this id.
func parseTree(text []byte, cluster string) (*tree, error) {
	nodes := map[string][]byte{}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var d dumped
		if err := json.Unmarshal(line, &d); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		data, err := d.content()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		nodes[d.Path] = data
	}
	chroot, err := findChroot(nodes, cluster)
	if err != nil {
		return nil, err
	}
	t := &tree{nodes: map[string][]byte{}}
	for path, data := range nodes {
		if below, ok := strings.CutPrefix(path, chroot+"/"); ok {
			t.nodes["/"+below] = data
			t.paths = append(t.paths, "/"+below)
		}
	}
	slices.Sort(t.paths)
	return t, nil
}

func (d dumped) content() ([]byte, error) {
	switch {
	case d.Path == "":
		return nil, fmt.Errorf("it has no path")
	case d.Base64 != nil:
		return base64.StdEncoding.DecodeString(*d.Base64)
	case d.Data != nil:
		return []byte(*d.Data), nil
	}
	return nil, nil
}

// findChroot finds below which path the cluster with this id lies.
func findChroot(nodes map[string][]byte, cluster string) (string, error) {
	var others []string
	for path, data := range nodes {
		chroot, ok := strings.CutSuffix(path, znode.ClusterIDPath)
		if !ok {
			continue
		}
		id, err := znode.DecodeClusterID(data)
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		if id == cluster {
			return chroot, nil
		}
		others = append(others, id)
	}
	if len(others) == 0 {
		return "", fmt.Errorf("it has no %s: is it a dump of Kafka's tree?", znode.ClusterIDPath)
	}
	slices.Sort(others)
	return "", fmt.Errorf("it is the tree of the cluster %s, and the directories belong to %s", strings.Join(others, ", "), cluster)
}

// below lists the names directly or deeper under a path, without the path and its slash.
func (t *tree) below(path string) []string {
	var names []string
	for _, p := range t.paths {
		if name, ok := strings.CutPrefix(p, path+"/"); ok {
			names = append(names, name)
		}
	}
	return names
}

// fromTree translates a dump.
func fromTree(t *tree, name string) (*source, error) {
	s := newSource(name)
	s.complete = true
	for _, topic := range t.below(znode.TopicsPath) {
		if strings.Contains(topic, "/") {
			continue
		}
		if err := s.treeTopic(t, topic); err != nil {
			return nil, err
		}
	}
	for _, broker := range t.below(znode.ConfigPath + "/brokers") {
		values, err := znode.DecodeConfig(metadata.Entity("brokers/"+broker), t.nodes[znode.ConfigPath+"/brokers/"+broker])
		if err != nil {
			return nil, err
		}
		if broker == metadata.DefaultEntity {
			broker = ""
		}
		s.brokerConfig(broker, values)
	}
	if data := t.nodes[znode.ProducerIDBlockPath]; len(data) > 0 {
		block, err := znode.DecodeProducerIDBlock(data)
		if err != nil {
			return nil, err
		}
		s.nextProducerID = block.Last + 1
	} else {
		s.nextProducerID = 0
	}
	return s, s.treeNotices(t)
}

// treeTopic takes in one topic with its properties and states.
func (s *source) treeTopic(t *tree, name string) error {
	decoded, err := znode.DecodeTopic(name, t.nodes[znode.TopicPath(name)])
	if err != nil {
		return err
	}
	entity := metadata.TopicEntity(name)
	topic := s.topic(name)
	topic.id, topic.configKnown = decoded.ID, true
	if topic.config, err = znode.DecodeConfig(entity, t.nodes[znode.EntityPath(entity)]); err != nil {
		return err
	}
	for number, replicas := range decoded.Replicas {
		if replicas == nil {
			continue
		}
		p := oldPartition{replicas: replicas, epoch: P.NoLeaderEpoch}
		tp := P.TopicPartition{Topic: name, Partition: int32(number)}
		if data := t.nodes[znode.StatePath(tp)]; len(data) > 0 {
			state, err := znode.DecodeState(tp, data)
			if err != nil {
				return err
			}
			p.synced, p.epoch = state.ISR, state.LeaderEpoch
		}
		topic.partitions[int32(number)] = p
	}
	return nil
}

// treeNotices names what is in the tree and has no place here.
func (s *source) treeNotices(t *tree) error {
	var users, quotas, rules []string
	for _, kind := range []string{"users", "clients", "ips"} {
		for _, name := range t.below(znode.ConfigPath + "/" + kind) {
			data := t.nodes[znode.ConfigPath+"/"+kind+"/"+name]
			if len(data) == 0 {
				continue
			}
			values, err := znode.DecodeConfig(metadata.Entity(kind+"/"+name), data)
			if err != nil {
				return err
			}
			scram, quota := scramOrQuota(values)
			if scram {
				users = append(users, plain(name))
			}
			if quota {
				quotas = append(quotas, kind+"/"+plain(name))
			}
		}
	}
	for _, path := range []string{"/kafka-acl", "/kafka-acl-extended/prefixed", "/kafka-acl-extended"} {
		for _, name := range t.below(path) {
			if strings.Count(name, "/") == 1 && bytes.Contains(t.nodes[path+"/"+name], []byte("principal")) {
				rules = append(rules, name)
			}
		}
	}
	s.notice("SCRAM users", meaningSCRAM, users)
	s.notice("quotas", meaningQuotas, quotas)
	s.notice("ACLs", meaningACLs, rules)
	s.notice("delegation tokens", meaningTokens, t.below("/delegation_token/tokens"))
	s.notice("topic deletions", "were asked for and not finished: the topics are kept, delete them again", t.below(znode.DeleteTopicsPath))
	var old []string
	for _, name := range t.below("/consumers") {
		if group, _, ok := strings.Cut(name, "/offsets/"); ok {
			old = append(old, group)
		}
	}
	s.notice("offsets in ZooKeeper", "not carried: they are of consumers older than Kafka 0.9", old)
	return nil
}

func scramOrQuota(values map[string]string) (scram, quota bool) {
	for key := range values {
		if strings.HasPrefix(key, "SCRAM-") {
			scram = true
		} else {
			quota = true
		}
	}
	return scram, quota
}

// plain is a name as people know it.
func plain(name string) string {
	if decoded, err := znode.Desanitize(name); err == nil {
		return decoded
	}
	return name
}
