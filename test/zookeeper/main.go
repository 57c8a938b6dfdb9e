// Command zookeeper runs a real ZooKeeper on a free port of 127.0.0.1 for the scripts of the tests, until it gets
// SIGTERM or its parent ends. Its address stands in the ready file once it serves.
//
//	go run ./test/zookeeper -dir FOLDER -ready FILE
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/barnabas-mq/barnabas/internal/coordination/zookeeper/zktest"
)

func main() {
	dir := flag.String("dir", "", "an empty `folder` for its data")
	ready := flag.String("ready", "", "the `file` that says its address")
	flag.Parse()
	if *dir == "" || *ready == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*dir, *ready); err != nil {
		fmt.Fprintln(os.Stderr, "zookeeper:", err)
		os.Exit(1)
	}
}

func run(dir, ready string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server, err := zktest.Start(zktest.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer server.Kill()
	if err := os.WriteFile(ready, []byte(server.Address+"\n"), 0o644); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
