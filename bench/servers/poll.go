package servers

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"time"
)

// final is an error that trying again does not change.
type final struct{ error }

// Poll calls check every interval until it returns nil, or an error that is final; when ctx ends, the last error says what
// was missing, but not that of a check which the end has cut off, where there is another.
func Poll(ctx context.Context, every time.Duration, check func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last error
	for {
		err := check()
		if err == nil || errors.As(err, new(final)) {
			return err
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		}
	}
}

// answerLimit is how long one question may wait for its answer.
const answerLimit = 2 * time.Second

func dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: answerLimit}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(answerLimit))
}

// answersKafka asks for ApiVersions version 0, on a connection of its own.
//
//	length int32 | key 18 int16 | version 0 int16 | correlation id int32 | client id string
func answersKafka(ctx context.Context, address string) error {
	conn, err := dial(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("\x00\x00\x00\x0f\x00\x12\x00\x00\x00\x00\x00\x01\x00\x05bench")); err != nil {
		return err
	}
	var head [8]byte // length and correlation id
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	if id := binary.BigEndian.Uint32(head[4:]); id != 1 {
		return fmt.Errorf("an answer to request %d, which was not asked", id)
	}
	return nil
}

// answersZooKeeper asks for the state; only a server that takes sessions tells its mode.
func answersZooKeeper(ctx context.Context, address string) error {
	conn, err := dial(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return err
	}
	text, err := io.ReadAll(conn)
	if err == nil && !strings.Contains(string(text), "\nMode:") {
		err = errors.New("ZooKeeper takes no sessions yet")
	}
	return err
}

// answersAnything is content with a connection.
func answersAnything(ctx context.Context, address string) error {
	conn, err := dial(ctx, address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// AwaitNoFiles waits, looking every so often, until the server has no folder of a topic that was deleted, under whichever
// name.
func (s *Server) AwaitNoFiles(ctx context.Context, topic string, every time.Duration) error {
	return Poll(ctx, every, func() error {
		left, err := filepath.Glob(filepath.Join(s.Data(), topic+"-*"))
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("topic %s is deleted, and %s is still there", topic, left[0])
		}
		return err
	})
}
