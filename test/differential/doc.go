// Differential sends the same requests to Apache Kafka and to Barnabas and compares what they answer.
//
//	go run ./test/differential -kafka HOST:PORT -barnabas HOST:PORT [-run REGEXP] [-detail codes|messages|all]
//
// Both brokers must be alone in their cluster, with node.id=1 and group.initial.rebalance.delay.ms=0, and may be
// used again and again: every run makes topics and groups of its own. Answers are recorded from a fresh one. For each API key that Barnabas advertises, and for
// its oldest, its newest and every version at which the encoding changes, it sends
//
//   - a request that makes sense, with each of its fields changed in turn: numbers at their limits, names that
//     are missing, empty, too long or no names, arrays that are null, empty or hold an element twice (mutate.go);
//   - bodies that are empty, cut off or too long, and versions that there are not (malformed.go);
//   - what needs more than one request: fetch sessions, batches of every kind, members of groups (special.go).
//
// A case is a line: its name, and the answer reduced to its error codes and the lengths of its arrays, or
// "closed". Exit status 1 means that answers differ other than testdata/intended.txt says.
//
// With -record FILE it writes Kafka's answers down. The tests of this package hold an embedded Barnabas to the
// answers in testdata/kafka-4.4.txt, so they need no Kafka.
package main
