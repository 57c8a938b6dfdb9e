package zktest

import "syscall"

// dieWithParent lets the process die with the test, however that ends.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
