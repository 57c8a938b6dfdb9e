package sim

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// journal is what everybody said, with virtual times, for the reader of a failed run.
type journal struct {
	began time.Time
	// to gets every line at once, for runs that do not end; nil for nobody.
	to io.Writer

	mu struct {
		sync.Mutex
		lines []string // the newest
		bugs  []string // lines about panics
	}
}

// kept is how many lines a journal keeps for the end.
const kept = 200

// note adds a line of the simulator's own.
func (j *journal) note(format string, args ...any) { j.add("      sim", fmt.Sprintf(format, args...)) }

func (j *journal) add(who, line string) {
	at := time.Since(j.began)
	j.mu.Lock()
	defer j.mu.Unlock()
	full := fmt.Sprintf("%14.9f %-11s %s", at.Seconds(), who, line)
	if len(j.mu.lines) == 2*kept {
		j.mu.lines = slices.Delete(j.mu.lines, 0, kept)
	}
	j.mu.lines = append(j.mu.lines, full)
	if j.to != nil {
		fmt.Fprintln(j.to, full) //nolint:errcheck // it is for people who look on
	}
	if strings.Contains(line, "panic=") {
		j.mu.bugs = append(j.mu.bugs, full)
	}
}

// panics lists the lines about bugs that brokers found in themselves.
func (j *journal) panics() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mu.bugs
}

// newest are the last lines.
func (j *journal) newest() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.mu.lines[max(0, len(j.mu.lines)-kept):])
}

// of is the logger of one life.
func (j *journal) of(l *life) slog.Handler { return &voice{journal: j, life: l} }

// voice is a slog.Handler that writes into the journal, until its life is over.
type voice struct {
	journal *journal
	life    *life
}

// Enabled implements slog.Handler.
func (*voice) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler. Brokers do not use it.
func (v *voice) WithAttrs([]slog.Attr) slog.Handler { return v }

// WithGroup implements slog.Handler. Brokers do not use it.
func (v *voice) WithGroup(string) slog.Handler { return v }

// Handle implements slog.Handler.
func (v *voice) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	fmt.Fprintf(&line, "%-5s %s", r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&line, " %s=%v", a.Key, a.Value)
		return true
	})
	if v.life.dead.Load() && !strings.Contains(line.String(), "panic=") {
		return nil
	}
	v.journal.add(v.life.name(), line.String())
	return nil
}
