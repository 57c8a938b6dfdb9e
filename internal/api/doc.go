// Package api answers requests: a table of API keys, and one file for each of them.
//
// A handler runs in one of four ways, which the table names:
//
//   - now: the whole request in the connection's reader. For what waits for nothing.
//   - later: in a goroutine, and the connection's next request begins when the answer has left. For what
//     may wait: creating a topic, describing groups. Kafka handles every request so.
//   - begun: the part that orders requests runs in the reader, the rest in a goroutine, and the next request
//     begins meanwhile. For members of groups, whose waits are long.
//   - by hand: Produce and Fetch, whose first phases run in the reader and whose waits overlap.
//
// Kafka's error code is chosen once, at the place that knows the reason; handlers only carry it
// ([protocol.CodeOf]).
package api
