// Package controller makes the decisions of the cluster and carries them out: who leads a partition, where
// replicas lie, what becomes of a topic that is created, grown or deleted.
//
// The decisions are pure functions over a [metadata.Image]: [decide] says what the state of a partition
// should be, [place] where replicas go, [planTopic] and [planGrowth] what a request means, [deletion] how
// far a deletion has come. They know nothing of stores, clocks and connections, and their tests are
// transcripts (testdata).
//
// One driver applies them. Whoever wins the election leads a [term], whose one goroutine takes events in
// turn and does the same with each: read what changed, decide, write, push.
//
//	store ──watch──▶ ┌──────────────┐ ──fenced write──▶ store
//	requests ──────▶ │ term: image  │
//	answers ───────▶ └──────────────┘ ──backlog──▶ queue ──LeaderAndIsr, UpdateMetadata, StopReplica──▶ broker
//
// Everything is level-triggered: an event only says where to look, and [decide] applied twice changes
// nothing the second time. So a controller that dies in the middle of anything leaves work that the next
// one finds by looking. What is pushed has been stored before; what an unknown outcome left open is read
// before anything else is decided about it.
package controller
