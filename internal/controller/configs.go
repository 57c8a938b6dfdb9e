package controller

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"time"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// ConfigChange changes what is set on one entity.
type ConfigChange struct {
	// Entity is a topic, a broker, all brokers, or a group.
	Entity metadata.Entity
	// Ops are carried out in order.
	Ops []config.Op
	// Replace begins from nothing, as AlterConfigs does, instead of from what is set.
	Replace bool
}

// AlterConfigs changes configurations, each entity for itself; the errors stand in the order of changes and
// carry Kafka's code and sentence, or are nil. With validateOnly everything is checked and nothing written.
// A change has been stored, and is announced to the brokers, when this returns.
func (c *Controller) AlterConfigs(ctx context.Context, changes []ConfigChange, validateOnly bool) []error {
	results := make([]error, len(changes))
	t := c.term.Load()
	twice := repeated(changes, func(change ConfigChange) metadata.Entity { return change.Entity })
	for i, change := range changes {
		switch {
		case t == nil:
			results[i] = P.NotController
		case twice[change.Entity]:
			results[i] = P.Errorf(P.InvalidRequest, "Each resource must appear at most once.")
		default:
			results[i] = failed(t.alterConfig(ctx, change, validateOnly))
		}
	}
	if t != nil && !validateOnly {
		t.purgeConfigChanges(ctx)
	}
	return results
}

// alterConfig runs on the goroutine of the request: versions, not the term, order the writes to an entity.
func (t *term) alterConfig(ctx context.Context, change ConfigChange, validateOnly bool) error {
	path := znode.EntityPath(change.Entity)
	for {
		if err := t.checkEntity(change.Entity); err != nil {
			return err
		}
		data, stat, err := t.session.Get(ctx, path)
		missing := errors.Is(err, coordination.ErrNoNode)
		if err != nil && !missing {
			return err
		}
		current, err := znode.DecodeConfig(change.Entity, data)
		if err != nil {
			return P.Errorf(P.UnknownServerError, "%w", err)
		}
		next, err := t.nextConfig(change, current)
		if err != nil || validateOnly || maps.Equal(current, next) {
			return err
		}
		write := coordination.Set(path, znode.EncodeConfig(next), stat.Version)
		if missing {
			if err := coordination.EnsurePath(ctx, t.session, coordination.Parent(path)); err != nil {
				return err
			}
			write = coordination.Create(path, znode.EncodeConfig(next), coordination.CreateOptions{})
		}
		switch done, err := t.writeConfig(ctx, change.Entity, write, next); {
		case err != nil || done:
			return err
		}
	}
}

// writeConfig writes an entity and its announcement in one transaction. It returns false where somebody
// else was faster, so that everything has to be looked at again.
func (t *term) writeConfig(ctx context.Context, entity metadata.Entity, write coordination.Op, next map[string]string) (bool, error) {
	ops := []coordination.Op{write}
	if entity.Type() == metadata.TopicEntities { // a configuration must not outlive its topic
		ops = append(ops, coordination.Check(znode.TopicPath(entity.Name()), coordination.AnyVersion))
	}
	if entity.Type() != metadata.GroupEntities { // Kafka's brokers fail at a type that they do not know
		ops = append(ops, coordination.Create(znode.ConfigChangePrefix, znode.EncodeConfigChange(entity), coordination.CreateOptions{Sequential: true}))
	}
	_, err := coordination.FencedTxn(ctx, t.session, t.guard, ops...)
	var txn *coordination.TxnError
	switch {
	case err == nil:
		t.controller.options.Logger.Info("controller: changed a configuration", "entity", string(entity))
		return true, nil
	case errors.As(err, &txn) && txn.Index == 1:
		return true, P.UnknownTopicOrPartition
	case errors.As(err, &txn):
		return false, nil
	case errors.Is(err, coordination.ErrUnknownOutcome):
		data, _, readErr := t.session.Get(ctx, write.Path)
		if stored, decodeErr := znode.DecodeConfig(entity, data); readErr == nil && decodeErr == nil && maps.Equal(stored, next) {
			return true, nil
		}
	}
	return true, err
}

// checkEntity refuses entities that there cannot be.
func (t *term) checkEntity(entity metadata.Entity) error {
	switch name := entity.Name(); entity.Type() {
	case metadata.TopicEntities:
		if err := P.ValidateTopicName(name); err != nil {
			return err
		}
		if t.published.Load().Topic(name) == nil {
			return P.UnknownTopicOrPartition
		}
	case metadata.BrokerEntities:
		if name == metadata.DefaultEntity {
			return nil
		}
		if id, err := strconv.ParseInt(name, 10, 32); err != nil || id < 0 {
			return P.Errorf(P.InvalidRequest, "Node id must be an integer, but it is: %s", name)
		}
	case metadata.GroupEntities:
		if name == "" {
			return P.Errorf(P.InvalidRequest, "Default group resources are not allowed.")
		}
	default:
		return P.Errorf(P.InvalidRequest, "Unexpected resource type %s", entity.Type())
	}
	return nil
}

// nextConfig is what is set on an entity after a change.
func (t *term) nextConfig(change ConfigChange, current map[string]string) (map[string]string, error) {
	scope := config.ScopeTopic
	switch change.Entity.Type() {
	case metadata.BrokerEntities:
		scope = config.ScopeBroker
	case metadata.GroupEntities:
		scope = config.ScopeGroup
	}
	if change.Replace {
		current = nil
	}
	next, err := config.ApplyOps(scope, current, change.Ops)
	if err != nil {
		return nil, err
	}
	settings := t.controller.options.Config()
	switch scope {
	case config.ScopeBroker:
		return next, settings.ValidateDynamic(change.Entity.Name() != metadata.DefaultEntity, next)
	case config.ScopeGroup:
		return next, settings.ValidateGroup(next)
	}
	return next, settings.ValidateTopic(next)
}

// Announcements of changed configurations older than this are removed, a few with every new one.
const (
	configChangeAge  = 15 * time.Minute
	configChangesMax = 20
)

// purgeConfigChanges removes announcements that every broker has seen. What it cannot remove now goes with
// one of the next changes.
func (t *term) purgeConfigChanges(ctx context.Context) {
	names, _, err := t.session.Children(ctx, znode.ConfigChangesPath)
	if err != nil {
		return
	}
	paths := make([]string, 0, configChangesMax)
	for _, name := range names[:min(len(names), configChangesMax)] { // the oldest come first
		paths = append(paths, coordination.Join(znode.ConfigChangesPath, name))
	}
	found, err := t.session.GetMany(ctx, paths)
	if err != nil {
		return
	}
	old := t.controller.options.Now().Add(-configChangeAge).UnixMilli()
	var ops []coordination.Op
	for i, r := range found {
		if r.Err == nil && r.Stat.Ctime < old {
			ops = append(ops, coordination.Delete(paths[i], coordination.AnyVersion))
		}
	}
	_, _ = coordination.BatchFenced(ctx, t.session, t.guard, ops)
}
