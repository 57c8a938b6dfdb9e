package main

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// malformed lists bodies that do not decode, versions that there are not, and frames that are no requests.
//
// Kafka closes the connection at most of these; some it answers. Both are compared, since a client that is
// closed on tries another broker, and one that is answered does not.
func malformed() []testCase {
	var all []testCase
	for _, b := range bases() {
		all = append(all, b.cut(b.min, "empty", func(body []byte) []byte { return nil }),
			b.cut(b.max, "empty", func(body []byte) []byte { return nil }),
			b.cut(b.min, "half", func(body []byte) []byte { return body[:len(body)/2] }),
			b.cut(b.max, "half", func(body []byte) []byte { return body[:len(body)/2] }),
			b.cut(b.max, "short", func(body []byte) []byte { return body[:max(len(body)-1, 0)] }),
			b.cut(b.max, "long", func(body []byte) []byte { return append(body, 0) }))
		all = append(all, b.version(-1), b.version(b.max+1), b.version(100))
		if b.min > 0 && b.key != kmsg.Produce {
			all = append(all, b.version(b.min-1))
		}
	}
	for _, key := range []int16{-1, 4, 5, 6, 7, 200, 32767} {
		all = append(all, raw(fmt.Sprintf("key %d", key), frame(key, 0, false, nil)))
	}
	return append(all, frames()...)
}

// cut sends the body of a good request after something was done to it.
func (b base) cut(version int16, name string, change func([]byte) []byte) testCase {
	return testCase{fmt.Sprintf("%s v%d body %s", b.name, version, name), func(s *side, level detail) string {
		q := b.at(s, version)
		return onceBody(s, q, change(q.AppendTo(nil)), level)
	}}
}

// version sends the body of the newest version under another number.
func (b base) version(version int16) testCase {
	if b.key == kmsg.ApiVersions {
		return raw(fmt.Sprintf("%s v%d unserved", b.name, version), frame(int16(b.key), version, true, nil))
	}
	return testCase{fmt.Sprintf("%s v%d unserved", b.name, version), func(s *side, _ detail) string {
		return rawOnce(s, frame(int16(b.key), version, true, b.at(s, b.max).AppendTo(nil)))
	}}
}

func raw(name string, bytes []byte) testCase {
	return testCase{name, func(s *side, _ detail) string { return rawOnce(s, bytes) }}
}

// rawOnce reports what comes back for bytes: the error code that begins most answers.
func rawOnce(s *side, bytes []byte) string {
	c, err := dial(s.address)
	if err != nil {
		return "no connection"
	}
	defer c.Close()
	answer, err := c.exchange(bytes)
	switch {
	case err != nil:
		return err.Error()
	case len(answer) < 2:
		return "short answer"
	}
	return "answer " + errorName(int16(binary.BigEndian.Uint16(answer)))
}

// frames lists what is no request.
func frames() []testCase {
	lying := func(size uint32, rest string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, size), rest...)
	}
	return []testCase{
		raw("frame of size 0", lying(0, "")),
		raw("frame of negative size", lying(0xffffffff, "")),
		raw("frame too large", lying(200<<20, "xx")),
		raw("frame with half a header", lying(6, "\x00\x12\x00\x00\x00\x00")),
		raw("frame with a client id that is too long", lying(10, "\x00\x12\x00\x00\x00\x00\x00\x01\x7f\xff")),
		raw("frame without a client id", lying(10, "\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff")),
		raw("frame with a negative client id", lying(10, "\x00\x12\x00\x00\x00\x00\x00\x01\xff\xfe")),
		raw("http", []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")),
	}
}
