package controller

import (
	"errors"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// readNotifications looks at what brokers have announced by sequential znodes, and removes it: states that
// leaders have written themselves, and log directories that have failed.
func (t *term) readNotifications() error {
	if !t.look.notifications {
		return nil
	}
	changed, err := t.takeNotifications(znode.IsrChangesPath)
	if err != nil {
		return err
	}
	for path, data := range changed {
		partitions, err := znode.DecodePartitions(path, data)
		if err != nil {
			t.controller.options.Logger.Error("controller: an announcement of changed states is damaged", "error", err)
		}
		for _, tp := range partitions {
			t.look.state[tp] = true
		}
		for _, tp := range partitions { // those of topics that are not known have nothing to be read
			if t.cluster.image.Partition(tp) == nil || t.deletions[tp.Topic] != nil {
				delete(t.look.state, tp)
			}
		}
	}
	failed, err := t.takeNotifications(znode.LogDirEventsPath)
	if err != nil {
		return err
	}
	for path, data := range failed {
		id, err := znode.DecodeLogDirEvent(data)
		if err != nil {
			t.controller.options.Logger.Error("controller: an announcement of a failed log directory is damaged", "path", path, "error", err)
			continue
		}
		t.controller.options.Logger.Warn("controller: a log directory of a broker has failed", "broker", id)
		t.inquire(id)
	}
	t.look.notifications = false
	return nil
}

// takeNotifications reads and removes the children of path. What could not be removed is handled again, which
// does no harm.
func (t *term) takeNotifications(path string) (map[string][]byte, error) {
	names, _, err := t.session.Children(t.ctx, path)
	if errors.Is(err, coordination.ErrNoNode) || err == nil && len(names) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = coordination.Join(path, name)
	}
	found, err := t.session.GetMany(t.ctx, paths)
	if err != nil {
		return nil, err
	}
	data := map[string][]byte{}
	var ops []coordination.Op
	for i, r := range found {
		if r.Err == nil {
			data[paths[i]] = r.Data
			ops = append(ops, coordination.Delete(paths[i], coordination.AnyVersion))
		} else if !errors.Is(r.Err, coordination.ErrNoNode) {
			return nil, r.Err
		}
	}
	_, err = coordination.BatchFenced(t.ctx, t.session, t.guard, ops)
	return data, err
}

// inquire sends a broker LeaderAndIsr about all its replicas: it answers KAFKA_STORAGE_ERROR for those whose
// log directory has failed, and that it knows the others already.
func (t *term) inquire(id P.BrokerID) {
	q := t.queues[id]
	if q == nil {
		return // what it hears first is everything
	}
	image := t.cluster.image
	q.add(func(b *backlog) {
		for _, tp := range t.on(id) {
			if topic := image.Topic(tp.Topic); !t.untold(tp, topic.Partition(tp.Partition)) {
				b.replica(image, tp, told{topicID: topic.ID, state: topic.Partition(tp.Partition)})
			}
		}
	})
}
