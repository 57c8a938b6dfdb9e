package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas"
)

// devFlags are the flags of barnabas dev.
type devFlags struct {
	brokers             int
	dataDir, address    string
	zookeeper           string
	logLevel, logFormat string
	readyFile           string
	overrides           []string
}

// All brokers share one process and, without --data-dir, no disk: what they know ends with it. It prints one
// line, bootstrap.servers=..., that a script can evaluate, and then nothing until it is stopped.
func devCommand(s *streams) *cobra.Command {
	var flags devFlags
	command := &cobra.Command{
		Use:   "dev",
		Short: "Run a cluster of several brokers in one process, to try things out",
		Long: `Run a cluster in one process until it is told to stop, and print what clients bootstrap from.

The brokers listen on free ports of 127.0.0.1, or on --address and the ports behind it, replicate to each other,
and keep everything in memory unless --data-dir says where. --zookeeper puts what the brokers share into a real
ensemble instead of a store of this process. New topics have three replicas, or as many as there
are brokers. For a cluster that survives the loss of a machine, run 'barnabas start' on several.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return runDev(command.Context(), s, flags) },
	}
	command.Flags().IntVar(&flags.brokers, "brokers", 3, "how many brokers")
	command.Flags().StringVar(&flags.dataDir, "data-dir", "", "directory of the data; in memory where it is empty")
	command.Flags().StringVar(&flags.address, "address", "", "host:port of the first broker")
	command.Flags().StringVar(&flags.zookeeper, "zookeeper", "", "ensemble for the metadata, as host:port,.../chroot; needs --data-dir")
	command.Flags().StringArrayVar(&flags.overrides, "override", nil, "a property of all brokers as key=value; may be repeated")
	command.Flags().StringVar(&flags.readyFile, "ready-file", "", "file to write the addresses to, in one line, once the brokers serve")
	command.Flags().StringVar(&flags.logFormat, "log-format", "text", "text or json")
	command.Flags().StringVar(&flags.logLevel, "log-level", "warn", "debug, info, warn or error")
	return command
}

func runDev(ctx context.Context, s *streams, flags devFlags) error {
	if flags.brokers < 1 || flags.brokers > 100 {
		return usageError{fmt.Errorf("--brokers %d is not between 1 and 100", flags.brokers)}
	}
	properties := map[string]string{}
	if flags.zookeeper != "" {
		properties["zookeeper.connect"] = flags.zookeeper
	}
	for _, override := range flags.overrides {
		key, value, ok := strings.Cut(override, "=")
		if !ok {
			return usageError{fmt.Errorf("--override %s is not key=value", override)}
		}
		properties[key] = value
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := barnabas.StartCluster(ctx, flags.brokers, barnabas.Options{
		DataDir: flags.dataDir, Address: flags.address, Properties: properties, Logger: newLogger(s.err, flags.logFormat, flags.logLevel),
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "bootstrap.servers=%s\n", c.Addresses())
	if err = writeReady(flags.readyFile, c.Addresses()+"\n"); err == nil {
		<-ctx.Done()
	}
	stop()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	return errors.Join(err, c.Stop(ending))
}
