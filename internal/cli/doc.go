// Package cli is the command line, one file a command.
//
// A command is made of three parts, in this order: its flags, which are checked before anything is
// connected to; an operation of package admin, which prints nothing; and a [report] of what that found. A
// command therefore never knows in which form its report is printed:
//
//	text   aligned columns with a heading, for people; columns without any value are left out
//	tsv    the same fields, all of them, with tabs and without a heading, for scripts; "-" for nothing
//	json   one object with the same fields, null for nothing; errors are an object as well
//
// Records are the exception: they are printed as they come, as JSON one object a line.
//
// What was asked for goes to standard output and everything else to standard error. Progress is shown only
// where standard error is a terminal, and nothing is ever asked for elsewhere. The exit status is
//
//	0  it was done
//	1  Kafka, or a part of the work, failed; the report says which part, by the name of Kafka's code
//	2  the command line was wrong
//
// Under the name of one of Kafka's tools, or with that name as the first argument, the program is that tool:
// see package kafka.
package cli
