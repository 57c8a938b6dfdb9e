package servers

import "syscall"

// attributes keep a server from outliving us, and from getting the interrupt that is typed for us: we end it then.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
