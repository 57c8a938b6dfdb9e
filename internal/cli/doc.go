// Package cli is the command line, one file a command.
//
// A command prints what was asked for on standard output and everything else on standard error. It exits
// with 0, with 1 where Kafka or a part of the work failed, and with 2 where the command line was wrong.
package cli
