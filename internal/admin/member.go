package admin

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// leaveTimeout bounds the last commit and the farewell to the group.
const leaveTimeout = 5 * time.Second

// MemberOptions are the options of a client that reads as a member of a group with [Client.Consume].
func MemberOptions(group string, topics []string) []kgo.Opt {
	return []kgo.Opt{
		kgo.ConsumerGroup(group), kgo.ConsumeTopics(topics...), kgo.AutoCommitMarks(),
		kgo.Balancers(kgo.CooperativeStickyBalancer(), kgo.RangeBalancer()),
	}
}

// Consume hands the records that the client was made to read to the sink, until the sink returns an error
// or ctx ends, which is no error. With commit, what the sink has taken is committed as it goes and at the
// end; a group is left.
func (c *Client) Consume(ctx context.Context, commit bool, sink Sink) error {
	return c.leave(ctx, commit, c.consume(ctx, sink))
}

// ReadAsMember is [Client.Read] with a reading of [NewMemberReading]: what the sink has taken is committed,
// and the group is left.
func (c *Client) ReadAsMember(ctx context.Context, r *Reading, sink Sink) error {
	return c.leave(ctx, true, c.Read(ctx, r, sink))
}

// leave commits and says farewell to the group; err is what ended the reading.
//
// It has its own time, since ctx is often the one that a signal has ended: without a farewell the group would
// wait for the session to time out.
func (c *Client) leave(ctx context.Context, commit bool, err error) error {
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if commit {
		if failed := c.kafka.CommitMarkedOffsets(ending); err == nil && failed != nil {
			err = c.Explain(failed)
		}
	}
	// Whether the farewell arrives changes nothing for us: otherwise the session runs out.
	_ = c.kafka.LeaveGroupContext(ending)
	return err
}

func (c *Client) consume(ctx context.Context, sink Sink) error {
	for {
		fetches := c.kafka.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := c.fetchError(fetches); err != nil {
			return err
		}
		err := c.handOn(fetches, sink)
		if errors.Is(err, ErrStop) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// handOn gives records to the sink and marks them for the next commit once it has them for good.
func (c *Client) handOn(fetches kgo.Fetches, sink Sink) error {
	var taken []*kgo.Record
	var stop error
	for records := fetches.RecordIter(); !records.Done() && stop == nil; {
		record := records.Next()
		stop = sink.Each(record)
		if stop == nil || errors.Is(stop, ErrStop) {
			taken = append(taken, record)
		}
	}
	if err := sink.Batch(); err != nil {
		return err
	}
	c.kafka.MarkCommitRecords(taken...)
	return stop
}
