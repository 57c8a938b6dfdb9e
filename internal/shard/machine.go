package shard

import (
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Machine is the state of one shard. It has no clock, no lock, no goroutine and does no I/O: the time is an
// argument, what it wants written is a [Decision], and whom it answers is what Answers returns. The runtime
// calls it from one goroutine at a time.
//
//	call             lock      when
//	Replay           none      loading, from the loader's goroutine: nobody else has the machine yet
//	Replay           shard's   after an append
//	EndTransaction   either    as Replay
//	Loaded           shard's   once
//	Deadline         shard's   after every step
//	Expire           shard's   from the timer's goroutine, until it returns false
//	Answers          shard's   after every step
type Machine interface {
	// Replay applies a record of the log: while loading, and after an append of the machine's own unless
	// its decision has Applied. Key and Value are only valid during the call.
	Replay(r Replayed)
	// EndTransaction applies a transaction marker: what the producer's transactional records said comes
	// true, or is forgotten.
	EndTransaction(producer protocol.ProducerID, committed bool)
	// Loaded is called once, when the shard opens: everything replayed is committed, timers may start.
	Loaded(now Now)
	// Deadline is the time on Now.Mono at which Expire wants to be called next; false where there is none.
	Deadline() (time.Duration, bool)
	// Expire does the next thing that is due; false where nothing is (any more). Each decision is
	// appended before the next call.
	Expire(now Now) (Decision, bool)
	// Answers returns the late answers made since the last call, and forgets them.
	Answers() []Answer
}

// Now is the time that a machine is told.
type Now struct {
	// Mono is time since the runtime was made. Timeouts go by it: it never steps.
	Mono time.Duration
	// Wall is the wall clock in milliseconds since 1970.
	Wall int64
	// Earliest and Latest enclose the wall clock. They equal Wall except for a while after it has
	// stepped, when one of them goes on as if it had not: judge the age of things by Earliest, and stamp
	// things whose age will be judged with Latest, and a step makes nothing expire.
	Earliest, Latest int64
}

// Record is a record to append. A nil Value is a tombstone.
type Record struct {
	Key, Value []byte
}

// Replayed is a record of the log.
type Replayed struct {
	// Offset is its place in the log.
	Offset protocol.Offset
	// Timestamp is the record's time in ms.
	Timestamp int64
	// ProducerID is NoProducerID, except in a transaction: then the record counts only once
	// EndTransaction says that it was committed.
	ProducerID protocol.ProducerID
	// Key and Value are as stored; a nil Value is a tombstone.
	Key, Value []byte
}

// Producer makes the batch of a decision part of a transaction.
type Producer struct {
	ID    protocol.ProducerID
	Epoch protocol.ProducerEpoch
}

// Decision is what a machine wants appended. The zero value appends nothing.
//
// There are two ways to use it. Machines whose state is what the records say change nothing when they decide:
// Replay applies the records, Refused is [Unharmed]. Machines that keep more than that may change at once or in
// Applied, and then must say in Refused how to come back; without it one refused append costs a load.
type Decision struct {
	// Records go into one batch, so that all of them are in the log or none.
	Records []Record
	// Producer is set where the records belong to a transaction.
	Producer *Producer
	// Split allows several batches where one would exceed max.message.bytes; then a part may be in the log
	// without the rest.
	Split bool
	// Applied, if set, is called after the append in place of Replay for each record: for machines that
	// keep more about a thing than its records say.
	Applied func()
	// Refused, if set, is called where it is certain that nothing was appended: too large, too few
	// replicas, no space. It puts right what the decision had changed already, and says what to do
	// instead. Without it the machine is dropped and loaded again.
	Refused func(err error) Decision
}

// Ticket names a caller that waits for a late answer.
//
// Tickets are numbered from 1 within a shard, so that 0 is nobody's. They end with the answer, with the
// caller's context, or with the shard.
type Ticket uint64

// Answer is a late answer: one that the machine could not give when it was asked.
type Answer struct {
	To    Ticket
	Value any
}

// Unharmed is the Refused of a decision that changes nothing before it is applied: nothing is to be put
// right, and the caller learns the error.
func Unharmed(error) Decision { return Decision{} }
