package process

import "syscall"

// dieWithParent lets a broker die with the program that runs it, however that ends.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
