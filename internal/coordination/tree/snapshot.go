package tree

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/coordination"
)

// A tree as bytes. All numbers are varints (u: unsigned) unless a size is given. What protects them
// against damage is the file around them.
//
//	version   1 byte, 1
//	zxid      u
//	sessions  u count, then for each, ids rising:
//	  id        u
//	  node      of the owner
//	  life      8 bytes, big endian
//	  timeout   u, ms
//	nodes     u count, then for each, parents first, siblings in the order of names:
//	  depth     u; of the root 0
//	  name      u length, bytes; of the root empty
//	  data      u length + 1 or 0 for nil, bytes
//	  czxid, mzxid, pzxid, owner  u
//	  ctime, mtime                ms since 1970
//	  version, creations
//
//	tree     /                nodes   0 ""
//	         ├ brokers                1 "brokers"
//	         │ └ ids                  2 "ids"
//	         └ config                 1 "config"
//
// A session's ephemeral nodes are not listed: they are found again by owner, so the two cannot disagree. Equal trees
// give equal bytes, whatever commands they came from.
const snapshotVersion = 1

// flushBytes is how much of a snapshot is gathered before it is written.
const flushBytes = 64 << 10

// WriteTo writes the tree's bytes. The tree is immutable, so that others go on meanwhile.
func (t *Tree) WriteTo(w io.Writer) (int64, error) {
	e := snapshotWriter{to: w, buffer: make([]byte, 0, flushBytes*2)}
	e.buffer = append(e.buffer, snapshotVersion)
	e.count(t.zxid)
	e.count(int64(t.sessions.len()))
	for id, s := range t.sessions.all {
		e.count(id)
		e.varint(int64(s.owner.Node))
		e.buffer = binary.BigEndian.AppendUint64(e.buffer, s.owner.Life)
		e.count(s.timeoutMillis)
	}
	e.count(t.root.total())
	e.node(0, "", t.root)
	e.flush(0)
	return e.written, e.err
}

// total is the number of nodes at and below n.
func (n *node) total() int64 {
	sum := int64(1)
	for _, child := range n.children.all {
		sum += child.total()
	}
	return sum
}

// snapshotWriter is a snapshot under way.
type snapshotWriter struct {
	to      io.Writer
	buffer  []byte
	written int64
	err     error
}

func (e *snapshotWriter) count(v int64)  { e.buffer = binary.AppendUvarint(e.buffer, uint64(v)) }
func (e *snapshotWriter) varint(v int64) { e.buffer = binary.AppendVarint(e.buffer, v) }

// node writes n and what is below it.
func (e *snapshotWriter) node(depth int64, name string, n *node) {
	e.count(depth)
	e.count(int64(len(name)))
	e.buffer = append(e.buffer, name...)
	e.buffer = appendData(e.buffer, n.data)
	for _, v := range [...]int64{n.czxid, n.mzxid, n.pzxid, n.owner} {
		e.count(v)
	}
	for _, v := range [...]int64{n.ctime, n.mtime, int64(n.version), int64(n.creations)} {
		e.varint(v)
	}
	e.flush(flushBytes)
	for name, child := range n.children.all {
		if e.err != nil {
			return
		}
		e.node(depth+1, name, child)
	}
}

// flush hands on what is gathered if it is more than least.
func (e *snapshotWriter) flush(least int) {
	if e.err != nil || len(e.buffer) <= least {
		return
	}
	n, err := e.to.Write(e.buffer)
	e.written += int64(n)
	e.err = err
	e.buffer = e.buffer[:0]
}

// Read reads a tree that WriteTo wrote. It asks for memory only as bytes come in.
//
// It checks what Apply would never make: names out of order or twice, children of an ephemeral node, an owner without
// a session, numbers above the zxid, paths that are too long. Everything it builds is new, so no lock is needed.
func Read(r io.Reader) (*Tree, error) {
	d := snapshotReader{from: bufio.NewReaderSize(r, flushBytes)}
	if version := d.byte(); d.err == nil && version != snapshotVersion {
		return nil, fmt.Errorf("snapshot of version %d, and only %d is known: a newer program wrote it", version, snapshotVersion)
	}
	t := &Tree{zxid: d.count()}
	t.sessions = d.sessions(t.zxid)
	b := builder{sessions: t.sessions, zxid: t.zxid}
	total := d.count()
	for i := int64(0); i < total && d.err == nil; i++ {
		depth, name, n := d.node()
		if d.err == nil && !b.add(depth, name, n) {
			d.err = errMalformed
		}
	}
	t.root, t.sessions = b.finish()
	if d.err == nil && t.root == nil {
		d.err = errMalformed
	}
	switch _, err := d.from.ReadByte(); {
	case d.err != nil || err == io.EOF:
	case err != nil:
		d.err = err
	default:
		d.err = errMalformed // something stands behind the last node
	}
	if d.err != nil {
		return nil, fmt.Errorf("snapshot: %w", d.err)
	}
	return t, nil
}

// snapshotReader takes values off a stream; after the first error it gives zeros.
type snapshotReader struct {
	from    *bufio.Reader
	err     error
	scratch [256]byte
}

// check notes an error; the stream must not end within a value.
func (d *snapshotReader) check(err error) {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if d.err == nil && err != nil {
		d.err = err
	}
}

func (d *snapshotReader) byte() byte {
	if d.err != nil {
		return 0
	}
	b, err := d.from.ReadByte()
	d.check(err)
	return b
}

func (d *snapshotReader) varint() int64 {
	if d.err != nil {
		return 0
	}
	v, err := binary.ReadVarint(d.from)
	d.check(err)
	return v
}

// int32 is a varint that fits.
func (d *snapshotReader) int32() int32 {
	v := d.varint()
	if int64(int32(v)) != v {
		d.check(errMalformed)
	}
	return int32(v)
}

// count is an unsigned varint that fits an int64.
func (d *snapshotReader) count() int64 {
	if d.err != nil {
		return 0
	}
	v, err := binary.ReadUvarint(d.from)
	d.check(err)
	if int64(v) < 0 {
		d.check(errMalformed)
		return 0
	}
	return int64(v)
}

// take is the next n bytes, a copy.
func (d *snapshotReader) take(n int64) []byte {
	b := make([]byte, min(n, flushBytes))
	d.full(b)
	for int64(len(b)) < n && d.err == nil {
		more := make([]byte, min(n-int64(len(b)), flushBytes))
		d.full(more)
		b = append(b, more...)
	}
	return b
}

// full fills b.
func (d *snapshotReader) full(b []byte) {
	if d.err == nil {
		_, err := io.ReadFull(d.from, b)
		d.check(err)
	}
}

// name is a string with its length before it.
func (d *snapshotReader) name() string {
	n := d.count()
	if n > maxPathBytes {
		d.check(errMalformed)
		return ""
	}
	if n > int64(len(d.scratch)) {
		return string(d.take(n))
	}
	d.full(d.scratch[:n])
	return string(d.scratch[:n])
}

// sessions reads the table of sessions.
func (d *snapshotReader) sessions(zxid int64) *sorted[int64, *session] {
	var table *sorted[int64, *session]
	last := int64(0)
	for n := d.count(); n > 0 && d.err == nil; n-- {
		id := d.count()
		if id <= last || id > zxid {
			d.check(errMalformed)
		}
		last = id
		s := &session{owner: Owner{Node: d.int32()}}
		if life := d.take(8); d.err == nil {
			s.owner.Life = binary.BigEndian.Uint64(life)
		}
		s.timeoutMillis = d.count()
		table = table.with(id, s)
	}
	return table
}

// node reads one node, without its children.
func (d *snapshotReader) node() (depth int64, name string, n *node) {
	depth = d.count()
	name = d.name()
	n = &node{}
	if size := d.count(); size > 0 {
		n.data = d.take(size - 1)
	}
	n.czxid, n.mzxid, n.pzxid, n.owner = d.count(), d.count(), d.count(), d.count()
	n.ctime, n.mtime = d.varint(), d.varint()
	n.version, n.creations = d.int32(), d.int32()
	return depth, name, n
}

// builder puts nodes together that come parents first. It keeps the path to the last node.
//
//	nodes come as   /   brokers   ids   config
//	open            [/] [/ brokers] [/ brokers ids] [/ config]      ids and brokers are closed when config comes
//
// A node gets its children when the next one shows that there are no more; the map of children is then made at once,
// in O(n), as the names come in order.
type builder struct {
	zxid      int64
	sessions  *sorted[int64, *session]
	open      []unfinished
	pathBytes int
}

// unfinished is a node whose children are still coming, in the order of their names.
type unfinished struct {
	name     string
	node     *node
	names    []string
	children []*node
}

// add takes the next node; false means that it cannot stand there.
func (b *builder) add(depth int64, name string, n *node) bool {
	if depth > int64(len(b.open)) || depth == 0 && len(b.open) > 0 {
		return false
	}
	for int64(len(b.open)) > depth {
		b.close()
	}
	if depth == 0 {
		if name != "" {
			return false
		}
	} else if !b.open[depth-1].takes(name) {
		return false
	}
	b.open = append(b.open, unfinished{name: name, node: n})
	b.pathBytes += 1 + len(name)
	return b.pathBytes <= maxPathBytes+1 && b.own(n)
}

// takes tells whether a node can have a child of that name next.
func (u *unfinished) takes(name string) bool {
	if len(u.names) > 0 && name <= u.names[len(u.names)-1] {
		return false
	}
	return u.node.owner == 0 && name != "" && !strings.Contains(name, "/") &&
		coordination.ValidatePath("/"+name) == nil
}

// own enters an ephemeral node into the table of its session.
func (b *builder) own(n *node) bool {
	if n.czxid > b.zxid || n.mzxid > b.zxid || n.pzxid > b.zxid {
		return false
	}
	if n.owner == 0 {
		return true
	}
	s, ok := b.sessions.get(n.owner)
	if !ok || len(b.open) == 1 {
		return false
	}
	var path strings.Builder
	for _, u := range b.open[1:] {
		path.WriteString("/" + u.name)
	}
	changed := *s
	changed.ephemerals = s.ephemerals.with(path.String(), struct{}{})
	b.sessions = b.sessions.with(n.owner, &changed)
	return true
}

// close takes the last node off the path and gives it to its parent.
func (b *builder) close() {
	last := len(b.open) - 1
	u := b.open[last]
	b.open = b.open[:last]
	b.pathBytes -= 1 + len(u.name)
	u.node.children = sortedOf(u.names, u.children)
	if last > 0 {
		parent := &b.open[last-1]
		parent.names, parent.children = append(parent.names, u.name), append(parent.children, u.node)
	}
}

// finish gives the root, nil if there was none, and the table of sessions.
func (b *builder) finish() (*node, *sorted[int64, *session]) {
	var root *node
	for len(b.open) > 0 {
		root = b.open[0].node
		b.close()
	}
	return root, b.sessions
}
