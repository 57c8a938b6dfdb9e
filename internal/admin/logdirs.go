package admin

import (
	"cmp"
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// LogDir is one log directory of a broker with its replicas.
type LogDir struct {
	Broker int32
	Path   string
	// Total and Usable are the bytes of its volume, -1 where the broker does not know.
	Total, Usable int64
	// Replicas are sorted by partition.
	Replicas []DirReplica
	// Err is why the directory is offline.
	Err error
}

// Size is the bytes of all replicas.
func (d LogDir) Size() int64 {
	var size int64
	for _, r := range d.Replicas {
		size += r.Size
	}
	return size
}

// DirReplica is one replica in a log directory.
type DirReplica struct {
	TopicPartition
	// Size is in bytes.
	Size int64
	// OffsetLag is how far it is behind the high watermark or, where it is being made by a move, behind the
	// replica that it will replace.
	OffsetLag int64
	Future    bool
}

// LogDirs are the log directories of the brokers, or of all where none is named, with the replicas of
// the topics, or of all topics where topics is nil. Sorted by broker and path.
//
// Brokers are asked one after another; a broker that does not answer fails the whole, since a sum without it
// would look like one.
func (c *Client) LogDirs(ctx context.Context, brokers []int32, topics []Topic) ([]LogDir, error) {
	if len(brokers) == 0 {
		cluster, err := c.Cluster(ctx)
		if err != nil {
			return nil, err
		}
		for _, b := range cluster.Brokers {
			brokers = append(brokers, b.ID)
		}
	}
	ctx, cancel := c.limit(ctx)
	defer cancel()
	var dirs []LogDir
	for _, broker := range brokers {
		response, err := c.kafka.Broker(int(broker)).Request(ctx, logDirsRequest(topics))
		if err != nil {
			return nil, c.Explain(err)
		}
		answer := response.(*kmsg.DescribeLogDirsResponse)
		if err := codeError(answer.ErrorCode, nil); err != nil {
			return nil, err
		}
		for i := range answer.Dirs {
			dirs = append(dirs, logDirOf(broker, &answer.Dirs[i]))
		}
	}
	slices.SortStableFunc(dirs, func(a, b LogDir) int { return cmp.Or(cmp.Compare(a.Broker, b.Broker), cmp.Compare(a.Path, b.Path)) })
	return dirs, nil
}

func logDirsRequest(topics []Topic) *kmsg.DescribeLogDirsRequest {
	r := kmsg.NewPtrDescribeLogDirsRequest()
	if topics != nil {
		r.Topics = []kmsg.DescribeLogDirsRequestTopic{}
	}
	for _, t := range topics {
		topic := kmsg.NewDescribeLogDirsRequestTopic()
		topic.Topic = t.Name
		for _, p := range t.Partitions {
			topic.Partitions = append(topic.Partitions, p.Number)
		}
		r.Topics = append(r.Topics, topic)
	}
	return r
}

func logDirOf(broker int32, d *kmsg.DescribeLogDirsResponseDir) LogDir {
	dir := LogDir{Broker: broker, Path: d.Dir, Total: d.TotalBytes, Usable: d.UsableBytes, Err: codeError(d.ErrorCode, nil)}
	for _, t := range d.Topics {
		for _, p := range t.Partitions {
			dir.Replicas = append(dir.Replicas, DirReplica{TopicPartition{t.Topic, p.Partition}, p.Size, p.OffsetLag, p.IsFuture})
		}
	}
	slices.SortFunc(dir.Replicas, func(a, b DirReplica) int { return a.Compare(b.TopicPartition) })
	return dir
}

// MoveReplicas moves replicas of one broker into another of its log directories. That they have arrived
// shows in [Client.LogDirs]. The results are in the order of the partitions.
func (c *Client) MoveReplicas(ctx context.Context, broker int32, dir string, partitions []TopicPartition) ([]PartitionResult, error) {
	r := kmsg.NewPtrAlterReplicaLogDirsRequest()
	to := kmsg.NewAlterReplicaLogDirsRequestDir()
	to.Dir = dir
	for _, at := range partitions {
		i := slices.IndexFunc(to.Topics, func(t kmsg.AlterReplicaLogDirsRequestDirTopic) bool { return t.Topic == at.Topic })
		if i < 0 {
			t := kmsg.NewAlterReplicaLogDirsRequestDirTopic()
			t.Topic = at.Topic
			to.Topics, i = append(to.Topics, t), len(to.Topics)
		}
		to.Topics[i].Partitions = append(to.Topics[i].Partitions, at.Partition)
	}
	r.Dirs = append(r.Dirs, to)
	ctx, cancel := c.limit(ctx)
	defer cancel()
	response, err := c.kafka.Broker(int(broker)).Request(ctx, r)
	if err != nil {
		return nil, c.Explain(err)
	}
	outcome := map[TopicPartition]error{}
	for _, t := range response.(*kmsg.AlterReplicaLogDirsResponse).Topics {
		for _, p := range t.Partitions {
			outcome[TopicPartition{t.Topic, p.Partition}] = codeError(p.ErrorCode, nil)
		}
	}
	results := make([]PartitionResult, 0, len(partitions))
	for _, at := range partitions {
		err, ok := outcome[at]
		if !ok {
			err = errNoAnswer
		}
		results = append(results, PartitionResult{at, err})
	}
	return results, nil
}
