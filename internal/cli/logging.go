package cli

import (
	"io"
	"log/slog"
	"strings"
)

// newLogger writes a broker's log lines in the format and from the level on that its configuration says.
//
// Operators bring log4j's names with them, from KAFKA_LOG4J_ROOT_LOGLEVEL; a name that nobody knows is info.
func newLogger(w io.Writer, format, level string) *slog.Logger {
	options := &slog.HandlerOptions{Level: logLevel(level)}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// The levels of log4j that slog has no name for.
const (
	levelTrace = slog.LevelDebug - 4
	levelFatal = slog.LevelError + 4
	levelOff   = slog.LevelError + 1000
)

// logLevel is a level by the name that log4j has for it.
func logLevel(name string) slog.Level {
	switch strings.ToLower(name) {
	case "trace":
		return levelTrace
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	case "fatal":
		return levelFatal
	case "off":
		return levelOff
	}
	return slog.LevelInfo
}
