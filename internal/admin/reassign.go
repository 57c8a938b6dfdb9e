package admin

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/peer"
)

// Reassignment gives one partition other replicas (KIP-455).
type Reassignment struct {
	TopicPartition
	// Replicas is what is wanted, the preferred leader first; nil takes back what is under way.
	Replicas []int32
	// KeepFactor has it refused where it would change the number of replicas (KIP-860). Brokers that do not know that,
	// as Kafka 3.9, do not refuse; nor is it asked for where other reassignments of the same request want the change.
	KeepFactor bool
}

// Reassign begins, changes or takes back reassignments, each for itself. What was begun is carried on by the
// cluster, whatever becomes of this client. The results are in the order of what was asked.
func (c *Client) Reassign(ctx context.Context, wanted []Reassignment) ([]PartitionResult, error) {
	r := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	r.TimeoutMillis = int32(c.timeout.Milliseconds())
	r.AllowReplicationFactorChange = slices.ContainsFunc(wanted, func(w Reassignment) bool { return !w.KeepFactor })
	for _, w := range wanted {
		i := slices.IndexFunc(r.Topics, func(t kmsg.AlterPartitionAssignmentsRequestTopic) bool { return t.Topic == w.Topic })
		if i < 0 {
			t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
			t.Topic = w.Topic
			r.Topics, i = append(r.Topics, t), len(r.Topics)
		}
		p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		p.Partition, p.Replicas = w.Partition, w.Replicas
		r.Topics[i].Partitions = append(r.Topics[i].Partitions, p)
	}
	response, err := request[*kmsg.AlterPartitionAssignmentsResponse](ctx, c, r)
	if err != nil {
		return nil, err
	}
	if err := codeError(response.ErrorCode, response.ErrorMessage); err != nil {
		return nil, err
	}
	outcome := map[TopicPartition]error{}
	for _, t := range response.Topics {
		for _, p := range t.Partitions {
			outcome[TopicPartition{t.Topic, p.Partition}] = codeError(p.ErrorCode, p.ErrorMessage)
		}
	}
	results := make([]PartitionResult, 0, len(wanted))
	for _, w := range wanted {
		err, ok := outcome[w.TopicPartition]
		if !ok {
			err = errNoAnswer
		}
		results = append(results, PartitionResult{w.TopicPartition, err})
	}
	return results, nil
}

// Ongoing is a reassignment under way.
type Ongoing struct {
	TopicPartition
	// Replicas are old and new ones together; Adding and Removing those of them that come and go.
	Replicas, Adding, Removing []int32
}

// Target is the assignment when it has ended.
func (o Ongoing) Target() []int32 { return less(o.Replicas, o.Removing) }

// Origin are the replicas that it began with, not necessarily in their order.
func (o Ongoing) Origin() []int32 { return less(o.Replicas, o.Adding) }

// Reassignments lists those under way, by topic and partition.
func (c *Client) Reassignments(ctx context.Context) ([]Ongoing, error) {
	all, _, err := c.undertakings(ctx)
	return all, err
}

// undertakings lists the reassignments under way, by topic and partition, and when unclean elections will be held: a
// controller of Kafka's holds them at once, and tells nothing.
func (c *Client) undertakings(ctx context.Context) ([]Ongoing, map[TopicPartition]time.Time, error) {
	r := kmsg.NewPtrListPartitionReassignmentsRequest()
	r.TimeoutMillis = int32(c.timeout.Milliseconds())
	r.Topics = nil // all
	peer.AskForWaits(&r.UnknownTags)
	response, err := request[*kmsg.ListPartitionReassignmentsResponse](ctx, c, r)
	if err != nil {
		return nil, nil, err
	}
	if err := codeError(response.ErrorCode, response.ErrorMessage); err != nil {
		return nil, nil, err
	}
	elections := map[TopicPartition]time.Time{}
	for _, w := range peer.Waits(&response.UnknownTags) {
		elections[TopicPartition{w.Topic, w.Partition}] = time.Now().Add(w.Left)
	}
	var all []Ongoing
	for _, t := range response.Topics {
		for _, p := range t.Partitions {
			all = append(all, Ongoing{TopicPartition{t.Topic, p.Partition}, p.Replicas, p.AddingReplicas, p.RemovingReplicas})
		}
	}
	slices.SortFunc(all, func(a, b Ongoing) int { return a.Compare(b.TopicPartition) })
	return all, elections, nil
}

// AwaitEnds waits until the reassignments of partitions have ended, also those that cannot be taken back any more
// because the old replicas are being deleted, for no longer than a request may take. It returns those that have not.
func (c *Client) AwaitEnds(ctx context.Context, partitions []TopicPartition) ([]TopicPartition, error) {
	tick := time.NewTicker(movesPoll)
	defer tick.Stop()
	for patience := time.After(c.timeout); ; {
		ongoing, err := c.Reassignments(ctx)
		if err != nil {
			return nil, err
		}
		var left []TopicPartition
		for _, o := range ongoing {
			if slices.Contains(partitions, o.TopicPartition) {
				left = append(left, o.TopicPartition)
			}
		}
		if len(left) == 0 {
			return nil, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-patience:
			return left, nil
		case <-tick.C:
		}
	}
}

// ElectPreferred makes the first replicas of partitions their leaders (KIP-460), where they are not. The results name
// the partitions whose first replica cannot lead now.
func (c *Client) ElectPreferred(ctx context.Context, partitions []TopicPartition) ([]PartitionResult, error) {
	r := kmsg.NewPtrElectLeadersRequest()
	r.TimeoutMillis = int32(c.timeout.Milliseconds())
	for _, at := range partitions {
		i := slices.IndexFunc(r.Topics, func(t kmsg.ElectLeadersRequestTopic) bool { return t.Topic == at.Topic })
		if i < 0 {
			t := kmsg.NewElectLeadersRequestTopic()
			t.Topic = at.Topic
			r.Topics, i = append(r.Topics, t), len(r.Topics)
		}
		r.Topics[i].Partitions = append(r.Topics[i].Partitions, at.Partition)
	}
	response, err := request[*kmsg.ElectLeadersResponse](ctx, c, r)
	if err != nil {
		return nil, err
	}
	if err := codeError(response.ErrorCode, nil); err != nil {
		return nil, err
	}
	var failed []PartitionResult
	for _, t := range response.Topics {
		for _, p := range t.Partitions {
			if err := codeError(p.ErrorCode, p.ErrorMessage); err != nil && CodeName(err) != "ELECTION_NOT_NEEDED" {
				failed = append(failed, PartitionResult{TopicPartition{t.Topic, p.Partition}, err})
			}
		}
	}
	return failed, nil
}

// less is a list less another one, in order.
func less(ids, without []int32) []int32 {
	return slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return slices.Contains(without, id) })
}
