package cli

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progressEvery is how often a line of progress may change.
const progressEvery = 200 * time.Millisecond

// progress is one line on standard error that tells a person how far a long work is. Where nobody looks
// (a pipe, a file) it prints nothing.
//
// It goes to standard error and is wiped before anything else is printed, so that reports never mix with it.
type progress struct {
	w     io.Writer
	last  time.Time
	drawn bool
}

func (c *common) progress() *progress {
	if isTerminal(c.err) {
		return &progress{w: c.err}
	}
	return &progress{}
}

// show replaces the line, if enough time has passed since the last.
func (p *progress) show(format string, args ...any) {
	if p.w == nil {
		return
	}
	now := time.Now()
	if now.Sub(p.last) < progressEvery {
		return
	}
	p.last, p.drawn = now, true
	fmt.Fprintf(p.w, "\r\x1b[K"+format, args...)
}

// end takes the line away.
func (p *progress) end() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// isTerminal reports whether a person reads what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
