package cli

import (
	"path/filepath"

	"github.com/barnabas-mq/barnabas/internal/cli/kafka"
)

// kafkaTool is the tool of Kafka's that a command line asks for, by the program's name (a link to it) or
// by the first argument, and the arguments of the tool.
//
// The link's name wins over the argument, with or without ".sh": scripts call links by their path.
func kafkaTool(args []string) (name string, rest []string, ok bool) {
	if name := filepath.Base(args[0]); kafka.Known(name) {
		return name, args[1:], true
	}
	if len(args) > 1 && kafka.Known(args[1]) {
		return args[1], args[2:], true
	}
	return "", nil, false
}

// runKafkaTool runs one of Kafka's tools.
func runKafkaTool(s *streams, name string, args []string) int {
	return kafka.Main(name, args, &kafka.Process{
		In: s.in, Out: s.out, Err: s.err, Version: version,
		Serve: func(args []string) int {
			return runCommand(&common{streams: s, format: formatText}, append([]string{"start"}, args...))
		},
	})
}
