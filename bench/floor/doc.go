// Package floor has the least that a server can do, to say what a machine allows: servers that speak just enough of
// Kafka's protocol for the loads of bench, with nothing of what makes a broker one.
//
//	discard   reads requests to produce, answers them, and throws the bytes away
//	floor     checks the CRC of each batch, gives it its offset, and appends it to a file; to a consumer it sends
//	          ranges of that file with sendfile
//	echo      sends back what comes
//
// What is missing: records are not looked at, nor are producers' sequences; there are no segments, epochs, sessions,
// replicas, limits, metrics; nothing survives the end of the process.
package floor
