// Package sim runs whole clusters in one process on a virtual clock, lets everything go wrong that may, and
// checks what clients were told against what is left. Brokers are the real ones; the network, the disks and the
// store are in memory and have seeded faults.
//
//	          faults by the plan of a seed
//	     ┌──────────┬────┴─────┬───────────┐
//	  network     disks      store     processes
//	     │          │          │           │
//	producers ─▶ brokers 0 to 2 or 4 ◀─ readers, committers   then all heals: everybody must be well
//	     └──────────────┬──────────────────┘                 again within a bounded time, and
//	                 history ───────────────────────────────▶ the history is checked
//
// A seed decides the plan, all latencies and what the load does: each connection, each caller of the store and each
// client throws dice of its own (dice.go). The network delivers one packet at a time and waits for quiescence before
// each, and a process has one thread. What remains is the order in which goroutines of one broker act at the same
// instant, above all when it stops; so a seed that failed mostly fails again, and its journal is the same up to
// such a moment:
//
//	go test ./internal/sim -run TestSeeds -seed 4711 -seeds 1 -v -journal /tmp/journal
//
// A run proves itself with counts: of records acknowledged, read and compared, of faults by kind. That it would find
// something is shown by the bugs of package planted:
//
//	go test -tags planted ./internal/sim -run TestPlantedBugsAreFound
package sim
