package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/replica"
)

// The timestamps of ListOffsets that are no times.
const (
	latestOffset        = -1
	earliestOffset      = -2
	maxTimestampOffset  = -3
	earliestLocalOffset = -4
	latestTieredOffset  = -5
	earliestPending     = -6
)

// since is the first version that knows a special timestamp.
var sinceListOffsets = map[int64]int16{maxTimestampOffset: 7, earliestLocalOffset: 8, latestTieredOffset: 9, earliestPending: 11}

// listOffsets finds offsets by time (versions 1 to 11). Isolation bounds what "latest" means: the last
// stable offset for read_committed, else the high watermark. A time that no record reaches gives -1. A
// partition that is asked for twice is answered once, and refused.
//
//	1  one offset a partition (KIP-79)         7  the largest timestamp (KIP-734)
//	2  isolation level, throttle time          8  the start of what is local (KIP-405)
//	4  the client's leader epoch (KIP-320)     9  the end of what is tiered (KIP-1005)
//	                                          11  the start of what is to be tiered (KIP-1023)
//
// There is no tiered storage here: everything is local, and nothing tiered.
func (a *API) listOffsets(r *Request, q *kmsg.ListOffsetsRequest) *kmsg.ListOffsetsResponse {
	response := respondTo(r, kmsg.NewPtrListOffsetsResponse())
	asked := map[protocol.TopicPartition]int{}
	for i := range q.Topics {
		for _, p := range q.Topics[i].Partitions {
			asked[protocol.TopicPartition{Topic: q.Topics[i].Topic, Partition: p.Partition}]++
		}
	}
	for _, t := range q.Topics {
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic = t.Topic
		for i := range t.Partitions {
			tp := protocol.TopicPartition{Topic: t.Topic, Partition: t.Partitions[i].Partition}
			switch asked[tp] {
			case 1:
				topic.Partitions = append(topic.Partitions, a.listOffset(q, t.Topic, &t.Partitions[i]))
			case 0: // answered
			default:
				topic.Partitions = append(topic.Partitions, noOffset(tp.Partition, protocol.InvalidRequest))
				asked[tp] = 0
			}
		}
		if len(topic.Partitions) > 0 {
			response.Topics = append(response.Topics, topic)
		}
	}
	return response
}

// noOffset is an answer without an offset.
func noOffset(partition int32, err error) kmsg.ListOffsetsResponseTopicPartition {
	answer := kmsg.NewListOffsetsResponseTopicPartition()
	answer.Partition, answer.Timestamp, answer.Offset, answer.LeaderEpoch = partition, -1, -1, -1
	answer.ErrorCode = int16(protocol.CodeOf(err))
	return answer
}

func (a *API) listOffset(q *kmsg.ListOffsetsRequest, topic string, asked *kmsg.ListOffsetsRequestTopicPartition) kmsg.ListOffsetsResponseTopicPartition {
	answer := noOffset(asked.Partition, nil)
	if q.IsolationLevel < 0 || q.IsolationLevel > 1 {
		return noOffset(asked.Partition, protocol.UnknownServerError) // Kafka's answer too
	}
	p, err := a.Replicas.Partition(protocol.TopicPartition{Topic: topic, Partition: asked.Partition})
	if err == nil {
		err = p.CheckLeader(protocol.LeaderEpoch(asked.CurrentLeaderEpoch))
	}
	if err == nil && q.Version < sinceListOffsets[asked.Timestamp] {
		err = protocol.UnsupportedVersion
	}
	if err == nil {
		var found log.Found
		if found, err = findOffset(p, asked.Timestamp, limitOf(p, q)); err == nil {
			answer.Offset, answer.Timestamp, answer.LeaderEpoch = int64(found.Offset), found.Timestamp, int32(found.Epoch)
		}
	}
	answer.ErrorCode = int16(protocol.CodeOf(err))
	if protocol.CodeOf(err) == protocol.OffsetNotAvailable && q.Version < 5 { // which do not know it
		answer.ErrorCode = int16(protocol.LeaderNotAvailable)
	}
	return answer
}

// limitOf is up to where the asker may read; -1 where that cannot be said yet, since a new leader does not know
// what earlier ones have committed. A follower may read all.
func limitOf(p *replica.Partition, q *kmsg.ListOffsetsRequest) protocol.Offset {
	bounds := p.Bounds()
	switch {
	case q.ReplicaID >= 0:
		return bounds.End
	case !p.Readable():
		return protocol.NoOffset
	}
	return bounds.Limit(q.IsolationLevel == 1)
}

// findOffset looks one timestamp up; an offset of -1 is "none". Where limit is not known, and the answer depends
// on it, that is OFFSET_NOT_AVAILABLE.
//
//	-1   limit: last stable offset or high watermark       -4   as -2: all is local
//	-2   log start                                         -5   none: nothing is tiered
//	-3   the record with the largest timestamp             -6   none
//	t    the first record with a time of t or later; from the time index, then in the batch
func findOffset(p *replica.Partition, timestamp int64, limit protocol.Offset) (log.Found, error) {
	none := log.Found{Offset: protocol.NoOffset, Timestamp: -1, Epoch: protocol.NoLeaderEpoch}
	bounds, l := p.Bounds(), p.Log()
	epoch, _ := p.Leader()
	switch timestamp {
	case latestOffset:
		if limit < 0 {
			return none, protocol.OffsetNotAvailable
		}
		return log.Found{Offset: limit, Timestamp: -1, Epoch: epoch}, nil
	case earliestOffset, earliestLocalOffset:
		none.Offset = bounds.Start
		none.Epoch = epoch
		if l != nil {
			none.Epoch = l.EpochAt(bounds.Start)
		}
		return none, nil
	case latestTieredOffset, earliestPending:
		return none, nil
	}
	if l == nil {
		return none, nil
	}
	var found log.Found
	var err error
	ok := true
	if timestamp == maxTimestampOffset {
		found, err = l.MaxTimestamp()
	} else {
		found, ok, err = l.OffsetForTime(timestamp)
	}
	if err != nil {
		return none, err
	}
	if ok && limit < 0 {
		// What lies below the watermark is safe, whatever becomes of the rest.
		limit = bounds.HighWatermark
		if found.Offset >= limit {
			return none, protocol.OffsetNotAvailable
		}
	}
	if !ok || found.Offset >= limit {
		return none, nil
	}
	return found, nil
}
