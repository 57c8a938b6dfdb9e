package vfs

import (
	"maps"
	"slices"
)

// directory maps names to what they name: *directory or *inode. live is what everybody sees; durable is
// what a crash certainly leaves, and is nil in a file system that does not track it.
type directory struct {
	live    map[string]any
	durable map[string]any
}

// newDirectory is an empty one without a name.
func newDirectory() *directory { return &directory{live: map[string]any{}} }

// sorted lists the names in order: what depends on the order of a map cannot be repeated.
func (d *directory) sorted() []string { return slices.Sorted(maps.Keys(d.live)) }

// change gives a name of one directory a new meaning; a nil node removes it.
type change struct {
	dir  *directory
	name string
	node any
}

// rename is a set of changes that survive a crash together or not at all.
//
//	pending    create a.tmp | rename a.tmp → a | remove b      in this order
//	SyncDir    all that touch the directory become durable, in order
//	a crash    each of the others survives or not, also a later one without an earlier one
type rename []change

// changeLocked makes changes visible, and remembers them as not durable yet.
func (m *Memory) changeLocked(changes ...change) {
	for _, c := range changes {
		if old, ok := c.dir.live[c.name].(*inode); ok && old != c.node {
			old.unlink()
		}
		if node, ok := c.node.(*inode); ok {
			node.links.Add(1)
		}
		c.dir.set(c)
	}
	if m.tracking {
		m.names.pending = append(m.names.pending, changes)
	}
}

// set makes a change visible.
func (d *directory) set(c change) {
	if c.node == nil {
		delete(d.live, c.name)
	} else {
		d.live[c.name] = c.node
	}
}

// setDurable makes a change certain to survive.
func (d *directory) setDurable(c change) {
	if c.node == nil {
		delete(d.durable, c.name)
		return
	}
	if d.durable == nil {
		d.durable = map[string]any{}
	}
	d.durable[c.name] = c.node
}

// SyncDir makes the names in a directory durable; see [FS]. Renames out of it and into it become durable
// in the other directory too, as they would in a journal.
func (m *Memory) SyncDir(name string) error {
	m.names.Lock()
	defer m.names.Unlock()
	dir, err := m.directoryLocked(name)
	if err != nil {
		return pathError("sync", name, err)
	}
	// The changes that stay keep their order: a later one may build on an earlier one.
	kept := m.names.pending[:0]
	for _, r := range m.names.pending {
		if slices.ContainsFunc(r, func(c change) bool { return c.dir == dir }) {
			for _, c := range r {
				c.dir.setDurable(c)
			}
			continue
		}
		kept = append(kept, r)
	}
	clear(m.names.pending[len(kept):])
	m.names.pending = kept
	return nil
}

// memoryVolume is the one volume of a [Memory].
type memoryVolume struct{ memory *Memory }

// OpenVolume opens the only volume; see [FS].
func (m *Memory) OpenVolume(name string) (Volume, error) {
	if _, err := m.Stat(name); err != nil {
		return nil, err
	}
	return memoryVolume{m}, nil
}

// Sync makes all data and names durable: first what is named, then the names.
func (v memoryVolume) Sync() error {
	m := v.memory
	m.names.Lock()
	defer m.names.Unlock()
	m.names.root.syncBelow()
	for _, r := range m.names.pending {
		for _, c := range r {
			c.dir.setDurable(c)
		}
	}
	clear(m.names.pending)
	m.names.pending = m.names.pending[:0]
	return nil
}

// Holds is true of all that exists; see [Volume].
func (v memoryVolume) Holds(dir string) (bool, error) {
	_, err := v.memory.Stat(dir)
	return err == nil, err
}

// Close does nothing: nothing is open.
func (memoryVolume) Close() error { return nil }

// syncBelow makes the data of all files below a directory durable.
func (d *directory) syncBelow() {
	for _, node := range d.live {
		switch node := node.(type) {
		case *directory:
			node.syncBelow()
		case *inode:
			node.sync()
		}
	}
}
