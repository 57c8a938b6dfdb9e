// Command barnabas is the broker and its command line.
package main

import (
	"os"

	"github.com/barnabas-mq/barnabas/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr))
}
