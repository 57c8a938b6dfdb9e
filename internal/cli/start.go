package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/broker"
	"github.com/barnabas-mq/barnabas/internal/config"
)

// stopTimeout bounds an orderly end; after it the process ends as after a crash.
const stopTimeout = 30 * time.Second

// startFlags are the flags of barnabas start.
type startFlags struct {
	dataDir, readyFile, logFormat string
	overrides                     []string
}

func startCommand(s *streams) *cobra.Command {
	var flags startFlags
	command := &cobra.Command{
		Use:   "start [server.properties]",
		Short: "Run a broker",
		Long: `Run a broker until it is told to stop with SIGTERM or SIGINT.

Without any configuration it listens on 127.0.0.1:9092 and keeps its data in ./data. A server.properties of
Apache Kafka works as it is. What --override says beats the environment (KAFKA_...), which beats the file.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{fmt.Errorf("start takes one file, got %d", len(args))}
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error { return runStart(command.Context(), s, flags, args) },
	}
	command.Flags().StringVar(&flags.dataDir, "data-dir", "", "directory of the data; beats log.dirs")
	command.Flags().StringArrayVar(&flags.overrides, "override", nil, "a property as key=value; may be repeated")
	command.Flags().StringVar(&flags.readyFile, "ready-file", "", "file to write the address to once the broker serves")
	command.Flags().StringVar(&flags.logFormat, "log-format", "", "text or json; beats logging.format")
	return command
}

// loadConfig reads the broker's properties from all their places.
func loadConfig(flags startFlags, args []string) (*config.Broker, []config.Warning, error) {
	o := config.LoadOptions{Environ: os.Environ(), Overrides: flags.overrides}
	if len(args) == 1 {
		o.File = args[0]
	}
	if flags.dataDir != "" {
		o.Overrides = append(o.Overrides, "log.dirs="+flags.dataDir)
	}
	if flags.logFormat != "" {
		o.Overrides = append(o.Overrides, "logging.format="+flags.logFormat)
	}
	return config.Load(o)
}

func runStart(ctx context.Context, s *streams, flags startFlags, args []string) error {
	loaded, warnings, err := loadConfig(flags, args)
	if err != nil {
		return err
	}
	logger := newLogger(s.err, loaded.String("logging.format"), loaded.String("logging.level"))
	for _, w := range warnings {
		logger.Warn(w.Message, "property", w.Key)
	}
	if err := errors.Join(loaded.Unsupported()...); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	b, err := broker.Start(ctx, broker.Options{Config: loaded, Version: version, Logger: logger})
	if err != nil {
		return err
	}
	endpoint, err := startEndpoint(loaded, b, logger)
	if err == nil {
		tell(logger, flags.readyFile, b)
		select {
		case <-ctx.Done():
			logger.Info("stopping")
		case <-b.Done():
		}
	}
	stop()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if endpoint != nil {
		err = errors.Join(err, endpoint.Shutdown(ending))
	}
	return errors.Join(err, b.Err(), b.Stop(ending))
}

// tell says that the broker serves, to whoever waits for that.
func tell(logger *slog.Logger, readyFile string, b *broker.Broker) {
	if err := announce(readyFile, b); err != nil {
		logger.Error("the ready file cannot be written", "error", err)
	}
	if err := notify("READY=1"); err != nil {
		logger.Error("systemd cannot be told that the broker serves", "error", err)
	}
}

// announce writes the addresses of the listeners into a file, one a line, for scripts that start a broker
// on a free port.
func announce(file string, b *broker.Broker) error {
	if file == "" {
		return nil
	}
	partial := file + ".partial"
	if err := os.WriteFile(partial, []byte(strings.Join(b.Addresses(), "\n")+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(partial, file)
}
