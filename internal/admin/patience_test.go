package admin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPatience ends with silence while something waits for an answer, however long all of it takes.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPatience(t.Context(), 10*time.Second)
		defer p.end()
		time.Sleep(time.Minute) // nothing is sent, so nothing is missed
		for range 10 {
			p.sent()
			time.Sleep(9 * time.Second)
			if err := p.ended(nil); err != nil || p.ctx.Err() != nil {
				t.Fatal("an answer in time, and no patience", err)
			}
		}
		other := errors.New("refused")
		p.sent()
		if err := p.ended(other); err != other {
			t.Errorf("the broker's own error becomes %v", err)
		}
		p.sent()
		time.Sleep(11 * time.Second)
		if p.ctx.Err() == nil {
			t.Fatal("nobody gives up")
		}
		if err := p.ended(context.Canceled); err == nil || !strings.Contains(err.Error(), "10s") {
			t.Errorf("the end of patience is told as %v", err)
		}
	})
}
