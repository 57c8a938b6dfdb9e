package logdir

import "golang.org/x/sys/unix"

// niceness gives a thread a tenth of a processor that another one wants as well, and all of one that nobody wants. With
// less, a cleaner that holds a log's lock would keep its producers waiting.
const niceness = 10

// comeAfterOthers lowers the priority of the calling thread. That it fails costs nothing but latency.
func comeAfterOthers() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, niceness) } // 0 is the thread
