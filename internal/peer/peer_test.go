package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/wire"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// broker is the other side: every dialled connection comes out of conns.
type broker struct {
	t     *testing.T
	conns chan net.Conn
	fail  error // of the next dial
}

func newBroker(t *testing.T) (*broker, *Channel) {
	b := &broker{t: t, conns: make(chan net.Conn, 4)}
	c := New(func(context.Context) (net.Conn, error) {
		if err := b.fail; err != nil {
			b.fail = nil
			return nil, err
		}
		ours, theirs := net.Pipe()
		b.conns <- theirs
		return ours, nil
	}, "1")
	t.Cleanup(c.Close)
	return b, c
}

// next reads one request from a connection.
func (b *broker) next(conn net.Conn) (wire.RequestHeader, *kmsg.HeartbeatRequest) {
	b.t.Helper()
	var prefix [4]byte
	if _, err := io.ReadFull(conn, prefix[:]); err != nil {
		b.t.Error(err)
		return wire.RequestHeader{}, nil
	}
	frame := make([]byte, binary.BigEndian.Uint32(prefix[:]))
	if _, err := io.ReadFull(conn, frame); err != nil {
		b.t.Error(err)
	}
	header, body, err := wire.ParseRequestHeader(frame)
	if err != nil {
		b.t.Error(err)
	}
	request := &kmsg.HeartbeatRequest{Version: header.Version}
	if err := request.ReadFrom(body); err != nil {
		b.t.Error(err)
	}
	return header, request
}

// answer answers a request; the generation comes back as the throttle time.
func (b *broker) answer(conn net.Conn, header wire.RequestHeader, request *kmsg.HeartbeatRequest) {
	response := &kmsg.HeartbeatResponse{Version: header.Version, ThrottleMillis: request.Generation}
	frame := wire.AppendResponseHeader(make([]byte, 4), header.Key, header.Version, header.CorrelationID)
	frame = response.AppendTo(frame)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	if _, err := conn.Write(frame); err != nil {
		b.t.Error(err)
	}
}

func heartbeat(n int32) *kmsg.HeartbeatRequest {
	return &kmsg.HeartbeatRequest{Version: 4, Group: "g", Generation: n}
}

func got(t *testing.T, response kmsg.Response, err error, want int32) {
	t.Helper()
	if err != nil {
		t.Error(err)
	} else if n := response.(*kmsg.HeartbeatResponse).ThrottleMillis; n != want {
		t.Errorf("answer %d, want %d", n, want)
	}
}

func TestPipelinedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBroker(t)
		var wait sync.WaitGroup
		for n := range int32(10) {
			wait.Go(func() {
				response, err := c.Do(t.Context(), heartbeat(n))
				got(t, response, err, n)
			})
			synctest.Wait() // the order of asking is the order of sending
		}
		conn := <-b.conns
		headers, requests := []wire.RequestHeader{}, []*kmsg.HeartbeatRequest{}
		for n := range int32(10) { // all ten come before the first answer
			header, request := b.next(conn)
			if request.Generation != n || header.ClientID != "1" {
				t.Errorf("request %d came as number %d: %+v", request.Generation, n, header)
			}
			headers, requests = append(headers, header), append(requests, request)
		}
		for i := range headers {
			b.answer(conn, headers[i], requests[i])
		}
		wait.Wait()
		c.Close()
	})
}

func TestDialFailureIsNotSent(t *testing.T) {
	b, c := newBroker(t)
	b.fail = io.ErrUnexpectedEOF
	_, err := c.Do(t.Context(), heartbeat(1))
	if !errors.Is(err, io.ErrUnexpectedEOF) || Sent(err) {
		t.Error(err)
	}
	go func() {
		conn := <-b.conns
		header, request := b.next(conn)
		b.answer(conn, header, request)
	}()
	response, err := c.Do(t.Context(), heartbeat(2))
	got(t, response, err, 2)
}

func TestLostConnectionSaysSentAndConnectsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBroker(t)
		go func() {
			conn := <-b.conns
			b.next(conn)
			_ = conn.Close()
			conn = <-b.conns
			header, request := b.next(conn)
			b.answer(conn, header, request)
		}()
		_, err := c.Do(t.Context(), heartbeat(1))
		if err == nil || !Sent(err) {
			t.Error(err)
		}
		response, err := c.Do(t.Context(), heartbeat(2))
		got(t, response, err, 2)
		c.Close()
	})
}

func TestDeadlineEndsTheConnectionAndCancelDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBroker(t)
		cancelled, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait()
			cancel()
		}()
		served := make(chan struct{})
		go func() {
			conn := <-b.conns
			h1, r1 := b.next(conn)
			h2, r2 := b.next(conn)
			b.answer(conn, h1, r1) // to nobody
			b.answer(conn, h2, r2)
			b.next(conn)
			b.next(conn)
			_, err := conn.Read(make([]byte, 1))
			if !errors.Is(err, io.EOF) {
				t.Error("the connection to a hung broker is still there:", err)
			}
			close(served)
		}()
		if _, err := c.Do(cancelled, heartbeat(1)); !errors.Is(err, context.Canceled) || !Sent(err) {
			t.Error(err)
		}
		response, err := c.Do(t.Context(), heartbeat(2))
		got(t, response, err, 2)

		behind := make(chan error)
		go func() {
			<-time.After(time.Second / 2)
			_, err := c.Do(t.Context(), heartbeat(4))
			behind <- err
		}()
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Do(late, heartbeat(3)); !errors.Is(err, context.DeadlineExceeded) || !Sent(err) {
			t.Error(err)
		}
		if err := <-behind; err == nil || !Sent(err) {
			t.Error(err)
		}
		<-served
		c.Close()
	})
}

func TestBlockedWriteEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBroker(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Do(ctx, heartbeat(1)) // nobody reads from the pipe
		if err == nil || Sent(err) {
			t.Error("nothing was written, yet:", err)
		}
		<-b.conns
		c.Close()
	})
}

func TestAnswersThatMakeNoSense(t *testing.T) {
	for name, bytes := range map[string][]byte{
		"wrong correlation id": {0, 0, 0, 11, 0, 0, 0, 99, 0, 0, 0, 0, 0, 0, 0},
		"negative length":      {0xff, 0xff, 0xff, 0xff},
		"long length":          {0x7f, 0xff, 0xff, 0xff},
		"short header":         {0, 0, 0, 2, 0, 0},
		"short body":           {0, 0, 0, 6, 0, 0, 0, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, c := newBroker(t)
				go func() {
					conn := <-b.conns
					b.next(conn)
					_, _ = conn.Write(bytes) // the channel may stop reading in the middle
					if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
						t.Error("the connection is still open:", err)
					}
				}()
				if _, err := c.Do(t.Context(), heartbeat(1)); err == nil || !Sent(err) {
					t.Error(err)
				}
				c.Close()
			})
		})
	}
}

func TestCloseFailsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBroker(t)
		failed := make(chan error)
		go func() {
			_, err := c.Do(t.Context(), heartbeat(1))
			failed <- err
		}()
		b.next(<-b.conns)
		c.Close()
		c.Close()
		if err := <-failed; !errors.Is(err, ErrClosed) || !Sent(err) {
			t.Error(err)
		}
		if _, err := c.Do(t.Context(), heartbeat(1)); !errors.Is(err, ErrClosed) || Sent(err) {
			t.Error(err)
		}
	})
}

func TestCloseEndsADial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(func(ctx context.Context) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, "")
		failed := make(chan error)
		go func() {
			_, err := c.Do(t.Context(), heartbeat(1))
			failed <- err
		}()
		synctest.Wait()
		c.Close()
		if err := <-failed; !errors.Is(err, ErrClosed) || Sent(err) {
			t.Error(err)
		}
	})
}

func TestStopReplicaIsKafkas(t *testing.T) {
	// Controller 1 in epoch 1 tells broker epoch 454 to delete manual-0 in leader epoch 5: Kafka 3.9.
	golden := []byte("\x00\x00\x00\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01\xc6\x02\x07manual\x02\x00\x00\x00\x00\x00\x00\x00\x05\x01\x00\x00\x00")
	request := NewStopReplica(4)
	if err := request.ReadFrom(golden); err != nil {
		t.Fatal(err)
	}
	p := request.Topics[0].PartitionStates[0]
	if request.ControllerID != 1 || request.ControllerEpoch != 1 || request.IsKRaftController || request.BrokerEpoch != 454 ||
		request.Topics[0].Topic != "manual" || p.LeaderEpoch != 5 || !p.Delete {
		t.Errorf("%+v", request)
	}
	if again := request.AppendTo([]byte("x")); string(again) != "x"+string(golden) {
		t.Errorf("%q", again)
	}
	if err := NewStopReplica(4).ReadFrom(golden[:6]); err == nil {
		t.Error("half a request was read")
	}
	old := NewStopReplica(3)
	old.ControllerEpoch = 7
	back := NewStopReplica(3)
	if err := back.ReadFrom(old.AppendTo(nil)); err != nil || back.ControllerEpoch != 7 {
		t.Error(err, back)
	}
}

// A request is sent over the connection that there is. Who waits may be interrupted, and gets the answer when it waits
// again.
func TestAWaitIsInterruptedAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBroker(t)
		if _, err := c.Send(t.Context(), heartbeat(0)); err == nil || Sent(err) {
			t.Errorf("without a connection: %v", err)
		}
		serve := func() {
			conn := <-b.conns
			header, request := b.next(conn)
			b.answer(conn, header, request)
			b.conns <- conn
		}
		go serve()
		response, err := c.Do(t.Context(), heartbeat(1))
		got(t, response, err, 1)
		synctest.Wait()
		conn := <-b.conns
		served, answer := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(served)
			header, request := b.next(conn)
			<-answer
			b.answer(conn, header, request)
		}()
		sent, err := c.Send(t.Context(), heartbeat(7))
		if err != nil {
			t.Fatal(err)
		}
		interrupt := make(chan struct{}, 1)
		interrupt <- struct{}{}
		if _, _, err := sent.Wait(t.Context(), interrupt); !errors.Is(err, ErrInterrupted) {
			t.Errorf("%v", err)
		}
		close(answer)
		response, frame, err := sent.Wait(t.Context(), interrupt)
		got(t, response, err, 7)
		if len(frame) == 0 {
			t.Error("no memory to give back")
		}
		<-served
		c.Close()
	})
}

// More requests than may be under way wait for their turn, and a large answer arrives whole.
func TestManyInFlightAndALargeAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newBroker(t)
		var wait sync.WaitGroup
		var large atomic.Int32
		for range 2 * maxInFlight {
			wait.Go(func() {
				response, err := c.Do(t.Context(), &kmsg.SASLAuthenticateRequest{})
				if err != nil {
					t.Error(err)
				} else if len(response.(*kmsg.SASLAuthenticateResponse).SASLAuthBytes) == 2*eager {
					large.Add(1)
				}
			})
		}
		go b.serveBytes(<-b.conns, 2*maxInFlight)
		wait.Wait()
		if large.Load() != 1 {
			t.Errorf("%d large answers", large.Load())
		}
		c.Close()
	})
}

// serveBytes answers n requests, the first with more than there is space for beforehand.
func (b *broker) serveBytes(conn net.Conn, n int) {
	for i := range n {
		var prefix [4]byte
		if _, err := io.ReadFull(conn, prefix[:]); err != nil {
			b.t.Error(err)
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(prefix[:]))
		if _, err := io.ReadFull(conn, frame); err != nil {
			b.t.Error(err)
			return
		}
		header, _, _ := wire.ParseRequestHeader(frame)
		response := kmsg.SASLAuthenticateResponse{}
		if i == 0 {
			response.SASLAuthBytes = make([]byte, 2*eager)
		}
		out := response.AppendTo(wire.AppendResponseHeader(make([]byte, 4), header.Key, header.Version, header.CorrelationID))
		binary.BigEndian.PutUint32(out, uint32(len(out)-4))
		if _, err := conn.Write(out); err != nil {
			b.t.Error(err)
			return
		}
	}
}
