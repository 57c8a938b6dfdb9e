package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// unmoved does something during which no leader and no in-sync set of orders may change.
func (t *trial) unmoved(ctx context.Context, do func() error) error {
	if err := t.load.balanced(ctx); err != nil {
		return err
	}
	before, err := t.states(ctx, orders, t.settings.partitions)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	after, err := t.states(ctx, orders, t.settings.partitions)
	if err != nil {
		return err
	}
	for i := range before {
		if !before[i].Equal(after[i]) {
			return fmt.Errorf("the state of %s-%d was %+v and is %+v", orders, i, before[i], after[i])
		}
	}
	return nil
}

// balanced waits until the preferred replicas lead, after which nothing changes by itself.
func (l *load) balanced(ctx context.Context) error {
	return l.until(ctx, "preferred leaders", func(ctx context.Context) error {
		topics, err := l.admin.ListTopics(ctx, orders)
		if err != nil {
			return err
		}
		for _, p := range topics[orders].Partitions {
			if p.Leader != p.Replicas[0] || len(p.ISR) != len(p.Replicas) {
				return fmt.Errorf("%s-%d has leader %d, replicas %v and in-sync replicas %v", orders, p.Partition, p.Leader, p.Replicas, p.ISR)
			}
		}
		return nil
	})
}

// keepsServing looks whether every partition is acknowledged again and again for some time.
func (t *trial) keepsServing(ctx context.Context, what string, d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := t.servedAgain(ctx, what); err != nil {
			return err
		}
		if err := wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// writable waits until the tree takes changes again: a topic is made and deleted.
func (t *trial) writable(ctx context.Context) error {
	name := fmt.Sprintf("probe-%d", t.random.Uint32())
	if err := t.load.until(ctx, "a topic to be created", func(ctx context.Context) error {
		_, err := t.load.admin.CreateTopic(ctx, 1, 3, nil, name)
		return exceptExists(err)
	}); err != nil {
		return err
	}
	return t.load.until(ctx, "a topic to be deleted", func(ctx context.Context) error {
		_, err := t.load.admin.DeleteTopic(ctx, name)
		return exceptUnknown(err)
	})
}

// serverGone is a round in which the server of an ensemble that leads is killed.
func serverGone(ctx context.Context, t *trial, _ int) error {
	return t.unmoved(ctx, func() error {
		s, err := t.servers.Leader()
		if err != nil {
			return err
		}
		s.Kill()
		t.fault("kill -9 of ZooKeeper's leader")
		if err := t.keepsServing(ctx, "ZooKeeper has lost its leader", time.Second); err != nil {
			return err
		}
		if err := t.writable(ctx); err != nil {
			return err
		}
		return s.Restart()
	})
}

// longOutage is how long the store is away in the first round; in the others it is a little longer than a session.
const longOutage = 2 * time.Minute

// storeGone is a round in which so many ZooKeepers are killed that none serves, for longer than the sessions.
func storeGone(kill int, name string) func(context.Context, *trial, int) error {
	return func(ctx context.Context, t *trial, round int) error {
		outage := t.settings.session + 2*time.Second
		if round == 0 {
			outage = longOutage
		}
		return t.unmoved(ctx, func() error {
			for _, s := range t.servers[:kill] {
				s.Kill()
			}
			t.fault(name)
			if err := t.keepsServing(ctx, "ZooKeeper is gone", outage); err != nil {
				return err
			}
			for _, s := range t.servers[:kill] {
				if err := s.Restart(); err != nil {
					return err
				}
			}
			return t.writable(ctx)
		})
	}
}

// registrations are the transactions that registered the brokers.
func (t *trial) registrations(ctx context.Context) (map[int]int64, error) {
	all := map[int]int64{}
	err := t.tree(ctx, func(s coordination.Session) error {
		for _, b := range t.brokers {
			stat, there, err := s.Exists(ctx, fmt.Sprintf("%s/%d", znode.BrokersPath, b.id))
			if err != nil {
				return err
			}
			if there {
				all[b.id] = stat.Czxid
			}
		}
		return nil
	})
	return all, err
}

// expiryLimit is how long clients may not be served when all sessions have expired in one tick.
const expiryLimit = 10 * time.Second

// allExpire is a round in which ZooKeeper stands still for longer than all sessions, which it then ends together.
func allExpire(ctx context.Context, t *trial, _ int) error {
	before, err := t.registrations(ctx)
	if err != nil {
		return err
	}
	process := t.servers[0].Process()
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	t.fault("SIGSTOP of ZooKeeper")
	if err := t.keepsServing(ctx, "ZooKeeper stands still", t.settings.session+2*time.Second); err != nil {
		return err
	}
	if err := process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	began := time.Now()
	if err := t.load.until(ctx, "all brokers to be registered again", func(ctx context.Context) error {
		after, err := t.registrations(ctx)
		if err != nil {
			return err
		}
		for id, epoch := range before {
			if after[id] == 0 {
				return fmt.Errorf("broker %d is not registered", id)
			}
			if after[id] == epoch && time.Since(began) < t.settings.session {
				return fmt.Errorf("broker %d has its old session", id)
			}
		}
		for id, epoch := range before {
			if after[id] != epoch {
				t.fault("session expired")
			}
		}
		return nil
	}); err != nil {
		return err
	}
	if err := t.servedAgain(ctx, "all sessions have expired"); err != nil {
		return err
	}
	if took := t.outages[len(t.outages)-1].took; took > expiryLimit {
		return fmt.Errorf("clients were not served for %v", took)
	}
	return t.writable(ctx)
}

// data is where the tree lies.
func (t *trial) data() string { return filepath.Join(t.dir, "zookeeper", "data") }

// behind is what brokers say of a ZooKeeper that has less than they have seen.
const behind = "its data was lost, or set back to an old backup"

// heard waits until so many brokers have logged a text once more than before.
func (t *trial) heard(ctx context.Context, text string, before, brokers int) error {
	return t.load.until(ctx, fmt.Sprintf("%d brokers to say %q", brokers, text), func(context.Context) error {
		n, err := t.said(text)
		if err == nil && n < before+brokers {
			err = fmt.Errorf("%d have said it", n-before)
		}
		return err
	})
}

// swap puts other data in the place of the tree, and the tree aside.
func (t *trial) swap(data, aside string) error {
	s := t.servers[0]
	s.Kill()
	return errors.Join(os.Rename(t.data(), aside), os.Rename(data, t.data()), s.Restart())
}

// wiped is a round in which the tree is lost. Brokers say so, go on, and do not write into the new one; a start is
// refused; when the tree has been restored all goes on.
func wiped(ctx context.Context, t *trial, round int) error {
	said, err := t.said(behind)
	if err != nil {
		return err
	}
	empty, aside := filepath.Join(t.dir, "empty"), filepath.Join(t.dir, "aside")
	if err := errors.Join(os.RemoveAll(empty), os.Mkdir(empty, 0o755), t.swap(empty, aside)); err != nil {
		return err
	}
	t.fault("tree wiped")
	if err := t.heard(ctx, behind, said, 3); err != nil {
		return err
	}
	if err := t.keepsServing(ctx, "the tree was wiped", time.Second); err != nil {
		return err
	}
	b := t.brokers[round%3]
	t.kill(b)
	if _, err := refusedStart(b); err != nil {
		return err
	}
	if err := t.emptyTree(ctx); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(empty), t.swap(aside, empty), b.Start()); err != nil {
		return err
	}
	return t.writable(ctx)
}

// emptyTree fails where somebody has written topics into a tree.
func (t *trial) emptyTree(ctx context.Context) error {
	return t.tree(ctx, func(s coordination.Session) error {
		topics, _, err := s.Children(ctx, "/brokers/topics")
		if errors.Is(err, coordination.ErrNoNode) {
			return nil
		}
		if err == nil && len(topics) > 0 {
			err = fmt.Errorf("the topics %v were written into an empty tree", topics)
		}
		return err
	})
}

// restored is a round in which the tree is set back to an old backup: brokers say so, and do not go back to it. One that
// starts on it refuses what is older than its logs. When the newest tree is back all goes on.
func restored(ctx context.Context, t *trial, round int) error {
	backup, newest := filepath.Join(t.dir, "backup"), filepath.Join(t.dir, "newest")
	s := t.servers[0]
	s.Kill()
	if err := errors.Join(os.RemoveAll(backup), copyFolder(t.data(), backup), s.Restart(), t.writable(ctx)); err != nil {
		return err
	}
	for i := range t.brokers { // so that every partition has had other leaders since
		if err := errors.Join(stopped(ctx, t, i), t.load.whole(ctx)); err != nil {
			return err
		}
	}
	refuses, later := refusesEpochs, fmt.Sprintf("later-%d", round)
	if round%2 == 1 {
		refuses = refusesStart
		if err := t.create(ctx, later, 1, 3); err != nil {
			return err
		}
	}
	said, err := t.said(behind)
	if err != nil {
		return err
	}
	if err := t.swap(backup, newest); err != nil {
		return err
	}
	t.fault("old backup restored")
	if err := errors.Join(t.heard(ctx, behind, said, 3), t.keepsServing(ctx, "the tree is an old one", second(1))); err != nil {
		return err
	}
	b := t.brokers[round%3]
	t.kill(b)
	return errors.Join(refuses(ctx, t, b, func() error { return t.swap(newest, backup) }), t.writable(ctx))
}

// refusesEpochs starts a broker on an old tree, waits until it has refused the leader epochs there, and restores the
// newest tree.
func refusesEpochs(ctx context.Context, t *trial, b *broker, restore func() error) error {
	const refusal = "the metadata store is older than the log"
	before, err := t.said(refusal)
	if err != nil {
		return err
	}
	starting := make(chan error, 1)
	go func() { starting <- b.Start() }()
	return errors.Join(t.heard(ctx, refusal, before, 1), <-starting, restore())
}

// refusesStart starts a broker on an old tree that does not know a topic of the broker's, which the broker refuses; and
// once more when the newest tree has been restored.
func refusesStart(_ context.Context, _ *trial, b *broker, restore func() error) error {
	said, err := refusedStart(b)
	if err == nil && !strings.Contains(said, "was set back to an old backup, restore newer data") {
		err = fmt.Errorf("broker %d does not say what is to be done: %s", b.id, said)
	}
	return errors.Join(err, restore(), b.Start())
}
