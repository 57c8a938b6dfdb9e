package main

import (
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/barnabas-mq/barnabas/bench/floor"
)

// The sides that are references. before is another barnabas program, the others are servers of bench/floor.
const (
	before  = "before"
	echo    = "echo"
	discard = "discard"
	floored = "floor" // checks and appends, and sends with sendfile
)

// serveCommand makes this program one of the floor servers, as a process of its own.
const serveCommand = "serve-floor"

func floorCommand(kind, address, data string) []string {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return []string{self, serveCommand, kind, address, data}
}

// serveFloor is "serve-floor KIND ADDRESS DIR".
func serveFloor(arguments []string) error {
	if len(arguments) != 3 {
		return errors.New(serveCommand + " needs a kind, an address and a folder")
	}
	kind, address, dir := arguments[0], arguments[1], arguments[2]
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	switch kind {
	case echo:
		return floor.Echo(listener)
	case discard:
		return floor.Serve(listener, "")
	case floored:
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		return floor.Serve(listener, dir)
	}
	return fmt.Errorf("there is no side %s", kind)
}
