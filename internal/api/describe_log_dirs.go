package api

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/logdir"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// describeLogDirs tells of the log directories and what lies in them (versions 0 to 5). A null list of
// topics means all; a topic without a partition in a directory is not listed there.
//
//	1  quotas first, then muting      3  an error above all
//	2  flexible                       4  size of the volume (KIP-827)      5  cordoned (KIP-1066)
//
// Only topics with a partition in a directory stand there, as tools count them (KAFKA-16807).
func (a *API) describeLogDirs(r *Request, q *kmsg.DescribeLogDirsRequest) *kmsg.DescribeLogDirsResponse {
	response := respondTo(r, kmsg.NewPtrDescribeLogDirsResponse())
	for _, info := range a.Dirs.Dirs() {
		dir := kmsg.NewDescribeLogDirsResponseDir()
		dir.Dir, dir.IsCordoned = info.Path, info.Cordoned
		dir.TotalBytes, dir.UsableBytes = int64(info.Total), int64(info.Usable)
		if info.Err != nil {
			dir.ErrorCode, dir.TotalBytes, dir.UsableBytes = int16(protocol.KafkaStorageError), -1, -1
		}
		a.describeLogs(&dir, q, info)
		response.Dirs = append(response.Dirs, dir)
	}
	return response
}

// describeLogs adds the partitions of a directory, grouped by topic.
func (a *API) describeLogs(dir *kmsg.DescribeLogDirsResponseDir, q *kmsg.DescribeLogDirsRequest, info logdir.DirInfo) {
	topics := map[string]int{}
	add := func(l *log.Log, future bool) {
		tp := l.Partition()
		if !wantsLogDir(q, tp) {
			return
		}
		at, ok := topics[tp.Topic]
		if !ok {
			at = len(dir.Topics)
			topics[tp.Topic] = at
			topic := kmsg.NewDescribeLogDirsResponseDirTopic()
			topic.Topic = tp.Topic
			dir.Topics = append(dir.Topics, topic)
		}
		p := kmsg.NewDescribeLogDirsResponseDirTopicPartition()
		p.Partition, p.Size, p.IsFuture = tp.Partition, l.Size(), future
		// A copy lags behind the log that it will replace, a log behind what is committed.
		if current := a.Dirs.Get(tp); future && current != nil {
			p.OffsetLag = int64(max(current.EndOffset()-l.EndOffset(), 0))
		} else {
			p.OffsetLag = int64(max(l.HighWatermark()-l.EndOffset(), 0))
		}
		dir.Topics[at].Partitions = append(dir.Topics[at].Partitions, p)
	}
	for _, l := range info.Logs {
		add(l, false)
	}
	for _, l := range info.Futures {
		add(l, true)
	}
}

// wantsLogDir reports whether a request asks for a partition.
func wantsLogDir(q *kmsg.DescribeLogDirsRequest, tp protocol.TopicPartition) bool {
	if q.Topics == nil {
		return true
	}
	return slices.ContainsFunc(q.Topics, func(t kmsg.DescribeLogDirsRequestTopic) bool {
		return t.Topic == tp.Topic && slices.Contains(t.Partitions, tp.Partition)
	})
}
