// Package perf is the engine of "barnabas perf" and of the comparison in bench: it writes and reads loads through a
// franz-go client, and measures rates and latencies.
//
//	Produce    records as fast as they go or at a rate; the time to their acknowledgements
//	Consume    what topics hold, from the beginning to the present end
//	EndToEnd   records at a rate; the time to their acknowledgements and to a consumer
//
// Latency at a rate counts from the time at which a record was due, not from when it was sent: a stall of the broker
// delays the records behind it as well, and whoever counts from the sending leaves those out (coordinated omission).
//
// The generator has to be cheap, since it mostly shares its machine with the broker: what is done for each record is
// little, and at full speed only every 16th is timed.
package perf
