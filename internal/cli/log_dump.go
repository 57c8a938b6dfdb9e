package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// It reads files and connects to nothing; a broker may be writing to them, and then the last batch may be cut
// off.
func logDumpCommand(c *common) *cobra.Command {
	var o log.DumpOptions
	var shallow, metadata bool
	command := &cobra.Command{
		Use:   "dump FILE...",
		Short: "Print segment files: logs, indexes, producer snapshots, leader epochs",
		Long: `Print segment files in the format of kafka-dump-log: the batches of a .log with their records, the entries of
.index, .timeindex and .txnindex, the producers of a .snapshot, leader-epoch-checkpoint, partition.metadata.
What does not fit together is told on standard error, and exits with 1. With --format json a log is a line of
JSON for each batch.`,
		Args: atLeast(1, "file"),
		RunE: func(_ *cobra.Command, files []string) error {
			o.DeepIteration, o.PrintDataLog = !shallow, !shallow && !metadata
			return runLogDump(c, o, files)
		},
	}
	f := command.Flags()
	f.BoolVar(&shallow, "batches", false, "print no records")
	f.BoolVar(&metadata, "no-data", false, "print no keys and values")
	f.BoolVar(&o.VerifyIndexOnly, "verify", false, "check indexes without printing them")
	f.Int64Var(&o.MaxBytes, "max-bytes", 0, "how much of a log to read; 0 is all of it")
	return command
}

// faultWriter passes on what is wrong with a file, and remembers that something was.
type faultWriter struct {
	*common
	faults bool
}

// Write implements io.Writer.
func (w *faultWriter) Write(p []byte) (int, error) {
	w.faults = true
	return w.err.Write(p)
}

func runLogDump(c *common, o log.DumpOptions, files []string) error {
	faults := &faultWriter{common: c}
	o.Errors = faults
	for _, file := range files {
		if c.format == formatJSON {
			if err := dumpJSON(c.out, file, o.DeepIteration); err != nil {
				return err
			}
			continue
		}
		if err := log.Dump(c.out, vfs.OS(), file, o); err != nil {
			return err
		}
	}
	if faults.faults {
		return errors.New("the files do not fit together")
	}
	return nil
}
