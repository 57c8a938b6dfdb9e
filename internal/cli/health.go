package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// healthTimeout bounds a look at a broker, which answers from memory.
const healthTimeout = 3 * time.Second

// healthCommand looks at one broker, for health checks of containers and load balancers. It asks http.listener and
// no Kafka listener: a client follows the advertised addresses, which need not lead from a container to itself.
//
// Exit 0 where the broker serves, or serves in part; 1 where it does not, does not answer within three seconds,
// or has no http.listener. Nothing is changed, and it is cheap enough for a probe every few seconds.
func healthCommand(c *common) *cobra.Command {
	var flags configFlags
	command := &cobra.Command{
		Use:   "health [server.properties]",
		Short: "Ask the broker on this machine whether it serves; exits with 1 where it does not",
		Long: `Ask the broker on this machine, at /readyz of its http.listener, whether it serves. The address follows from the
same file, environment and flags as that of 'barnabas start'. For all brokers, see 'barnabas cluster health'.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{fmt.Errorf("health takes one file, got %d", len(args))}
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			loaded, _, err := flags.load(args)
			if err != nil {
				return err
			}
			address, err := loopback(loaded.String("http.listener"))
			if err != nil {
				return err
			}
			return runHealth(command.Context(), c, address)
		},
	}
	flags.add(command)
	return command
}

// loopback is where a listener's address is reached from this machine: one of all interfaces is none to connect to.
func loopback(listener string) (string, error) {
	if listener == "" {
		return "", fmt.Errorf("http.listener is off: there is nothing to ask")
	}
	host, port, err := net.SplitHostPort(listener)
	if err != nil {
		return "", fmt.Errorf("http.listener %s: %w", listener, err)
	}
	if port == "0" {
		return "", fmt.Errorf("http.listener %s leaves the port to the system: which one it took stands in the broker's log", listener)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port), nil
}

func runHealth(ctx context.Context, c *common, address string) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the broker does not serve: %s", strings.TrimSpace(string(said)))
	}
	r := &report{}
	r.object("health").set("ready", true).set("address", address)
	return c.print(r)
}
