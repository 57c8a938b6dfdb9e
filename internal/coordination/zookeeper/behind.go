package zookeeper

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// errHungUp means that a server ended the connection when it was greeted.
var errHungUp = errors.New("the server does not serve")

// behind says why a server hung up, where that is because this session has seen newer transactions than the server has;
// nil where it is not, or the server does not tell.
//
// A server does not let such a session in and gives no reason. A member of an ensemble may just lag. Where all servers
// are behind, data was lost or set back: the session stays suspended, so that nobody acts on the old tree, and goes on
// when newer data is there.
//
//	srvr ─▶
//	     ◀─ Zookeeper version: 3.8.0-…
//	        …
//	        Zxid: 0x100000024
//	        Mode: standalone
func (s *Session) behind(ctx context.Context, host, address string) error {
	s.mu.Lock()
	seen := s.mu.zxid
	s.mu.Unlock()
	if seen == 0 {
		return nil
	}
	conn, err := s.dial(ctx, host, address)
	if err != nil {
		return nil
	}
	defer conn.Close()
	unwatch := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer unwatch()
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return nil
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 4<<10))
	if newest, known := newestTransaction(answer); err == nil && known && newest < seen {
		return fmt.Errorf("%w: the newest transaction of %s is older than %#x, which this session has seen: "+
			"its data was lost, or set back to an old backup (or, in an ensemble, it lags behind). Restore newer data", errHungUp, address, seen)
	}
	return nil
}

// newestTransaction finds the number in the answer to srvr.
func newestTransaction(answer []byte) (zxid int64, known bool) {
	for line := range bytes.Lines(answer) {
		if text, found := strings.CutPrefix(strings.TrimSpace(string(line)), "Zxid: 0x"); found {
			zxid, err := strconv.ParseInt(text, 16, 64)
			return zxid, err == nil
		}
	}
	return 0, false
}
