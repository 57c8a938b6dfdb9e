package adopt

import (
	"encoding/binary"
	"maps"
	"path/filepath"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/logdir"
	P "github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

// coordinators is what the internal topics say about what is under way.
type coordinators struct {
	// groups are the groups of kinds that are not spoken here yet, by kind.
	groups map[string][]string
	// open are the transactional ids whose transaction has not ended.
	open []string
	// transactional are all of them.
	transactional int
	// producer is the highest producer id that a transactional id has.
	producer P.ProducerID
}

// readCoordinators reads the internal topics among what was found.
//
// Records are read as they stand, in order, compacted or not: the last of each key counts, and a tombstone
// takes it away.
func readCoordinators(files vfs.FS, found []logdir.Found) (*coordinators, error) {
	groups := map[string]map[string]bool{} // group, key of a record that is there
	kinds := map[string]string{}
	transactions := map[string]transaction{}
	for _, f := range found {
		var visit func(record.Record)
		switch f.Partition.Topic {
		case P.GroupMetadataTopic:
			visit = func(r record.Record) { takeGroup(groups, kinds, r) }
		case P.TransactionStateTopic:
			visit = func(r record.Record) { takeTransaction(transactions, r) }
		default:
			continue
		}
		if err := records(files, filepath.Join(f.Dir, f.Folder), visit); err != nil {
			return nil, err
		}
	}
	c := &coordinators{groups: map[string][]string{}, transactional: len(transactions), producer: P.NoProducerID}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		if len(groups[group]) > 0 {
			c.groups[kinds[group]] = append(c.groups[kinds[group]], group)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(transactions)) {
		c.producer = max(c.producer, transactions[id].producer)
		if transactions[id].open {
			c.open = append(c.open, id)
		}
	}
	return c, nil
}

// groupKind is the kind of group that a key of __consumer_offsets with this version belongs to; empty for
// classic groups, whose records are versions 0 to 2.
func groupKind(version int16) string {
	switch {
	case version >= 3 && version <= 8 || version == 16:
		return "consumer"
	case version >= 10 && version <= 15:
		return "share"
	case version == 17 || version >= 19 && version <= 23:
		return "streams"
	}
	return ""
}

// takeGroup notes which records of newer kinds of groups are there; their keys begin with the group.
func takeGroup(groups map[string]map[string]bool, kinds map[string]string, r record.Record) {
	key := wire.NewReader(r.Key)
	version, group := key.Int16(), key.String()
	kind := groupKind(version)
	if kind == "" || key.Err() != nil {
		return
	}
	if r.Value == nil {
		delete(groups[group], string(r.Key))
		return
	}
	if groups[group] == nil {
		groups[group] = map[string]bool{}
	}
	groups[group][string(r.Key)], kinds[group] = true, kind
}

// transaction is the last state of a transactional id.
type transaction struct {
	producer P.ProducerID
	open     bool
}

// takeTransaction reads a record of __transaction_state:
//
//	key    version int16 (0) | transactional id
//	value  version int16 | producer id int64 | producer epoch int16 | timeout int32 | status int8 | …
//
// The status is 1 while the transaction is ongoing, 2 and 3 while its end is being written.
func takeTransaction(all map[string]transaction, r record.Record) {
	key := wire.NewReader(r.Key)
	version, id := key.Int16(), key.String()
	if version != 0 || key.Err() != nil {
		return
	}
	if len(r.Value) < 17 {
		delete(all, id)
		return
	}
	producer := P.ProducerID(binary.BigEndian.Uint64(r.Value[2:]))
	status := r.Value[16]
	all[id] = transaction{producer: producer, open: status >= 1 && status <= 3}
}
