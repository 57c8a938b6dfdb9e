package server

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// logEvery is how often a line of one kind may be logged.
const logEvery = 10 * time.Second

// occasional logs lines that peers can provoke: the first of a kind at once, then one in ten seconds with
// the number of those left out, so that a flood of bad connections is no flood of lines.
//
//	12:00:00  refused a connection: too many  remote=10.0.0.7
//	12:00:10  refused a connection: too many  remote=10.0.0.9 skipped=41872
type occasional struct {
	logger *slog.Logger

	mu struct {
		sync.Mutex
		kinds map[string]*kind
	}
}

// kind is what is known of one kind of line. Kinds are constants of this package, so there are few.
type kind struct {
	last    time.Time
	skipped int
}

func newOccasional(logger *slog.Logger) *occasional {
	o := &occasional{logger: logger}
	o.mu.kinds = make(map[string]*kind)
	return o
}

// log writes message, unless one of its kind was written a moment ago.
func (o *occasional) log(level slog.Level, message string, attributes ...slog.Attr) {
	if skipped, ok := o.due(message); ok {
		if skipped > 0 {
			attributes = append(attributes, slog.Int("skipped", skipped))
		}
		o.logger.LogAttrs(context.Background(), level, message, attributes...)
	}
}

// due reports whether a line of this kind may be written, and how many were not since the last.
func (o *occasional) due(message string) (skipped int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k := o.mu.kinds[message]
	if k == nil {
		k = new(kind)
		o.mu.kinds[message] = k
	}
	if !k.last.IsZero() && time.Since(k.last) < logEvery {
		k.skipped++
		return 0, false
	}
	skipped, k.skipped, k.last = k.skipped, 0, time.Now()
	return skipped, true
}
