// Package sim runs whole clusters in one process on a virtual clock, lets everything go wrong that may, and
// checks what clients were told against what is left. Brokers are the real ones; the network, the disks and the
// store are in memory and have seeded faults.
//
//	          faults by the plan of a seed
//	     ┌──────────┬────┴─────┬───────────┐
//	  network     disks      store     processes
//	     │          │          │           │
//	producers ─▶ brokers 0, 1, 2 ◀─ readers, committers      then all heals: everybody must be well
//	     └──────────────┬──────────────────┘                 again within a bounded time, and
//	                 history ───────────────────────────────▶ the history is checked
//
// A seed decides the plan, all latencies and what the load does. What it does not decide is the order in which
// the runtime wakes goroutines that may run at the same instant; the network waits for quiescence before each
// packet, so that little depends on it, and a seed mostly fails again:
//
//	go test ./internal/sim -run TestSeeds -seed 4711 -seeds 1 -v
package sim
