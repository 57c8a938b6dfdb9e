package kafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/barnabas-mq/barnabas/internal/config"
)

// serverStopTool is kafka-server-stop. Like Kafka's script it signals every broker of this machine that it may signal,
// whoever started it, and does not wait for their ends; --node-id=N (KIP-979) means one.
func serverStopTool() *tool { return &tool{name: "kafka-server-stop", bare: runServerStop} }

// process is one that runs on this machine.
type process struct {
	pid       int
	arguments []string
}

// runServerStop tells the brokers of this machine to stop, or with --node-id=N the one with that id.
func runServerStop(_ context.Context, t *call, given []string) int {
	processes, err := runningProcesses()
	if err != nil {
		fmt.Fprintln(t.Err, err)
		return 1
	}
	wanted := ""
	for _, word := range given {
		if id, ok := strings.CutPrefix(word, "--node-id="); ok {
			wanted = id
		}
	}
	brokers := brokersOf(processes, os.Getpid())
	if len(brokers) == 0 {
		t.printf("No kafka server to stop\n")
		return 1
	}
	for _, p := range brokers {
		if wanted != "" && nodeID(p.arguments) != wanted {
			continue
		}
		if err := terminate(p.pid); err != nil {
			fmt.Fprintf(t.Err, "process %d: %v\n", p.pid, err)
			return 1
		}
	}
	return 0
}

// brokersOf are the processes that run a broker of ours, our own left out.
//
// Names and arguments are all that tells a broker from outside; a program of another name that happens to have
// "start" as its first argument is not one.
func brokersOf(processes []process, self int) []process {
	var brokers []process
	for _, p := range processes {
		if p.pid == self || len(p.arguments) < 2 {
			continue
		}
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(p.arguments[0]), ".exe"), ".sh")
		if name == "kafka-server-start" || name == "barnabas" && (p.arguments[1] == "start" || p.arguments[1] == "kafka-server-start") {
			brokers = append(brokers, p)
		}
	}
	return brokers
}

// nodeID is the id that a broker's command line gives it, as far as its file can be read.
func nodeID(arguments []string) string {
	var o config.LoadOptions
	for i, word := range arguments[1:] {
		switch {
		case word == "start" || word == "kafka-server-start":
		case i > 0 && arguments[i] == "--override":
			o.Overrides = append(o.Overrides, word)
		case !strings.HasPrefix(word, "-") && o.File == "" && (i == 0 || !strings.HasPrefix(arguments[i], "-")):
			o.File = word
		}
	}
	broker, _, err := config.Load(o)
	if err != nil {
		return ""
	}
	return strconv.Itoa(int(broker.BrokerID()))
}

// runningProcesses are the processes of this machine as far as we may see them.
func runningProcesses() ([]process, error) {
	switch runtime.GOOS {
	case "linux":
		return processesOfProc("/proc")
	case "windows":
		return nil, errors.New("brokers cannot be found by their names here: end the process of the broker")
	}
	out, err := exec.Command("ps", "-axww", "-o", "pid=,args=").Output()
	if err != nil {
		return nil, err
	}
	return parsePS(string(out)), nil
}

// parsePS reads lines of a process id and its arguments.
func parsePS(out string) []process {
	var all []process
	for _, line := range strings.Split(out, "\n") {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		if pid, err := strconv.Atoi(words[0]); err == nil {
			all = append(all, process{pid, words[1:]})
		}
	}
	return all
}

// processesOfProc reads Linux's /proc.
func processesOfProc(proc string) ([]process, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, err
	}
	var all []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// A process may end while we look.
		raw, err := os.ReadFile(filepath.Join(proc, e.Name(), "cmdline"))
		if err != nil || len(raw) == 0 {
			continue
		}
		all = append(all, process{pid, strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00")})
	}
	return all, nil
}

// terminate asks a process to end in order.
func terminate(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Signal(syscall.SIGTERM)
}
