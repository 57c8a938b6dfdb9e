package server

import (
	"bytes"
	"fmt"
)

// badLength is a length that no frame has, with what the stream began with.
type badLength struct {
	length int32
	limit  int
	first  []byte // the length's own bytes and what came with them
}

// Error says what the four bytes most likely are, since a number alone helps nobody.
func (e *badLength) Error() string {
	if what := resembles(e.first); what != "" {
		return what + " on a port that speaks Kafka's protocol"
	}
	if e.length <= 0 {
		return fmt.Sprintf("a frame length of %d", e.length)
	}
	return fmt.Sprintf("a frame of %d bytes, above the limit of %d (socket.request.max.bytes)", e.length, e.limit)
}

// resembles names what garbage looks like, for the one line in the log that saves somebody an hour: a
// browser or health check on the wrong port, or a client that speaks TLS to a plain listener.
//
// The lengths that such bytes make, as Kafka's own log has them:
//
//	GET    1195725856    POST   1347375956    HTTP   1213486160    TLS    369295616 and a little more
func resembles(first []byte) string {
	for _, verb := range []string{"GET ", "POST", "PUT ", "HEAD", "OPTI", "DELE", "PATC", "CONN", "PRI ", "HTTP"} {
		if bytes.HasPrefix(first, []byte(verb)) {
			return "HTTP"
		}
	}
	switch {
	case len(first) >= 3 && first[0] == 0x16 && first[1] == 3 && first[2] <= 4:
		return "a TLS handshake"
	case bytes.HasPrefix(first, []byte("SSH-")):
		return "SSH"
	case bytes.HasPrefix(first, []byte("ruok")), bytes.HasPrefix(first, []byte("stat")),
		bytes.HasPrefix(first, []byte("mntr")):
		return "a ZooKeeper command"
	case len(first) >= 4 && printable(first[:4]):
		return fmt.Sprintf("text (%q)", first[:min(len(first), 16)])
	}
	return ""
}

// printable reports whether b is ASCII text.
func printable(b []byte) bool {
	for _, c := range b {
		if (c < ' ' || c > '~') && c != '\r' && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}
