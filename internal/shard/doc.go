// Package shard runs coordinators: state machines whose state is what the records of one partition of an
// internal topic say. Group, transaction and share coordinators are such machines.
//
// A shard is one partition that this broker leads, loaded into a [Machine]. It has one writer at a time:
//
//	decide → append one batch → apply → answer, once the high watermark has passed the batch
//
// The batch names the leader epoch in which the shard was loaded, and the partition refuses it under its own lock where
// the leadership has been broken since, so that a shard that has lost its leadership can decide what it likes without harm.
//
//	Lead ──► loading ──────────────► open ──────► dropped ◄── Resign, a newer Lead
//	            ▲   log replayed, and  │
//	            │   the watermark past │ an append that failed, a bug
//	            │   the end it had     ▼
//	            └───────────────── dropped
//
// While loading it answers COORDINATOR_LOAD_IN_PROGRESS, and where it does not lead NOT_COORDINATOR. A
// failed append leaves a machine that may have changed its mind about things that are not in the log, so the
// machine is thrown away and loaded again: there is no undo and no history of versions. Where the machine
// says what to do about a refused append (see [Decision]), it is kept.
//
// What a caller gets never shows a state that may still be lost: every answer waits until the watermark has
// passed all that the shard had appended when the answer was made. A wait that times out is an unknown
// outcome, not a failure.
//
// A shard has no goroutine. Callers run it under its lock, a one-slot channel; one timer per shard is armed
// for the machine's nearest deadline, and none where the machine has none.
package shard
