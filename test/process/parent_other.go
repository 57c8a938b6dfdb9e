//go:build !linux

package process

import "syscall"

// dieWithParent has no counterpart here: a program that is killed leaves its brokers behind.
func dieWithParent() *syscall.SysProcAttr { return nil }
