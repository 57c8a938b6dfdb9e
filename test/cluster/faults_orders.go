package main

import (
	"context"
	"fmt"
)

// midOrders is a round of a creation and of an election in turn, in which the controller has written states of many
// partitions, and is killed before it has told everybody.
func midOrders(ctx context.Context, t *trial, round int) error {
	if round%2 == 0 {
		return midOrdersOfCreation(ctx, t, round)
	}
	return midOrdersOfElection(ctx, t, round)
}

// nobody is no broker's id.
const nobody = -1

// midOrdersOfCreation is a round in which one broker has made its logs of a new topic and the other one has not heard of
// it, or in every second one of these rounds neither has.
func midOrdersOfCreation(ctx context.Context, t *trial, round int) error {
	topic := fmt.Sprintf("batch-%d", round)
	head, err := controller(ctx, t)
	if err != nil {
		return err
	}
	kept, others := t.others(head), []*broker(nil)
	if round%4 == 0 {
		kept, others = kept[:1], kept[1:]
	}
	t.relay.keepBack(leading(topic, nobody), kept...)
	defer t.relay.lose()
	finish := aside(ctx, func(ctx context.Context) { _, _ = t.load.admin.CreateTopic(ctx, widePartitions, 3, nil, topic) })
	if head, err = t.caught(ctx); err != nil {
		return err
	}
	if err := t.load.until(ctx, "the other broker to make its logs", func(context.Context) error {
		return each(others, func(b *broker) error { return b.holdsAll(topic, widePartitions) })
	}); err != nil {
		return err
	}
	t.kill(head)
	if err := each(kept, func(b *broker) error { return b.holdsNone(topic) }); err != nil {
		return err
	}
	t.fault("controller killed before all had orders for new partitions")
	t.relay.lose()
	if err := t.replaced(ctx, head, finish); err != nil {
		return err
	}
	if err := t.complete(ctx, topic, widePartitions); err != nil {
		return err
	}
	return t.vanished(ctx, topic)
}

// midOrdersOfElection is a round in which a broker is killed, and the controller when it has elected leaders and not told
// the third one.
func midOrdersOfElection(ctx context.Context, t *trial, _ int) error {
	head, err := controller(ctx, t)
	if err != nil {
		return err
	}
	others := t.others(head)
	t.random.Shuffle(2, func(i, j int) { others[i], others[j] = others[j], others[i] })
	t.relay.keepBack(leading(wide, others[0].id), others[1])
	defer t.relay.lose()
	t.kill(others[0])
	if head, err = t.caught(ctx); err != nil {
		return err
	}
	t.kill(head)
	t.fault("controller killed before the last broker had orders of an election")
	t.relay.lose()
	if err := t.pause(ctx, 0, second(1)); err != nil {
		return err
	}
	if err := start([]*broker{head, others[0]}); err != nil {
		return err
	}
	if err := t.servedAgain(ctx, "both are back"); err != nil {
		return err
	}
	return t.complete(ctx, wide, widePartitions)
}
