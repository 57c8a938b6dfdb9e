package view

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/metadata"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// Follow keeps the configurations in the image those of the store, for as long as the session lives. It
// returns when all have been read, or with the reason why not. After the session's end Follow is called
// again with the next one.
//
// The tree below /config is mirrored by coordination.Mirror: the first delivery has all there is, and what changes
// together may come as one.
func (v *View) Follow(ctx context.Context, session coordination.Session) error {
	v.changing.Lock()
	v.session = session
	v.changing.Unlock()
	following, stop := context.WithCancel(context.Background())
	first, ended := make(chan struct{}), make(chan error, 1)
	v.follows.Go(func() {
		defer stop()
		once := first
		ended <- coordination.Mirror(following, session, znode.ConfigPath, func(changes []coordination.MirrorChange) {
			v.configured(changes, once != nil)
			if once != nil {
				close(once)
				once = nil
			}
		})
	})
	v.follows.Go(func() {
		select {
		case <-v.closing:
			stop()
		case <-following.Done():
		}
	})
	select {
	case <-first:
		return nil
	case err := <-ended:
		return err
	case <-ctx.Done():
		stop()
		return ctx.Err()
	}
}

// configured takes over configurations as they were read. With all they are everything there is, so that
// what is not among them is gone.
func (v *View) configured(read []coordination.MirrorChange, all bool) {
	v.changing.Lock()
	defer v.changing.Unlock()
	var changes []metadata.Change
	there := map[metadata.Entity]bool{}
	for _, c := range read {
		entity, ok := entityOf(c.Path)
		if !ok {
			continue
		}
		there[entity] = !c.Deleted
		if c.Deleted {
			delete(v.configs, entity)
			changes = append(changes, metadata.SetConfig{Entity: entity})
			continue
		}
		changes = v.configure(changes, entity, c.Data, c.Stat.Mzxid)
	}
	if all {
		for entity := range v.configs {
			if !there[entity] {
				delete(v.configs, entity)
				changes = append(changes, metadata.SetConfig{Entity: entity})
			}
		}
	}
	v.change(nil, changes...)
}

// configure adds the change that takes over one entity, unless a newer one is known.
func (v *View) configure(changes []metadata.Change, entity metadata.Entity, data []byte, mzxid int64) []metadata.Change {
	if mzxid < v.configs[entity] {
		return changes
	}
	values, err := znode.DecodeConfig(entity, data)
	if err != nil {
		v.options.Logger.Error("a configuration in the store is damaged, the one before it stays", "entity", string(entity), "error", err)
		return changes
	}
	v.configs[entity] = mzxid
	return append(changes, metadata.SetConfig{Entity: entity, Values: values})
}

// entityOf is the entity whose configuration lies at a path: /config/type/name.
func entityOf(path string) (metadata.Entity, bool) {
	rest, ok := strings.CutPrefix(path, znode.ConfigPath+"/")
	if !ok || !strings.Contains(rest, "/") || strings.HasPrefix(path, znode.ConfigChangesPath+"/") {
		return "", false
	}
	return metadata.Entity(rest), true
}

// retryRead is how long a read of the store waits before it is tried again.
const retryRead = 50 * time.Millisecond

// readConfigs reads the configurations of topics themselves, since the watch may not have brought them yet:
// a replica that is told to serve must not begin with defaults, which could delete its records. While the
// store does not answer it waits, as long as the session lives. v.changing is held.
func (v *View) readConfigs(topics []string) ([]metadata.Change, error) {
	if len(topics) == 0 || v.session == nil {
		return nil, nil
	}
	paths := make([]string, len(topics))
	for i, topic := range topics {
		paths[i] = znode.EntityPath(metadata.TopicEntity(topic))
	}
	for {
		found, err := v.session.GetMany(context.Background(), paths)
		if err == nil {
			var changes []metadata.Change
			if changes, err = v.topicConfigs(topics, found); err == nil {
				return changes, nil
			}
		}
		if !errors.Is(err, coordination.ErrNotSent) {
			return nil, err
		}
		select {
		case <-time.After(retryRead):
		case <-v.session.Done():
			return nil, v.session.Err()
		case <-v.closing:
			return nil, P.BrokerNotAvailable
		}
	}
}

// topicConfigs makes changes of what was read.
func (v *View) topicConfigs(topics []string, found []coordination.GetResult) (changes []metadata.Change, err error) {
	for i, r := range found {
		switch entity := metadata.TopicEntity(topics[i]); {
		case r.Err == nil:
			changes = v.configure(changes, entity, r.Data, r.Stat.Mzxid)
		case errors.Is(r.Err, coordination.ErrNoNode):
			changes = append(changes, metadata.SetConfig{Entity: entity})
		default:
			return nil, r.Err
		}
	}
	return changes, nil
}
