package log

import (
	"slices"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// cleanedTxns follows the transactions as the log cleaner goes through the log. Records of aborted ones may
// go, and a marker once no record of its transaction is left.
//
//	                 its first offset            its marker
//	coming ────────────────────────▶ aborted ───────────────▶ forgotten        (known from the indexes)
//	                data of a producer            its marker
//	not in a map ──────────────────▶ committed ─────────────▶ forgotten        (all others)
//
// Whether a transaction was aborted must be known at its first record, and the marker comes last: hence the
// transaction indexes. Transactions that are open need no state, as nothing at or behind the last stable offset is
// cleaned. The two passes have a cleanedTxns each.
type cleanedTxns struct {
	coming    []aborted // by first offset: transactions whose first record has not been passed yet
	aborted   map[protocol.ProducerID]*abortedSeen
	committed map[protocol.ProducerID]bool // producers with records since their last marker
}

// abortedSeen is an aborted transaction that the cleaner is in; records says whether it has met any.
type abortedSeen struct {
	aborted
	records bool
}

// newCleanedTxns begins before the first batch.
func newCleanedTxns() *cleanedTxns {
	return &cleanedTxns{aborted: map[protocol.ProducerID]*abortedSeen{}, committed: map[protocol.ProducerID]bool{}}
}

// add announces the aborted transactions of the next segment; the same one may be announced twice.
func (c *cleanedTxns) add(list []aborted) {
	for _, a := range list {
		i, _ := slices.BinarySearchFunc(c.coming, a, func(x, y aborted) int { return compare(int64(x.first), int64(y.first)) })
		if i < len(c.coming) && c.coming[i] == a {
			continue
		}
		if now := c.aborted[a.producer]; now != nil && now.aborted == a {
			continue
		}
		c.coming = slices.Insert(c.coming, i, a)
	}
}

// advance enters the transactions that begin at or before offset.
func (c *cleanedTxns) advance(offset protocol.Offset) {
	for len(c.coming) > 0 && c.coming[0].first <= offset {
		if a := c.coming[0]; c.aborted[a.producer] == nil {
			c.aborted[a.producer] = &abortedSeen{aborted: a}
		}
		c.coming = c.coming[1:]
	}
}

// data passes a batch of records and reports whether it belongs to an aborted transaction.
func (c *cleanedTxns) data(h *record.Header) (discard bool) {
	c.advance(h.LastOffset)
	if !h.Transactional() {
		return false
	}
	if a := c.aborted[h.ProducerID]; a != nil {
		a.records = true
		return true
	}
	c.committed[h.ProducerID] = true
	return false
}

// control passes a marker and reports whether its transaction has no record left, so that it may go. A
// marker of an aborted transaction that stays is returned, for the transaction index.
func (c *cleanedTxns) control(h *record.Header, m record.EndTxnMarker, known bool) (discard bool, stays aborted, isAborted bool) {
	c.advance(h.LastOffset)
	switch {
	case h.Count == 0:
		return true, aborted{}, false // emptied before
	case !known:
		return false, aborted{}, false // another kind of control record
	case m.Type == record.EndCommit:
		had := c.committed[h.ProducerID]
		delete(c.committed, h.ProducerID)
		return !had, aborted{}, false
	}
	a := c.aborted[h.ProducerID]
	delete(c.aborted, h.ProducerID)
	if a == nil || !a.records {
		return true, aborted{}, false
	}
	return false, a.aborted, true
}
