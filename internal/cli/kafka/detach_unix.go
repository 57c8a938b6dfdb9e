//go:build !windows

package kafka

import (
	"os/exec"
	"syscall"
)

// detach lets a command outlive the terminal.
func detach(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
