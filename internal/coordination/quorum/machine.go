package quorum

import (
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"github.com/barnabas-mq/barnabas/internal/coordination/local"
	"github.com/barnabas-mq/barnabas/internal/coordination/tree"
)

// machine is raft's state machine: the tree. Raft calls it from one goroutine, in the order of the log, also
// with what the log held when the store was opened. It publishes every tree before raft answers the
// command, so that whoever was answered reads what it wrote.
//
// An entry that cannot be understood stops it for good: to pass over it would make a tree that no other
// voter, and no later start, would come to.
type machine struct {
	hub *local.Hub
	// fail is told when an entry cannot be carried out: then this store must not go on.
	fail func(error)
	// compact is woken when so much was applied that a snapshot is due.
	compact chan struct{}
	limit   int64 // bytes of entries between two snapshots

	tree    *tree.Tree
	broken  error
	bytes   int64 // of entries since compact was woken last
	entries int64
}

var _ raft.BatchingFSM = (*machine)(nil)

// entriesBetweenSnapshots bounds how many entries are replayed at a start.
const entriesBetweenSnapshots = 50_000

// Apply implements raft.FSM. The result is a tree.Result or an error.
//
// The order matters: the tree is published before the result goes back, and the result of an earlier command never
// after that of a later one. A refusal by the tree is an entry like others; it changes nothing, on no voter.
func (m *machine) Apply(l *raft.Log) any {
	if m.broken != nil {
		return m.broken
	}
	command, err := tree.ParseCommand(l.Data)
	if err != nil {
		m.broken = fmt.Errorf("metadata entry %d: %w", l.Index, err)
		m.fail(m.broken)
		return m.broken
	}
	next, result := m.tree.Apply(command)
	if result.Err == nil {
		m.tree = next
		m.hub.Publish(next, result)
	}
	m.count(int64(len(l.Data)))
	return result
}

// ApplyBatch implements raft.BatchingFSM.
func (m *machine) ApplyBatch(logs []*raft.Log) []any {
	results := make([]any, len(logs))
	for i, l := range logs {
		if l.Type == raft.LogCommand {
			results[i] = m.Apply(l)
		}
	}
	return results
}

// count notes an entry, and asks for a snapshot when there were many.
//
// compact holds one call at most: a snapshot that is under way when the next is due takes in both.
func (m *machine) count(size int64) {
	m.bytes += size
	m.entries++
	if m.bytes < m.limit && m.entries < entriesBetweenSnapshots {
		return
	}
	m.bytes, m.entries = 0, 0
	select {
	case m.compact <- struct{}{}:
	default:
	}
}

// Snapshot implements raft.FSM: the tree is immutable, so there is nothing to copy.
// It is called between two entries, so the tree is that of the last one applied; Persist then runs beside Apply.
func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	if m.broken != nil {
		return nil, m.broken
	}
	return treeSnapshot{m.tree}, nil
}

// Restore implements raft.FSM, for a snapshot that another voter sent.
//
// With one voter there is nobody who sends one. The tree is read before anything is replaced.
func (m *machine) Restore(r io.ReadCloser) error {
	t, err := tree.Read(r)
	if err != nil {
		return err
	}
	m.tree, m.broken = t, nil
	m.hub.Replace(t)
	return nil
}

// treeSnapshot writes a tree to a snapshot.
type treeSnapshot struct{ tree *tree.Tree }

// Persist implements raft.FSMSnapshot.
func (s treeSnapshot) Persist(sink raft.SnapshotSink) error {
	_, err := s.tree.WriteTo(sink)
	return err
}

// Release implements raft.FSMSnapshot.
func (treeSnapshot) Release() {}
