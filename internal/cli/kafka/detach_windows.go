package kafka

import (
	"os/exec"
	"syscall"
)

// detach lets a command outlive the console.
func detach(command *exec.Cmd) {
	const newProcessGroup, detachedProcess = 0x200, 0x8
	command.SysProcAttr = &syscall.SysProcAttr{CreationFlags: newProcessGroup | detachedProcess}
}
