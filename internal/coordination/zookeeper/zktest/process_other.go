//go:build !linux

package zktest

import "syscall"

// dieWithParent has no counterpart here: a test that is killed leaves its server behind.
func dieWithParent() *syscall.SysProcAttr { return nil }
