package quorum

import (
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// raftLogger gives raft's log lines to slog. What raft calls information is for debugging a broker.
type raftLogger struct {
	hclog.Logger // swallows what is not overridden
	to           *slog.Logger
}

// newRaftLogger makes the logger that raft gets.
func newRaftLogger(to *slog.Logger) hclog.Logger {
	return raftLogger{hclog.NewNullLogger(), to.With("component", "raft")}
}

// levelOf translates a level.
func levelOf(level hclog.Level) slog.Level {
	switch level {
	case hclog.Warn:
		return slog.LevelWarn
	case hclog.Error:
		return slog.LevelError
	}
	return slog.LevelDebug
}

// Log implements hclog.Logger; the levels below go through it.
func (l raftLogger) Log(level hclog.Level, message string, args ...any) {
	l.to.Log(context.Background(), levelOf(level), message, args...)
}

// Trace logs for debugging: slog has nothing below that.
func (l raftLogger) Trace(message string, args ...any) { l.Log(hclog.Trace, message, args...) }

// Debug logs for debugging.
func (l raftLogger) Debug(message string, args ...any) { l.Log(hclog.Debug, message, args...) }

// Info logs for debugging, too: elections of one voter are no news.
func (l raftLogger) Info(message string, args ...any) { l.Log(hclog.Info, message, args...) }

// Warn logs a warning.
func (l raftLogger) Warn(message string, args ...any) { l.Log(hclog.Warn, message, args...) }

// Error logs an error.
func (l raftLogger) Error(message string, args ...any) { l.Log(hclog.Error, message, args...) }

// With adds attributes to every line.
func (l raftLogger) With(args ...any) hclog.Logger { return raftLogger{l.Logger, l.to.With(args...)} }

// Named keeps the name: one component is enough.
func (l raftLogger) Named(string) hclog.Logger { return l }

// ResetNamed keeps the name as well.
func (l raftLogger) ResetNamed(string) hclog.Logger { return l }
