package cli

import (
	"net"
	"os"
)

// notify tells systemd how the service is (Type=notify); without systemd it does nothing. See sd_notify(3).
//
// Under Type=notify the unit is started only now, and whatever is ordered after it finds a broker that serves.
// A socket name that begins with @ is an abstract one, which net takes as it is.
func notify(state string) error {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(state))
	return err
}
