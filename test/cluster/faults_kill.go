package main

import (
	"context"
	"fmt"
)

// victim chooses the broker that a fault is for.
type victim func(ctx context.Context, t *trial) (*broker, error)

func leader(ctx context.Context, t *trial) (*broker, error) {
	leader, _, err := t.load.heads(ctx)
	return t.brokers[max(leader, 0)], err
}

func controller(ctx context.Context, t *trial) (*broker, error) {
	_, controller, err := t.load.heads(ctx)
	return t.brokers[max(controller, 0)], err
}

// follower is another broker than the controller.
func follower(ctx context.Context, t *trial) (*broker, error) {
	_, controller, err := t.load.heads(ctx)
	return t.brokers[(max(controller, 0)+1+t.random.IntN(2))%3], err
}

// killed is a round in which one broker is killed, and starts again when the others have taken over.
func killed(who victim) func(context.Context, *trial, int) error {
	return func(ctx context.Context, t *trial, _ int) error {
		b, err := who(ctx, t)
		if err != nil {
			return err
		}
		t.kill(b)
		if err := t.servedAgain(ctx, fmt.Sprintf("broker %d is down", b.id)); err != nil {
			return err
		}
		if err := t.pause(ctx, 0, 0+second(2)); err != nil {
			return err
		}
		return b.Start()
	}
}

// back is a round in which the controller, which leads partitions too, comes back before its session expires.
func back(ctx context.Context, t *trial, _ int) error {
	b, err := controller(ctx, t)
	if err != nil {
		return err
	}
	t.kill(b)
	if err := t.pause(ctx, 0, second(1)); err != nil {
		return err
	}
	if err := b.Start(); err != nil {
		return err
	}
	return t.servedAgain(ctx, "the controller came back at once")
}

// everybody is a round in which all brokers are killed at once.
func everybody(ctx context.Context, t *trial, _ int) error {
	t.kill(t.brokers...)
	if err := start(t.brokers); err != nil {
		return err
	}
	return t.servedAgain(ctx, "all brokers were killed")
}

// stopped is a round in which one broker stops in order: leaderships are handed over.
func stopped(ctx context.Context, t *trial, round int) error {
	b := t.brokers[round%3]
	if err := b.Stop(); err != nil {
		return err
	}
	t.fault("SIGTERM")
	if err := t.servedAgain(ctx, fmt.Sprintf("broker %d has stopped", b.id)); err != nil {
		return err
	}
	return b.Start()
}

// paused is a round in which one broker stands still for longer than its session, and then goes on as if nothing had
// happened.
func paused(who victim) func(context.Context, *trial, int) error {
	return func(ctx context.Context, t *trial, _ int) error {
		b, err := who(ctx, t)
		if err != nil {
			return err
		}
		if err := b.Pause(); err != nil {
			return err
		}
		t.fault("SIGSTOP")
		if err := t.servedAgain(ctx, fmt.Sprintf("broker %d stands still", b.id)); err != nil {
			return err
		}
		if err := t.pause(ctx, t.settings.session/2, t.settings.session); err != nil {
			return err
		}
		return b.Resume()
	}
}

// mix is a round of each of the usual faults in turn.
func mix(ctx context.Context, t *trial, round int) error {
	kinds := []func(context.Context, *trial, int) error{
		killed(leader), killed(controller), killed(follower), stopped, everybody, paused(leader),
	}
	return kinds[round%len(kinds)](ctx, t, round)
}
