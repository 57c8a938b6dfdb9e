package coordination

import (
	"context"
	"errors"
	"time"
)

// MirrorChange is one node as it was read last.
type MirrorChange struct {
	Path string
	// Deleted says that the node is gone; Data and Stat are empty then.
	Deleted bool
	Data    []byte
	Stat    Stat
}

// Mirror keeps a copy of a subtree up to date: it reads all nodes at and below path and hands them to
// deliver, then whatever changes, until ctx or the session ends; that is the error. A read that the store
// did not answer is tried again. The first delivery comes even if there is nothing. Every delivery leads to a state that the store had or passed through;
// changes that follow each other quickly are delivered as one. deliver must not keep the slice.
func Mirror(ctx context.Context, s Session, path string, deliver func([]MirrorChange)) error {
	w, err := s.Watch(ctx, path, Subtree)
	if err != nil {
		return err
	}
	defer w.Close()
	m := mirror{session: s, known: map[string]nodeVersion{}}
	changes, err := m.readAll(ctx, path)
	for {
		for ; err == nil; changes, err = m.next(ctx, path, w) {
			deliver(changes)
		}
		if !errors.Is(err, ErrNotSent) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(mirrorPause):
		case <-ctx.Done():
			return ctx.Err()
		}
		changes, err = m.readAll(ctx, path)
	}
}

// mirrorPause is how long Mirror waits before it reads again what was not answered.
const mirrorPause = 100 * time.Millisecond

// nodeVersion tells two states of a node's data apart.
type nodeVersion struct{ czxid, mzxid int64 }

// mirror is what was delivered so far.
type mirror struct {
	session Session
	known   map[string]nodeVersion
}

// next waits for events and reads what they are about, until something has really changed.
func (m *mirror) next(ctx context.Context, root string, w Watch) ([]MirrorChange, error) {
	for {
		select {
		case event, ok := <-w.Events():
			if !ok {
				<-m.session.Done()
				return nil, m.session.Err()
			}
			paths, resync := drain(w, event)
			changes, err := m.read(ctx, paths)
			if resync {
				changes, err = m.readAll(ctx, root)
			}
			if err != nil || len(changes) > 0 {
				return changes, err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// maxDrain bounds how many events are read in one go.
const maxDrain = 1000

// drain takes the events that wait, after a first one: the paths they are about, or that all must be read.
func drain(w Watch, first Event) (paths []string, resync bool) {
	for event := first; ; {
		if event.Kind == Resync {
			return nil, true
		}
		paths = append(paths, event.Path)
		if len(paths) == maxDrain {
			return paths, false
		}
		select {
		case next, ok := <-w.Events():
			if !ok {
				return paths, false
			}
			event = next
		default:
			return paths, false
		}
	}
}

// read reads nodes and returns those that differ from what was delivered.
func (m *mirror) read(ctx context.Context, paths []string) ([]MirrorChange, error) {
	results, err := m.session.GetMany(ctx, paths)
	if err != nil {
		return nil, err
	}
	var changes []MirrorChange
	for i, result := range results {
		path := paths[i]
		version := nodeVersion{czxid: result.Stat.Czxid, mzxid: result.Stat.Mzxid}
		known, wasThere := m.known[path]
		switch {
		case errors.Is(result.Err, ErrNoNode):
			if wasThere {
				delete(m.known, path)
				changes = append(changes, MirrorChange{Path: path, Deleted: true})
			}
		case result.Err != nil:
			return nil, result.Err
		case !wasThere || known != version:
			m.known[path] = version
			changes = append(changes, MirrorChange{Path: path, Data: result.Data, Stat: result.Stat})
		}
	}
	return changes, nil
}

// readAll reads the whole subtree, level by level, and returns what differs.
func (m *mirror) readAll(ctx context.Context, root string) ([]MirrorChange, error) {
	var changes []MirrorChange
	missing := make(map[string]struct{}, len(m.known))
	for path := range m.known {
		missing[path] = struct{}{}
	}
	for level := []string{root}; len(level) > 0; {
		found, err := m.read(ctx, level)
		if err != nil {
			return nil, err
		}
		changes = append(changes, found...)
		var below []string
		for _, path := range level {
			delete(missing, path)
			names, _, err := m.session.Children(ctx, path)
			if err != nil && !errors.Is(err, ErrNoNode) {
				return nil, err
			}
			for _, name := range names {
				below = append(below, Join(path, name))
			}
		}
		level = below
	}
	for path := range missing {
		delete(m.known, path)
		changes = append(changes, MirrorChange{Path: path, Deleted: true})
	}
	return changes, nil
}
