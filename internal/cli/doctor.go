package cli

import (
	"context"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// dialPatience bounds one attempt of the doctor to connect.
const dialPatience = 3 * time.Second

//	resolve      the name of a bootstrap address
//	connect      a TCP connection to it
//	metadata     what a broker says who it is and who the others are
//	advertised   a TCP connection to the address of every broker in that answer
//
// The last one is what fails most often: the bootstrap address works, since it was typed for this machine, and
// the advertised one was made for another network. Exit 1 where any check failed; each says what to do.
func doctorCommand(c *common) *cobra.Command {
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Find out why clients cannot connect",
		Long: `Resolve the bootstrap addresses, connect to each, ask for the brokers, and connect to the address that each
of them advertises: that is what a client does, and where it most often fails.`,
		Args: noArgs,
		RunE: func(command *cobra.Command, _ []string) error { return runDoctor(command.Context(), c) },
	}
	c.connectFlags(command)
	return command
}

// finding is the outcome of one check.
type finding struct {
	check, subject string
	err            error
	// advice says what to do about the error.
	advice string
}

func runDoctor(ctx context.Context, c *common) error {
	findings := checkBootstrap(ctx, c.addresses())
	err := c.with(ctx, func(ctx context.Context, client *admin.Client) error {
		found, err := checkAdvertised(ctx, client)
		findings = append(findings, found...)
		return err
	})
	if err != nil && slices.ContainsFunc(findings, func(f finding) bool { return f.check == "connect" && f.err == nil }) {
		findings = append(findings, finding{"metadata", strings.Join(c.addresses(), ","), err, "something answers " +
			"there, but it is no broker that takes plain connections"})
	}
	r := &report{}
	list := r.list("checks", "check", "subject", "ok", "error", "advice")
	failed := 0
	for _, f := range findings {
		if f.err == nil {
			list.add(f.check, f.subject, true, nil, nil)
			continue
		}
		failed++
		list.add(f.check, f.subject, false, f.err.Error(), orNothing(f.advice))
	}
	if err := c.print(r); err != nil {
		return err
	}
	if failed > 0 {
		return failure{failed, len(findings)}
	}
	return nil
}

// checkBootstrap resolves and connects to the addresses that a client begins with.
func checkBootstrap(ctx context.Context, addresses []string) []finding {
	var findings []finding
	for _, address := range addresses {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			host, address = address, net.JoinHostPort(address, "9092")
		}
		_, err = net.DefaultResolver.LookupHost(ctx, host)
		findings = append(findings, finding{"resolve", host, err, "the name has no address here: use another, or add " +
			"it to the name service"})
		if err == nil {
			findings = append(findings, finding{"connect", address, dial(ctx, address), "no broker listens there, or a " +
				"firewall is between: start one (barnabas start), or look at its listeners"})
		}
	}
	return findings
}

func dial(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err == nil {
		conn.Close()
	}
	return err
}

// checkAdvertised connects to what each broker says that it is.
func checkAdvertised(ctx context.Context, client *admin.Client) ([]finding, error) {
	cluster, err := client.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	findings := []finding{{check: "metadata", subject: cluster.ID}}
	for _, b := range cluster.Brokers {
		findings = append(findings, finding{
			"advertised", b.Address(), dial(ctx, b.Address()),
			"clients are sent to this address by the broker and cannot reach it: set advertised.listeners to one that they can",
		})
	}
	return findings, nil
}
