package zookeeper

import (
	"context"
	"sync"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/jute"
)

// registry holds the watches of a session by their paths on the server.
type registry map[string]*point

// point is a path that is watched. A server keeps one watch for it: a recursive one if a Subtree is among the
// watches here, which hears of everything that a plain one hears of but the list of children; that follows
// from the children that come and go.
type point struct {
	recursive bool
	watches   map[*watch]struct{}
}

// mode is what the server is asked for.
func (p *point) mode() jute.WatchMode {
	if p.recursive {
		return jute.PersistentRecursive
	}
	return jute.Persistent
}

// watch is one watch of a session.
type watch struct {
	*coordination.EventQueue
	session *Session
	path    string // on the server
	mode    coordination.Mode
	once    sync.Once
}

// Watch implements coordination.Session.
func (s *Session) Watch(ctx context.Context, path string, mode coordination.Mode) (coordination.Watch, error) {
	if mode < coordination.Node || mode > coordination.Subtree {
		return nil, wrap("watch", path, coordination.ErrBadOperation)
	}
	if err := coordination.ValidatePath(path); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, wrap("watch", path, cancelled(ctx, coordination.ErrNotSent))
	}
	w := &watch{
		EventQueue: coordination.NewEventQueue(path, false), session: s, path: s.chroot.Outer(path), mode: mode,
	}
	r, err := s.addWatch(w)
	if err != nil {
		return nil, wrap("watch", path, err)
	}
	if _, err := s.await(ctx, r); err != nil {
		w.Close()
		return nil, wrap("watch", path, err)
	}
	return w, nil
}

// addWatch enters a watch and asks the server for it, both under one lock, so that requests reach the server
// in the order in which the registry changed.
func (s *Session) addWatch(w *watch) (*request, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.state == coordination.Lost {
		return nil, s.mu.err
	}
	p := s.mu.watches[w.path]
	if p == nil {
		p = &point{watches: map[*watch]struct{}{}}
		s.mu.watches[w.path] = p
	}
	p.watches[w] = struct{}{}
	p.recursive = p.recursive || w.mode == coordination.Subtree
	s.work.Go(w.Run)
	r := newRequest(jute.OpAddWatch, &jute.AddWatchRequest{Path: w.path, Mode: p.mode()}, true)
	return r, s.submitLocked(r)
}

// Close implements coordination.Watch.
func (w *watch) Close() {
	w.once.Do(func() {
		w.session.dropWatch(w)
		w.EventQueue.Close()
	})
}

// dropWatch forgets a watch; with the last one of its path the server forgets it too.
func (s *Session) dropWatch(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.mu.watches[w.path]
	if p == nil {
		return // the session has ended
	}
	delete(p.watches, w)
	if len(p.watches) > 0 {
		return
	}
	delete(s.mu.watches, w.path)
	r := newRequest(jute.OpRemoveWatches, &jute.RemoveWatchesRequest{Path: w.path, Type: jute.WatcherAny}, true)
	_ = s.submitLocked(r) // nobody waits: it fails where the session has ended, and where the server knows of none
}

// dispatch hands an event of the server to the watches that it concerns.
func (s *Session) dispatch(event jute.WatchEvent) {
	kind, ok := map[jute.EventType]coordination.EventKind{
		jute.EventCreated: coordination.Created, jute.EventDeleted: coordination.Deleted,
		jute.EventDataChanged: coordination.Changed, jute.EventChildrenChanged: coordination.ChildrenChanged,
	}[event.Type]
	if !ok || coordination.ValidatePath(event.Path) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.watches.push(event.Path, kind, func(w *watch, path string, kind coordination.EventKind) {
		w.Push(s.chroot.Inner(path), kind)
	})
}

// push finds the watches that a change concerns.
func (x registry) push(path string, kind coordination.EventKind, tell func(*watch, string, coordination.EventKind)) {
	if p := x[path]; p != nil {
		for w := range p.watches {
			switch {
			case w.mode == coordination.Node && kind == coordination.ChildrenChanged,
				w.mode == coordination.Children && kind == coordination.Changed,
				w.mode == coordination.Subtree: // told below
			default:
				tell(w, path, kind)
			}
		}
	}
	if kind == coordination.ChildrenChanged {
		return
	}
	parent := coordination.Parent(path)
	if p := x[parent]; p != nil && p.recursive && path != "/" && kind != coordination.Changed {
		for w := range p.watches {
			if w.mode == coordination.Children {
				tell(w, parent, coordination.ChildrenChanged)
			}
		}
	}
	for above := path; ; above = coordination.Parent(above) {
		if p := x[above]; p != nil && p.recursive {
			for w := range p.watches {
				if w.mode == coordination.Subtree {
					tell(w, path, kind)
				}
			}
		}
		if above == "/" {
			return
		}
	}
}

// maxSetWatches bounds the paths of one request that sets watches anew: servers refuse large ones, whatever
// their jute.maxbuffer, since Java's client keeps them below 128 KiB.
const maxSetWatches = 100 << 10

// watchesToSet are the requests that register all watches on a new connection.
func (s *Session) watchesToSet() []*jute.SetWatches {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sets []*jute.SetWatches
	size := maxSetWatches
	for path, p := range s.mu.watches {
		if size += len(path) + 4; len(sets) == 0 || size > maxSetWatches {
			sets, size = append(sets, &jute.SetWatches{LastZxid: s.mu.zxid}), len(path)+4
		}
		set := sets[len(sets)-1]
		if p.recursive {
			set.Recursive = append(set.Recursive, path)
		} else {
			set.Persistent = append(set.Persistent, path)
		}
	}
	return sets
}
