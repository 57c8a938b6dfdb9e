package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// answerTimeout is how long a broker may take; longer than any wait that a case asks for.
const answerTimeout = 6 * time.Second

// answerMax bounds the size of an answer.
const answerMax = 16 << 20

// conn is a connection that sends frames as they are.
type conn struct {
	net.Conn
	reader *bufio.Reader
}

func dial(address string) (*conn, error) {
	c, err := net.DialTimeout("tcp", address, answerTimeout)
	if err != nil {
		return nil, err
	}
	return &conn{c, bufio.NewReader(c)}, nil
}

// frame is a request with its length and header; the body is sent as it is.
//
//	length int32 | key int16 | version int16 | correlation id int32 = 1 | client id "diff" | tags, where flexible
//
// ApiVersions answers with the oldest header whatever its version, which is why exchange hands back what lies
// behind the correlation id and body looks at the rest.
func frame(key, version int16, flexible bool, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, 1)
	b = binary.BigEndian.AppendUint16(b, 4)
	b = append(b, "diff"...)
	if flexible {
		b = append(b, 0)
	}
	b = append(b, body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// errClosed is a connection that the broker ended without an answer.
var errClosed = errors.New("closed")

// errSilent is a broker that does not answer.
var errSilent = errors.New("no answer")

// exchange sends one frame and reads the next: the bytes behind the correlation id.
func (c *conn) exchange(b []byte) ([]byte, error) {
	if err := c.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return nil, err
	}
	if _, err := c.Write(b); err != nil {
		return nil, errClosed
	}
	var head [8]byte
	if _, err := io.ReadFull(c.reader, head[:]); err != nil {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return nil, errSilent
		}
		return nil, errClosed
	}
	size := binary.BigEndian.Uint32(head[:4])
	if size < 4 || size > answerMax {
		return nil, fmt.Errorf("an answer of %d bytes", size)
	}
	body := make([]byte, size-4)
	if _, err := io.ReadFull(c.reader, body); err != nil {
		return nil, errClosed
	}
	return body, nil
}

// request sends a request and decodes the answer.
func (c *conn) request(q kmsg.Request) (kmsg.Response, error) {
	return c.body(q, q.AppendTo(nil))
}

// body sends a body of its own in the name of a request.
func (c *conn) body(q kmsg.Request, body []byte) (kmsg.Response, error) {
	answer, err := c.exchange(frame(q.Key(), q.GetVersion(), q.IsFlexible(), body))
	if err != nil {
		return nil, err
	}
	response := q.ResponseKind()
	if response.IsFlexible() && q.Key() != int16(kmsg.ApiVersions) {
		if len(answer) == 0 || answer[0] != 0 {
			return nil, errors.New("a response header with tags")
		}
		answer = answer[1:]
	}
	return response, response.ReadFrom(answer)
}
