package log

import (
	"errors"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// A snapshot keeps the last batch of each producer, and a producer may have five in flight. Where a broker is
// killed, or stopped when the answers do not arrive, the client repeats all of them, and those before the last
// would look like a gap: the client would give up its producer id, and write them again. So where a producer
// that came from a snapshot seems to be out of order, the log is searched for its batches first.

// recallBytes is how far back it is searched: more than five requests of usual clients.
const recallBytes = 8 << 20

// errFar ends a search.
var errFar = errors.New("far enough")

// checkAgain is for a batch that seems to be out of order: it may be one that a snapshot has forgotten.
func (l *Log) checkAgain(f *batchFacts, refusal error) (batchMeta, bool, error) {
	recalled, err := l.recall(f)
	if err != nil {
		l.logger.Warn("cannot look for the earlier batches of a producer", "partition", l.partition, "producer", f.producer, "error", err)
	}
	if !recalled {
		return batchMeta{}, false, refusal
	}
	return l.guarded.producers.check(f)
}

// recall finds the batches of a producer before those that are remembered, once; false where there are none.
//
//	remembered          [b5]                    from the snapshot
//	in the log          b1 b2 b3 b4 b5
//	the client repeats     b2                   it seems to be out of order; recall finds b1 to b4: a duplicate
//
// It runs under the append lock and once for a producer (restored is cleared before it looks), so a client cannot
// make us search with every request.
func (l *Log) recall(f *batchFacts) (bool, error) {
	p := l.guarded.producers.byID[f.producer]
	if p == nil || !p.restored || p.n == 0 || p.n == batchesKept || p.epoch != f.epoch {
		return false, nil
	}
	p.restored = false
	before := p.batches[0].firstOffset()
	list := *l.list.Load()
	last := list.floor(before)
	entries, err := l.entriesOf(list[last])
	if err != nil {
		return false, err
	}
	first, position := last, lookupOffset(entries, list[last].relative(before))-recallBytes
	for position < 0 && first > 0 {
		first--
		position += list[first].size.Load()
	}
	var found []batchMeta
	for _, one := range list[first : last+1] {
		err := l.search(one, max(position, 0), before, func(h *record.Header) {
			if h.ProducerID == f.producer && h.ProducerEpoch == f.epoch && !h.Control() && h.BaseSequence >= 0 {
				found = append(found, metaOf(h))
			}
		})
		if err != nil {
			return false, err
		}
		position = 0
	}
	return p.remember(found), nil
}

// metaOf is what is remembered of a batch that is found in the log.
func metaOf(h *record.Header) batchMeta {
	return batchMeta{
		lastOffset: h.LastOffset, offsetDelta: int32(h.LastOffset - h.BaseOffset),
		lastSequence: h.LastSequence(), timestamp: h.MaxTimestamp,
	}
}

// search shows the headers of a segment from about a position on, below an offset.
func (l *Log) search(s *segment, position int64, before protocol.Offset, visit func(*record.Header)) error {
	entries, err := l.entriesOf(s)
	if err != nil {
		return err
	}
	from := s.base
	at := lookupPosition(entries, position)
	if i := slices.IndexFunc(entries, func(e indexEntry) bool { return e.position() == at }); i >= 0 {
		from += protocol.Offset(entries[i].relative())
	}
	err = l.eachHeader(s, from, func(_ *walker, h *record.Header) error {
		if h.BaseOffset >= before {
			return errFar
		}
		visit(h)
		return nil
	})
	if errors.Is(err, errFar) {
		return nil
	}
	return err
}

// remember puts older batches in front of those that are remembered, as far as they lead up to them without a
// gap and there is room; false where none does.
func (p *producer) remember(older []batchMeta) bool {
	known := p.n
	for i := len(older) - 1; i >= 0 && p.n < batchesKept; i-- {
		if !inSequence(older[i].lastSequence, p.batches[0].firstSequence()) {
			break
		}
		copy(p.batches[1:], p.batches[:p.n])
		p.batches[0] = older[i]
		p.n++
	}
	return p.n > known
}
