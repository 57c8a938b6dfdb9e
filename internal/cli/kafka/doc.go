// Package kafka answers to the names of Apache Kafka's command line tools, with their flags, old and new,
// their exit statuses and the lines that they print on standard output, so that scripts which call
// kafka-topics.sh and the like go on working.
//
// A tool is a table of its flags, in the form of flags.go, and a function that runs it. The tools differ in
// how they fail, and scripts have learned to live with it, so each keeps its own way:
//
//	kafka-topics, kafka-groups   "Error while executing …" on standard output, status 1
//	kafka-consumer-groups        "Error: …" on standard output, status 0, even where nothing was done
//	kafka-delete-records         an error for each partition, status 0
//	all others                   a line on standard error, status 1
//	a wrong command line         a line and the flags on standard error, status 1
//
// What goes to standard error is ours: Kafka's tools put stack traces and log lines there. Where a broker
// cannot be reached we say so and end at once, with status 1, where they wait for a minute. Groups that
// the console consumer and the performance test would make up for themselves are not joined: without
// --group there is none.
//
// The texts that tools of Kafka print are in the scripts of package cli, which compare them.
package kafka
