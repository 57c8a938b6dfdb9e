// Package kafka answers to the names of Apache Kafka's command line tools, with their flags, old and new,
// their exit statuses and the lines that they print on standard output, so that scripts which call
// kafka-topics.sh and the like go on working.
//
// A tool is a table of its flags, in flags.go's form, and a function that runs it. What goes to standard
// error is ours: Kafka's tools put stack traces and log lines there.
package kafka
