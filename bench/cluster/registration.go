package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/bench/servers"
	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/zookeeper"
)

// registration watches a broker's node in ZooKeeper.
type registration struct {
	session coordination.Session
	watch   coordination.Watch
	path    string
}

// watchRegistration begins to watch; the broker must be registered.
func watchRegistration(ctx context.Context, c *servers.Cluster, broker int32) (*registration, error) {
	store := zookeeper.New(zookeeper.Options{Servers: []string{c.ZooKeeper.Address}})
	session, err := store.Open(ctx, coordination.SessionOptions{})
	if err != nil {
		return nil, err
	}
	r := &registration{session: session, path: fmt.Sprintf("/brokers/ids/%d", broker)}
	r.watch, err = session.Watch(ctx, r.path, coordination.Node)
	if err != nil {
		_ = session.Close() // the error of the watch says more
		return nil, err
	}
	_, there, err := session.Exists(ctx, r.path)
	if err == nil && !there {
		err = fmt.Errorf("%s does not exist", r.path)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// gone returns the time at which the node was gone.
func (r *registration) gone(ctx context.Context) (time.Time, error) {
	for {
		select {
		case <-r.watch.Events():
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("waiting for the end of %s: %w", r.path, context.Cause(ctx))
		}
		told := time.Now()
		_, there, err := r.session.Exists(ctx, r.path)
		if err != nil || !there {
			return told, err
		}
	}
}

// close ends the session; that it could not be closed in order costs its server a few seconds of memory.
func (r *registration) close() {
	r.watch.Close()
	_ = r.session.Close()
}
