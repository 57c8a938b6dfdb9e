package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/invariant"
)

// CrashClone is what a power cut at this moment might leave: a new file system with everything that was
// synced, and of the rest what the dice keep. Each change of names survives with probability keepUnsynced
// (a rename as a whole), and so does each truncation and each page that was written since its file's last
// sync. A file that grew may keep any size that it had since then, or end at a page boundary; pages within it
// that were lost read as zeros, or as what was synced there.
//
// With keepUnsynced 0 only what is certain survives; with 1 everything does, as after the kill of a
// process. The same state and source of randomness give the same clone. No lock is held in the clone.
//
//	written since the last sync              what the clone can have
//	file X created, name not synced          no X, or X with any of the sizes below
//	X renamed to Y                           X or Y, never both or none
//	4 KiB at 0, 4 KiB at 4096                either page, both or none; a lost one reads as before, or as zeros
//	truncated from 8192 to 100, then 50      the old 8192 bytes; or 100 bytes and of the others what is kept
//	      bytes appended
//	synced after that                        exactly that
//
// Each is a thing that some file system has done. It costs a copy of all pages: tests keep their data small.
func (m *Memory) CrashClone(rng *rand.Rand, keepUnsynced float64) *Memory {
	invariant.That(m.tracking, "a volatile file system cannot be crash-cloned")
	m.names.Lock()
	defer m.names.Unlock()
	clone := newMemory(m.pageSize, true)
	clone.limit.Store(m.limit.Load())
	c := crash{
		rng: rng, keep: keepUnsynced, to: clone,
		names:  map[*directory]map[string]any{},
		inodes: map[*inode]*inode{},
	}
	for _, r := range m.names.pending {
		if c.kept() {
			c.apply(r)
		}
	}
	clone.names.root = c.directory(m.names.root)
	return clone
}

// crash is one throw of the dice.
type crash struct {
	rng    *rand.Rand
	keep   float64
	to     *Memory
	names  map[*directory]map[string]any // the names that survive, where they differ from the durable ones
	inodes map[*inode]*inode             // what each file became, so that two names of it stay one file
}

// kept throws the dice once.
func (c *crash) kept() bool { return c.rng.Float64() < c.keep }

// apply makes a change of names survive.
func (c *crash) apply(r rename) {
	for _, change := range r {
		names, ok := c.names[change.dir]
		if !ok {
			names = maps.Clone(change.dir.durable)
			if names == nil {
				names = map[string]any{}
			}
			c.names[change.dir] = names
		}
		if change.node == nil {
			delete(names, change.name)
		} else {
			names[change.name] = change.node
		}
	}
}

// directory copies a directory and what is below it; everything in the copy is durable.
func (c *crash) directory(from *directory) *directory {
	names, ok := c.names[from]
	if !ok {
		names = from.durable
	}
	to := newDirectory()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		var node any
		switch child := names[name].(type) {
		case *directory:
			node = c.directory(child)
		case *inode:
			copied := c.inode(child)
			copied.links.Add(1)
			node = copied
		}
		to.set(change{to, name, node})
		to.setDurable(change{to, name, node})
	}
	return to
}

// inode copies what survives of a file.
func (c *crash) inode(from *inode) *inode {
	if to, ok := c.inodes[from]; ok {
		return to
	}
	from.mu.RLock()
	defer from.mu.RUnlock()
	to := newInode(c.to)
	to.modified = from.modified
	size, pages := c.surviving(from)
	to.size = size
	for i, p := range pages {
		if len(p) > 0 && int64(i)*int64(c.to.pageSize) < size {
			for len(to.pages) <= i {
				to.pages = append(to.pages, nil)
			}
			to.pages[i] = slices.Clone(p)
			c.to.used.Add(int64(c.to.pageSize))
		}
	}
	c.zeroTail(to)
	to.durable.size = size
	to.durable.pages = slices.Clone(to.pages)
	c.inodes[from] = to
	return to
}

// surviving chooses the size and the pages of a file. A truncation that is lost takes the later changes
// behind it along, since the file system had put those into blocks that it has forgotten again.
//
//	durable  | p0 | p1 | p2 |        synced size 12 KiB
//	live     | p0'| p1 | p2 | p3 |   16 KiB; p0 and p3 are dirty
//	clone    each of p0', p3 or what was there before; size 12 KiB, 16 KiB, an end of a write or of a page between
func (c *crash) surviving(from *inode) (int64, []page) {
	d := &from.durable
	pages := slices.Clone(d.pages)
	size, cut := d.size, d.cut
	pageSize := int64(c.to.pageSize)
	limit := uncut // pages from here on stay as they were
	if cut < size {
		if c.kept() {
			size = cut
			pages = cutPages(pages, cut, pageSize)
		} else {
			limit = cut / pageSize
		}
	}
	// Every page is thrown for, also where its fate is settled: the dice fall the same way for what follows.
	for _, i := range slices.Sorted(maps.Keys(d.dirty)) {
		if !c.kept() || int64(i) >= limit {
			continue
		}
		for len(pages) <= i {
			pages = append(pages, nil)
		}
		pages[i] = nil
		if i < len(from.pages) {
			pages[i] = from.pages[i]
		}
	}
	if limit == uncut && from.size > size {
		size = c.grown(size, from)
	}
	return size, pages
}

// grown chooses how much of a file's growth since size survives: all, none, or a part. A file system stores
// a size when it has written a page back: the one that the file had then, or the end of that page.
func (c *crash) grown(size int64, from *inode) int64 {
	switch {
	case c.kept():
		return from.size
	case c.keep == 0 || c.rng.IntN(2) == 0:
		return size
	}
	pageSize := int64(c.to.pageSize)
	ends := slices.DeleteFunc(slices.Clone(from.durable.ends), func(end int64) bool { return end <= size || end > from.size })
	if first := size/pageSize + 1; first <= from.size/pageSize {
		ends = append(ends, (first+c.rng.Int64N(from.size/pageSize-first+1))*pageSize)
	}
	if len(ends) == 0 {
		return size
	}
	return ends[c.rng.IntN(len(ends))]
}

// cutPages drops what lies behind size, without touching the bytes that it shares.
func cutPages(pages []page, size, pageSize int64) []page {
	keep := int((size + pageSize - 1) / pageSize)
	if keep < len(pages) {
		pages = pages[:keep]
	}
	if in := int(size % pageSize); in > 0 && keep <= len(pages) && len(pages[keep-1]) > in {
		pages[keep-1] = slices.Clone(pages[keep-1][:in])
	}
	return pages
}

// zeroTail cuts the last page of a copy at the file's size, so that a later extension reads zeros.
func (c *crash) zeroTail(to *inode) {
	to.pages = cutPages(to.pages, to.size, int64(c.to.pageSize))
}
