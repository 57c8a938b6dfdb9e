package adopt

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/barnabas-mq/barnabas/internal/kraft"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// metadataFolder is the folder of the metadata log.
const metadataFolder = P.ClusterMetadataTopic + "-0"

// readKRaft reads the metadata log in the first of dirs that has one; nil where none has.
func readKRaft(files vfs.FS, dirs []string) (*source, error) {
	for _, dir := range dirs {
		path := filepath.Join(dir, metadataFolder)
		image, err := kraft.Read(files, path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the metadata of KRaft: %w", err)
		}
		return fromImage(image, path), nil
	}
	return nil, nil
}

// fromImage translates an image.
//
// Its producer ids are certain, unlike those of a dump: a broker gets a block only once the record of it is in
// the log.
func fromImage(image *kraft.Image, path string) *source {
	s := newSource(path)
	s.kraft, s.complete, s.certain = true, true, true
	s.nextProducerID = image.NextProducerID
	for _, topic := range image.Topics {
		t := s.topic(topic.Name)
		t.id, t.configKnown = topic.ID, true
		t.config = image.Configs[kraft.Resource{Type: kraft.TopicResource, Name: topic.Name}]
		for number, p := range topic.Partitions {
			t.partitions[number] = oldPartition{replicas: p.Replicas, synced: slices.Concat(p.ISR, p.Eligible), epoch: p.LeaderEpoch}
		}
	}
	var groups, metrics []string
	for resource, values := range image.Configs {
		switch resource.Type {
		case kraft.BrokerResource:
			s.brokerConfig(resource.Name, values)
		case kraft.GroupResource:
			groups = append(groups, resource.Name)
		case kraft.ClientMetricsResource:
			metrics = append(metrics, resource.Name)
		}
	}
	s.notice("group properties", "not carried: only the newer kinds of groups have them", groups)
	s.notice("client metrics subscriptions", "not carried", metrics)
	s.noticeSecurity(image)
	s.noticeQuorum(image)
	return s
}

// brokerConfig takes in the dynamic properties of one broker, or of all where there is no name.
func (s *source) brokerConfig(name string, values map[string]string) {
	if name == "" {
		maps.Copy(s.defaults, values)
	} else if id, err := strconv.ParseInt(name, 10, 32); err == nil {
		s.brokers[P.BrokerID(id)] = maps.Clone(values)
	}
}

func (s *source) noticeSecurity(image *kraft.Image) {
	s.notice("SCRAM users", meaningSCRAM, slices.Collect(maps.Keys(image.Scram)))
	var rules []string
	for _, acl := range image.ACLs {
		rules = append(rules, acl.Principal+" on "+acl.Resource)
	}
	s.notice("ACLs", meaningACLs, rules)
	s.notice("quotas", meaningQuotas, slices.Collect(maps.Keys(image.Quotas)))
	s.notice("delegation tokens", meaningTokens, slices.Collect(maps.Keys(image.Tokens)))
}

// noticeQuorum names what makes the metadata less than certain.
func (s *source) noticeQuorum(image *kraft.Image) {
	if image.Damage != "" {
		s.certain = false
		s.notices = append(s.notices, Notice{Subject: "metadata log", Names: []string{image.Damage},
			Meaning: "what came behind is not known: topics and properties may be older than they were"})
	}
	if len(image.Voters) > 1 {
		s.notices = append(s.notices, Notice{Subject: "controllers", Names: brokerNames(image.Voters),
			Meaning: "the cluster had several: the last changes in this copy of their log may never have been agreed on"})
	}
	if len(image.Brokers) > 1 {
		s.notices = append(s.notices, Notice{Subject: "brokers", Names: brokerNames(slices.Sorted(maps.Keys(image.Brokers))),
			Meaning: "the cluster had several: only what lies in these directories is taken over"})
	}
	for kind, n := range image.Unknown {
		s.notices = append(s.notices, Notice{Subject: "metadata log", Names: []string{fmt.Sprintf("%d records of type %d", n, kind)},
			Meaning: "they are newer than this program, and not understood"})
	}
}

func brokerNames(ids []P.BrokerID) []string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = strconv.Itoa(int(id))
	}
	return names
}
