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

func (l raftLogger) Log(level hclog.Level, message string, args ...any) {
	l.to.Log(context.Background(), levelOf(level), message, args...)
}

func (l raftLogger) Trace(message string, args ...any) { l.Log(hclog.Trace, message, args...) }
func (l raftLogger) Debug(message string, args ...any) { l.Log(hclog.Debug, message, args...) }
func (l raftLogger) Info(message string, args ...any)  { l.Log(hclog.Info, message, args...) }
func (l raftLogger) Warn(message string, args ...any)  { l.Log(hclog.Warn, message, args...) }
func (l raftLogger) Error(message string, args ...any) { l.Log(hclog.Error, message, args...) }

func (l raftLogger) With(args ...any) hclog.Logger  { return raftLogger{l.Logger, l.to.With(args...)} }
func (l raftLogger) Named(string) hclog.Logger      { return l }
func (l raftLogger) ResetNamed(string) hclog.Logger { return l }
