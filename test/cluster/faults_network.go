package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// link is a pair of hosts.
type link struct{ from, to host }

// ways are how a link between two hosts can be cut.
var ways = []struct {
	name  string
	links func(a, b host) []link
}{
	{"both ways", func(a, b host) []link { return []link{{a, b}, {b, a}} }},
	{"outward", func(a, b host) []link { return []link{{a, b}} }},
	{"inward", func(a, b host) []link { return []link{{b, a}} }},
}

// severed cuts links while do goes on, and looks whether anything was lost on them.
func (t *trial) severed(links []link, do func() error) error {
	before, err := t.network.lost()
	if err != nil {
		return err
	}
	for _, l := range links {
		if err := t.network.cut(l.from, l.to); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	after, err := t.network.lost()
	if err != nil {
		return err
	}
	if after == before {
		return fmt.Errorf("nothing was sent on the links that were cut")
	}
	t.faults["packets lost"] += after - before
	return t.network.mendAll()
}

// cutOff cuts one broker off from others, this way and that in turn, for longer than its session; from ZooKeeper until that
// has ended. Clients must be served meanwhile where whole says so, else when the link is mended.
func cutOff(what string, whole bool, who []victim, from func(*trial, *broker) []host) func(context.Context, *trial, int) error {
	return func(ctx context.Context, t *trial, round int) error {
		b, err := who[round/len(ways)%len(who)](ctx, t)
		if err != nil {
			return err
		}
		way := ways[round%len(ways)]
		var links []link
		others := from(t, b)
		for _, other := range others {
			links = append(links, way.links(b.host, other)...)
		}
		t.fault(what + " cut " + way.name)
		if err := t.severed(links, func() error {
			if !whole {
				return t.pause(ctx, t.settings.session, t.settings.session+3*time.Second)
			}
			if err := t.servedAgain(ctx, fmt.Sprintf("broker %d is cut off %s", b.id, way.name)); err != nil {
				return err
			}
			if slices.Contains(others, t.network.store) {
				if err := t.dead(ctx, b); err != nil {
					return err
				}
				if err := t.servedAgain(ctx, fmt.Sprintf("the session of broker %d has ended", b.id)); err != nil {
					return err
				}
			}
			return t.pause(ctx, t.settings.session/2, t.settings.session)
		}); err != nil {
			return err
		}
		return t.servedAgain(ctx, "the links are mended")
	}
}

// dead waits until the session of a broker has ended that is cut off from ZooKeeper.
func (t *trial) dead(ctx context.Context, b *broker) error {
	if err := t.load.until(ctx, "a session to end", func(ctx context.Context) error {
		registered, err := t.registrations(ctx)
		if err == nil && registered[b.id] != 0 {
			err = fmt.Errorf("broker %d is registered", b.id)
		}
		return err
	}); err != nil {
		return err
	}
	t.fault("session ended")
	return nil
}

// heads are the brokers for which a cut matters most.
var heads = []victim{leader, controller}

// between is a round in which the link between two brokers is cut. Neither controls: they shrink their sets with the
// help of the third one, and clients are served.
func between(ctx context.Context, t *trial, round int) error {
	head, err := controller(ctx, t)
	if err != nil {
		return err
	}
	pair := t.others(head)
	one := func(context.Context, *trial) (*broker, error) { return pair[0], nil }
	other := func(*trial, *broker) []host { return []host{pair[1].host} }
	return cutOff("broker-broker", true, []victim{one}, other)(ctx, t, round)
}

// oneOther is one other broker, allOthers are both.
func oneOther(t *trial, b *broker) []host { return []host{t.others(b)[t.random.IntN(2)].host} }

func allOthers(t *trial, b *broker) []host {
	var all []host
	for _, other := range t.others(b) {
		all = append(all, other.host)
	}
	return all
}

func theStore(t *trial, _ *broker) []host { return []host{t.network.store} }

func theClients(t *trial, _ *broker) []host { return []host{t.network.clients} }

// everything is all hosts but the clients: who is cut off from it leads nothing any more.
func everything(t *trial, b *broker) []host { return append(allOthers(t, b), t.network.store) }

// movedMeanwhile is a round in which replicas move away from a broker that runs and is dead to the controller, since it
// cannot reach ZooKeeper. Nobody tells it: when the link is mended it finds by itself that their logs have to go.
func movedMeanwhile(ctx context.Context, t *trial, round int) error {
	b := t.brokers[round%3]
	one, other := t.others(b)[0], t.others(b)[1]
	if err := t.wandered(ctx, []int32{int32(b.id), int32(one.id)}); err != nil {
		return err
	}
	if err := b.holdsAll(wandering, wanderingPartitions); err != nil {
		return err
	}
	if err := t.severed([]link{{b.host, t.network.store}, {t.network.store, b.host}}, func() error {
		if err := t.dead(ctx, b); err != nil {
			return err
		}
		return t.wandered(ctx, []int32{int32(one.id), int32(other.id)})
	}); err != nil {
		return err
	}
	t.fault("replicas moved away from a broker that was not registered")
	if err := t.servedAgain(ctx, "the link is mended"); err != nil {
		return err
	}
	return t.load.until(ctx, "the logs to be deleted", func(context.Context) error { return b.holdsNone(wandering) })
}
