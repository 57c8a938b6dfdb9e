package replica

import (
	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Apply brings the replicas to what delta asks of this broker, and returns what failed by partition. A
// partition that failed keeps failing its requests with the same error until it is told again.
func (r *Replicas) Apply(delta metadata.Delta, image *metadata.Image) map[protocol.TopicPartition]error {
	r.image.Store(image)
	// Logs first and all together, since a directory's sync costs milliseconds; then each leadership by itself,
	// which touches no disk. Folders of deleted partitions go together, too.
	failed := map[protocol.TopicPartition]error{}
	r.settings.begin()
	r.claim(delta.Replicas)
	r.setStraysAside(delta.Replicas, failed)
	r.createLogs(delta.Replicas, image, failed)
	gone := r.movedAway(delta.Partitions)
	for i := range delta.Replicas {
		change := &delta.Replicas[i]
		r.carryOut(change, image, failed)
		if change.Role == metadata.Delete {
			gone = append(gone, change.TopicPartition)
		}
	}
	r.announce(delta.Replicas, failed)
	if err := r.options.Dirs.Delete(gone...); err != nil {
		for _, tp := range gone {
			r.note(failed, tp, err)
		}
	}
	r.configure(delta.Configs, image)
	r.learn(&delta)
	return failed
}

// carryOut makes one replica what it has to be, but for the deletion of its log.
func (r *Replicas) carryOut(change *metadata.ReplicaChange, image *metadata.Image, failed map[protocol.TopicPartition]error) {
	if change.Role != metadata.Follow || failed[change.TopicPartition] != nil {
		r.fetchers.remove(change.TopicPartition)
	}
	switch change.Role {
	case metadata.Lead, metadata.Follow:
		if failed[change.TopicPartition] != nil {
			return // its log cannot be made
		}
		p := r.ensure(change.TopicPartition, change.TopicID)
		settings := r.settingsOf(change.Topic, image)
		if change.Role == metadata.Lead {
			r.note(failed, change.TopicPartition, p.lead(change.State, settings))
		} else {
			r.note(failed, change.TopicPartition, r.follow(p, change.State, settings))
		}
	case metadata.Stop, metadata.Delete:
		delete(r.noted, change.TopicPartition)
		r.drop(change.TopicPartition)
	}
}

// follow makes a replica follow, and be fetched from its leader.
func (r *Replicas) follow(p *Partition, state *metadata.Partition, settings *config.Topic) error {
	err := p.follow(state, settings)
	if err != nil || state.Leader == protocol.NoBroker {
		r.fetchers.remove(p.tp)
		return err
	}
	r.fetchers.assign(p, state.Leader, state.LeaderEpoch)
	return nil
}

// announce says what this broker's replicas have become: how many in one line, and each where the level asks for
// that, since there may be thousands.
func (r *Replicas) announce(changes []metadata.ReplicaChange, failed map[protocol.TopicPartition]error) {
	if len(changes) == 0 {
		return
	}
	counts := map[metadata.Role]int{}
	for i := range changes {
		change := &changes[i]
		counts[change.Role]++
		if state := change.State; state != nil && failed[change.TopicPartition] == nil {
			r.options.Logger.Debug("a replica has new orders", "partition", change.TopicPartition, "role", change.Role, "leader", state.Leader,
				"leader-epoch", state.LeaderEpoch, "isr", state.ISR, "partition-epoch", state.Epoch, "controller-epoch", state.ControllerEpoch)
		}
	}
	r.options.Logger.Info("replicas have new orders", "lead", counts[metadata.Lead], "follow", counts[metadata.Follow],
		"stop", counts[metadata.Stop], "delete", counts[metadata.Delete], "failed", len(failed))
}

// learn takes over what the cluster's image says about partitions that this broker leads, and about brokers.
func (r *Replicas) learn(delta *metadata.Delta) {
	for _, change := range delta.Partitions {
		if change.New == nil || change.New.Leader != r.options.Self {
			continue
		}
		if p, err := r.Partition(change.TopicPartition); err == nil {
			p.learn(change.New)
		}
	}
	if len(delta.Brokers) == 0 {
		return
	}
	r.fetchers.retry()
	for _, id := range delta.Brokers {
		if delta.To.Broker(id) == nil {
			for _, p := range r.All() {
				p.gone(id)
			}
			r.options.heard.caller(id).left.Add(1) // now that all have forgotten it
		}
	}
}
