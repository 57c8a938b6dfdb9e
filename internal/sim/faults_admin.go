package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// reassignFault gives a partition other replicas, or the same ones in another order.
func reassignFault(d dice, n uint64, p *plan) fault {
	partition, first := int32(d.throw("partition", n)%partitions), int(d.throw("first replica", n)%uint64(p.brokers))
	step := 1 + int(d.throw("step", n)%2) // 3 and 5 have no common divisor with it
	var replicas []int32
	for i := range p.replicas {
		replicas = append(replicas, int32((first+i*step)%p.brokers))
	}
	return fault{kind: "reassignment", text: fmt.Sprintf("of partition %d to %v", partition, replicas), do: func(ctx context.Context, w *world) {
		w.administer(n, func(c *client) error {
			q := kmsg.NewPtrAlterPartitionAssignmentsRequest()
			q.Version, q.TimeoutMillis = 0, 3000
			q.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{
				Topic: topic, Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Partition: partition, Replicas: replicas}},
			}}
			answer, err := c.ask(ctx, c.anybody(), q)
			if err != nil {
				return err
			}
			r := answer.(*kmsg.AlterPartitionAssignmentsResponse)
			if r.ErrorCode != 0 {
				return protocol.Code(r.ErrorCode)
			}
			return codeError(r.Topics[0].Partitions[0].ErrorCode)
		})
	}}
}

// minimumFault changes min.insync.replicas of the topic under test. With a minimum of one a record that only the
// fragile machine has may be acknowledged: so either machines lose their power, or this.
func minimumFault(d dice, n uint64, p *plan) fault {
	minimum := fmt.Sprint(1 + d.throw("minimum", n)%2)
	return fault{kind: "minimum", text: "is " + minimum, do: func(ctx context.Context, w *world) {
		if p := &w.plan; p.has("power") || p.has("old life") {
			return
		}
		w.administer(n, func(c *client) error {
			q := kmsg.NewPtrIncrementalAlterConfigsRequest()
			q.Version = 0
			q.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{
				ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: topic,
				Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "min.insync.replicas", Value: &minimum}},
			}}
			answer, err := c.ask(ctx, c.anybody(), q)
			if err != nil {
				return err
			}
			return codeError(answer.(*kmsg.IncrementalAlterConfigsResponse).Resources[0].ErrorCode)
		})
	}}
}

// churned are the topics that come and go.
var churned = [...]string{"come", "go"}

// churnFault deletes a topic and makes it anew.
func churnFault(d dice, n uint64, _ *plan) fault {
	name := churned[d.throw("churned", n)%uint64(len(churned))]
	return fault{kind: "churn", text: name, do: func(ctx context.Context, w *world) {
		w.administer(n, func(c *client) error {
			if err := c.deleteTopic(ctx, name); err != nil && protocol.CodeOf(err) != protocol.UnknownTopicOrPartition {
				return err
			}
			if err := c.createTopic(ctx, name, 2, w.plan.replicas, nil); err != nil {
				return err
			}
			_, _, err := c.produce(ctx, protocol.TopicPartition{Topic: name}, valueBatch(fmt.Sprintf("%s/%d", name, n)))
			return err
		})
	}}
}

// administer runs one operation of an administrator, who does not try again.
func (w *world) administer(n uint64, do func(*client) error) {
	c := newClient(w, fmt.Sprintf("admin-%d", n))
	w.ending.Go(func() {
		defer c.close()
		if err := do(c); err != nil {
			w.journal.note("%s: %v", c.host, err)
			w.history.count("administration: failed", 1)
			return
		}
		w.history.count("administration: done", 1)
	})
}

// anybody is a broker to ask.
func (c *client) anybody() int32 {
	c.asked++
	return int32(c.world.dice.throw("whom "+c.host+" asks", c.asked) % uint64(len(c.world.machines)))
}

// codeError is the error of a code; nil of none.
func codeError(code int16) error {
	if code == 0 {
		return nil
	}
	return protocol.Code(code)
}

func (c *client) createTopic(ctx context.Context, name string, partitions int32, replicas int, configs [][2]string) error {
	q := kmsg.NewPtrCreateTopicsRequest()
	q.Version, q.TimeoutMillis = 5, 10_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, int16(replicas)
	for _, c := range configs {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: c[0], Value: &c[1]})
	}
	q.Topics = append(q.Topics, t)
	answer, err := c.ask(ctx, c.anybody(), q)
	if err != nil {
		return err
	}
	return codeError(answer.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode)
}

func (c *client) deleteTopic(ctx context.Context, name string) error {
	q := kmsg.NewPtrDeleteTopicsRequest()
	q.Version, q.TimeoutMillis, q.TopicNames = 4, 3000, []string{name}
	answer, err := c.ask(ctx, c.anybody(), q)
	if err != nil {
		return err
	}
	return codeError(answer.(*kmsg.DeleteTopicsResponse).Topics[0].ErrorCode)
}

// checkChurn deletes and makes each topic once more when all is well: a new one is empty, whatever became of the
// earlier ones of its name.
func (w *world) checkChurn(ctx context.Context, admin *client) {
	if !w.plan.has("churn") {
		return
	}
	for _, name := range churned {
		tp, value := protocol.TopicPartition{Topic: name}, name+"/last"
		var last error
		steps := []func() error{
			func() error {
				if err := admin.deleteTopic(ctx, name); protocol.CodeOf(err) != protocol.UnknownTopicOrPartition {
					return err
				}
				return nil
			},
			func() error {
				if err := admin.createTopic(ctx, name, 2, w.plan.replicas, nil); protocol.CodeOf(err) != protocol.TopicAlreadyExists {
					return err
				}
				return nil
			},
			func() error { _, _, err := admin.produce(ctx, tp, valueBatch(value)); return err },
		}
		for _, step := range steps {
			if last = w.insist(step); last != nil {
				w.history.violate("topic %s cannot be made anew: %v", name, last)
				return
			}
		}
		got, err := admin.fetch(ctx, tp, 0)
		if err != nil {
			w.history.violate("topic %s cannot be read: %v", name, err)
			return
		}
		for _, found := range valuesOf(got.RecordBatches) {
			if found != value {
				w.history.violate("topic %s was made anew, and has %q of an earlier one", name, found)
			}
		}
		w.history.count("topics made anew", 1)
	}
}

// insist tries until it works, for as long as a recovery may take.
func (w *world) insist(step func() error) (err error) {
	for end := time.Now().Add(recoveryLimit); time.Now().Before(end); <-time.After(pause) {
		if err = step(); err == nil {
			return nil
		}
	}
	return err
}
