package controller

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/metadata"
	"github.com/barnabas-mq/barnabas/internal/peer"
)

// While a controller's session may be over, another one may lead: it says nothing to brokers.
func TestNothingIsSentWhileTheSessionMayBeOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		var certain atomic.Bool
		q := &queue{
			broker: 1, certain: certain.Load, timeout: time.Second, answers: make(chan answer),
			channel: peer.New(func(context.Context) (net.Conn, error) { dials.Add(1); return nil, io.ErrClosedPipe }, "0"),
			logger:  slog.New(slog.DiscardHandler), wake: make(chan struct{}, 1),
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); q.run(ctx) }()
		q.add(func(b *backlog) { b.refresh(metadata.Empty()) })
		<-time.After(time.Minute)
		if n := dials.Load(); n != 0 {
			t.Errorf("%d attempts to tell the broker", n)
		}
		certain.Store(true)
		<-time.After(backoffMax)
		if dials.Load() == 0 {
			t.Error("the broker is not told afterwards either")
		}
		cancel()
		<-ended
	})
}
