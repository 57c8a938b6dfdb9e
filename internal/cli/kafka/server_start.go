package kafka

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// serverStartTool is kafka-server-start: 'barnabas start' with a file, in the foreground or with -daemon behind it.
func serverStartTool() *tool { return &tool{name: "kafka-server-start", bare: runServerStart} }

// runServerStart runs a broker with a file of properties, in the background with -daemon; its output then
// goes to kafkaServer.out in $LOG_DIR or ./logs.
func runServerStart(_ context.Context, t *call, given []string) int {
	daemon := false
	var rest []string
	for i := 0; i < len(given); i++ {
		switch given[i] {
		case "-daemon":
			daemon = true
		case "-loggc":
		case "-name":
			i++
		default:
			rest = append(rest, given[i])
		}
	}
	if len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		t.printf("USAGE: kafka-server-start.sh [-daemon] server.properties [--override property=value]*\n")
		return 1
	}
	if !daemon {
		return t.Serve(rest)
	}
	if err := startDaemon(rest); err != nil {
		fmt.Fprintln(t.Err, err)
		return 1
	}
	return 0
}

// startDaemon runs ourselves in the background.
func startDaemon(arguments []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir := os.Getenv("LOG_DIR")
	if dir == "" {
		dir = "logs"
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Join(dir, "kafkaServer.out"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	command := exec.Command(self, append([]string{"start"}, arguments...)...)
	command.Stdout, command.Stderr = out, out
	detach(command)
	return command.Start()
}
