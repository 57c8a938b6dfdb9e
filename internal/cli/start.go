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
	"github.com/barnabas-mq/barnabas/internal/console"
)

// stopTimeout bounds an orderly end unless --stop-timeout says otherwise. When it is over, logs that are not synced
// yet are left as a crash leaves them: nothing acknowledged is lost, but the next start has to look through them.
const stopTimeout = 30 * time.Second

// endpointTimeout is for requests to http.listener when the broker has ended.
const endpointTimeout = time.Second

// configFlags say where a broker's properties come from, besides a file and the environment.
type configFlags struct {
	dataDir             string
	overrides, defaults []string
}

// add adds the flags to a command.
func (f *configFlags) add(command *cobra.Command) {
	command.Flags().StringVar(&f.dataDir, "data-dir", "", "directory of the data; beats log.dirs")
	command.Flags().StringArrayVar(&f.overrides, "override", nil, "a property as key=value; may be repeated")
	command.Flags().StringArrayVar(&f.defaults, "default", nil,
		"a property as key=value, for where there is no file and nothing else sets it; may be repeated")
}

// load reads the broker's properties from all their places; args may name a file.
func (f *configFlags) load(args []string) (*config.Broker, []config.Warning, error) {
	o := config.LoadOptions{Environ: os.Environ(), Overrides: f.overrides, Defaults: f.defaults}
	if len(args) == 1 {
		o.File = args[0]
	}
	if f.dataDir != "" {
		o.Overrides = append(o.Overrides, "log.dirs="+f.dataDir)
	}
	return config.Load(o)
}

// startFlags are the flags of barnabas start.
type startFlags struct {
	configFlags
	readyFile, logFormat string
	stopTimeout          time.Duration
}

// The life of the process:
//
//	load properties        a fault ends it before anything is touched; unknown names only warn
//	broker.Start           locks directories, recovers logs, listens
//	http.listener          metrics and health
//	ready file, systemd    addresses are written and READY=1 sent only when clients would be served
//	SIGTERM, SIGINT        an orderly end within --stop-timeout; a second signal ends the process at once
//	broker ends by itself  the same end, and exit 1 with the reason
//
// The exit code is 0 only after an orderly end.
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
	flags.add(command)
	command.Flags().StringVar(&flags.readyFile, "ready-file", "", "file to write the address to once the broker serves")
	command.Flags().DurationVar(&flags.stopTimeout, "stop-timeout", stopTimeout,
		"how long an orderly end may take; what is not synced by then is checked by the next start")
	command.Flags().StringVar(&flags.logFormat, "log-format", "", "text or json; beats logging.format")
	return command
}

func runStart(ctx context.Context, s *streams, flags startFlags, args []string) error {
	if flags.logFormat != "" {
		flags.overrides = append(flags.overrides, "logging.format="+flags.logFormat)
	}
	loaded, warnings, err := flags.load(args)
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
	signal.Ignore(syscall.SIGPIPE) // whoever read the log has gone: no reason to die as by kill -9
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
	return errors.Join(err, b.Err(), end(context.WithoutCancel(ctx), flags.stopTimeout, b, endpoint, logger))
}

// end stops the broker, then the endpoint: whoever watches the end of the broker can do so to the last.
func end(ctx context.Context, timeout time.Duration, b *broker.Broker, endpoint *console.Console, logger *slog.Logger) error {
	began := time.Now()
	ending, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := b.Stop(ending)
	if endpoint != nil {
		last, cancel := context.WithTimeout(ctx, endpointTimeout)
		defer cancel()
		if err := endpoint.Shutdown(last); err != nil {
			logger.Warn("requests to http.listener are cut off", "error", err) // a profile may take minutes
		}
	}
	if err == nil {
		logger.Info("stopped", "took", time.Since(began).Round(time.Millisecond))
	}
	return err
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
	return writeReady(file, strings.Join(b.Addresses(), "\n")+"\n")
}

// writeReady writes a ready file at once; no name is none.
//
// It appears under its name with all of its content: whoever waits for the file never reads half of it.
func writeReady(file, text string) error {
	if file == "" {
		return nil
	}
	partial := file + ".partial"
	if err := os.WriteFile(partial, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(partial, file)
}
