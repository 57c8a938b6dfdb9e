package broker_test

import (
	"encoding/binary"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// garbageCost is how much memory a broker may allocate over the handling of one piece of garbage, whatever
// sizes it claims; most of it is the test's own.
const garbageCost = 4 << 20

// bystander is a client of good manners beside the others: none of them may hurt it, or what it has written.
type bystander struct {
	*conn
	fs   vfs.FS
	logs map[string]string
}

func newBystander(r *running) *bystander {
	c := r.dial()
	c.create("kept", 1)
	c.produce("kept", 0, batch(record.BuilderOptions{}, "a", "b"))
	return &bystander{c, r.site.fs, logs(r.t, r.site.fs, "/data")}
}

// unharmed fails the test where something has changed since the bystander was made.
func (b *bystander) unharmed(after string) {
	b.t.Helper()
	b.alive()
	for path, digest := range logs(b.t, b.fs, "/data") {
		if b.logs[path] != digest {
			b.t.Errorf("%s: the log %s has changed", after, path)
		}
	}
}

// cost is how many bytes the process allocates while f runs.
func cost(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestGarbage sends what is no request, or half of one: the connection closes, at a bounded price.
func TestGarbage(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory(), memory: true}
	r := s.start()
	by := newBystander(r)
	size := func(n uint32, rest string) []byte { return append(binary.BigEndian.AppendUint32(nil, n), rest...) }
	header := "\x00\x12\x00\x00\x00\x00\x00\x01" // ApiVersions 0
	random := make([]byte, 1000)
	rand.NewChaCha8([32]byte{1}).Read(random)
	for _, g := range []struct {
		name  string
		bytes []byte
	}{
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")},
		{"TLS hello", unhex(t, "16030100c8010000c403031122334455667788990011223344556677889900112233445566778899001122")},
		{"SSH", []byte("SSH-2.0-OpenSSH_9.9\r\n")},
		{"random bytes", random},
		{"zeros", make([]byte, 100)},
		{"size -1", size(0xffffffff, header)},
		{"size of the smallest integer", size(0x80000000, header)},
		{"size of the largest integer", size(0x7fffffff, header)},
		{"size 0", size(0, header)},
		{"size one above the limit", size(100<<20+1, header)},
		{"header cut short", size(7, header[:7])},
		{"client id beyond the frame", size(10, header+"\x7f\xff")},
		{"tags beyond the frame", size(15, "\x00\x03\x00\x0c\x00\x00\x00\x01\x00\x00\xff\xff\xff\xff\x0f")},
		{"more tags than bytes", size(13, "\x00\x03\x00\x0c\x00\x00\x00\x01\x00\x00\x7f\x00\x00")},
		{"varint without an end", size(21, "\x00\x03\x00\x0c\x00\x00\x00\x01\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")},
		{"request without a body", frame(3, 9, 1, true, nil)},
		{"request with half a body", frame(3, 1, 1, false, []byte{0, 0})},
	} {
		spent := cost(func() {
			c := r.dial()
			_, _ = c.Write(g.bytes)
			c.closed(g.name)
			c.Close()
		})
		if spent > garbageCost {
			t.Errorf("%s: %d bytes were allocated", g.name, spent)
		}
		by.unharmed(g.name)
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestHalfFrames claims large frames and sends little of them: the broker takes memory for what comes, not
// for what is claimed, and forgets the connections when they end.
func TestHalfFrames(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory(), memory: true}
	r := s.start()
	by := newBystander(r)
	const connections = 50
	spent := cost(func() {
		var all []*conn
		for range connections {
			c := r.dial()
			_, _ = c.Write(append(binary.BigEndian.AppendUint32(nil, 99<<20), make([]byte, 10_000)...))
			all = append(all, c)
		}
		by.unharmed("half frames")
		for _, c := range all {
			c.Conn.(*net.TCPConn).CloseWrite()
			c.closed("half a frame")
		}
	})
	if spent > connections*garbageCost/4 {
		t.Errorf("%d bytes were allocated for %d half frames", spent, connections)
	}
	by.unharmed("half frames")
}

// advertised asks what the broker serves.
func (c *conn) advertised() []kmsg.ApiVersionsResponseApiKey {
	c.t.Helper()
	return ask[*kmsg.ApiVersionsResponse](c, &kmsg.ApiVersionsRequest{
		Version: 3, ClientSoftwareName: "test", ClientSoftwareVersion: "1",
	}).ApiKeys
}

// TestUnservedVersions sends every API key in versions that are not served, with a short random body
// (BR-117), and keys that there are not. Only ApiVersions is answered: with what is served, in the layout of
// version 0, and one key (BR-200).
func TestUnservedVersions(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory(), memory: true}
	r := s.start()
	by := newBystander(r)
	body := make([]byte, 40)
	rand.NewChaCha8([32]byte{2}).Read(body)
	served := map[int16]bool{}
	for _, key := range by.advertised() {
		served[key.ApiKey] = true
		versions := []int16{-1, -32768, key.MaxVersion + 1, 32767}
		if key.MinVersion > 0 {
			versions = append(versions, key.MinVersion-1)
		}
		if kmsg.Key(key.ApiKey) == kmsg.Produce {
			versions = append(versions, 0, 1, 2) // advertised for librdkafka's sake (BR-085), not served
		}
		for _, version := range versions {
			c := r.dial()
			answer, err := c.exchange(frame(key.ApiKey, version, 7, version > key.MaxVersion && kmsg.Key(key.ApiKey) == kmsg.ApiVersions, body))
			if kmsg.Key(key.ApiKey) != kmsg.ApiVersions {
				if err == nil {
					t.Errorf("%s %d: answered with %x", kmsg.NameForKey(key.ApiKey), version, answer)
				}
				continue
			}
			var got kmsg.ApiVersionsResponse
			if err != nil || got.ReadFrom(answer[4:]) != nil || protocol.Code(got.ErrorCode) != protocol.UnsupportedVersion ||
				len(got.ApiKeys) != 1 || got.ApiKeys[0].ApiKey != 18 || got.ApiKeys[0].MaxVersion != key.MaxVersion {
				t.Errorf("ApiVersions %d: %v, %+v", version, err, got)
			}
			c.alive()
		}
	}
	for _, key := range []int16{-1, 4, 5, 6, 7, 12345, 32767, -32768} { // 4 to 7 are for controllers alone
		if served[key] {
			t.Errorf("key %d is advertised", key)
		}
		for _, version := range []int16{0, 1, 7} {
			c := r.dial()
			_, _ = c.Write(frame(key, version, 7, false, body))
			c.closed("an unknown key")
		}
	}
	by.unharmed("unserved versions")
}

// TestLyingBodies takes a request of every key that is served, filled with one of everything, and replaces
// each of its bytes by values that make lengths lie; and cuts it off everywhere. The broker answers or closes
// the connection, and takes little memory.
func TestLyingBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{t: t, fs: vfs.NewMemory(), memory: true, network: new(pipes)}
		r := s.start()
		by := newBystander(r)
		by.warm("group")
		for _, key := range by.advertised() {
			for _, version := range []int16{max(key.MinVersion, firstServed(key)), key.MaxVersion} {
				lie(r, key.ApiKey, version)
			}
		}
		by.alive()
		if got := by.readAll("kept", 0); len(got) != 2 {
			t.Errorf("%d records are left of 2", len(got))
		}
	})
}

// lie sends one key in one version with all kinds of bodies.
func lie(r *running, key, version int16) {
	q := kmsg.RequestForKey(key)
	q.SetVersion(version)
	fill1(q)
	good := q.AppendTo(nil)
	send := func(what string, body []byte) {
		spent := cost(func() {
			c := r.dial()
			_, _ = c.Write(frame(key, version, 7, q.IsFlexible(), body))
			_ = c.SetReadDeadline(time.Now().Add(time.Second)) // some wait for long
			_, _ = c.Read(make([]byte, 100))
			_ = c.Close()
		})
		if spent > garbageCost {
			r.t.Errorf("%s %d %s: %d bytes were allocated: %x", kmsg.NameForKey(key), version, what, spent, body)
		}
	}
	step := 1 + len(good)/40
	for i := 0; i < len(good); i += step {
		send("cut short", good[:i])
		for _, value := range []byte{0x00, 0x7f, 0x80, 0xff} {
			lie := append([]byte(nil), good...)
			lie[i] = value
			send("with a lie", lie)
		}
	}
}

// firstServed is the first version that is served, where more are advertised.
func firstServed(key kmsg.ApiVersionsResponseApiKey) int16 {
	if kmsg.Key(key.ApiKey) == kmsg.Produce {
		return 3
	}
	return key.MinVersion
}

// TestTrailingBytes appends bytes to good requests. Kafka takes them, and so do we: a later version of a
// client may know more.
func TestTrailingBytes(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory(), memory: true}
	c := s.start().dial()
	for _, q := range []kmsg.Request{&kmsg.MetadataRequest{Version: 1}, &kmsg.ListGroupsRequest{}} {
		answer, err := c.exchange(frame(q.Key(), q.GetVersion(), 9, false, append(q.AppendTo(nil), 1, 2, 3)))
		if err != nil || len(answer) < 5 {
			t.Errorf("%s: %v, %x", kmsg.NameForKey(q.Key()), err, answer)
		}
	}
}

// TestSilentAndSlowReaders leaves connections open in all states and stops the broker: it ends all the same.
func TestSilentAndSlowReaders(t *testing.T) {
	s := &site{t: t, fs: vfs.NewMemory(), memory: true}
	r := s.start()
	by := newBystander(r)
	for range 50 {
		r.dial() // says nothing
		c := r.dial()
		_, _ = c.Write([]byte{0, 0, 1, 0, 0}) // half a request
		slow := r.dial()
		for range 20 {
			slow.send(&kmsg.MetadataRequest{Version: 1}) // reads no answer
		}
	}
	by.unharmed("silent connections")
	r.stop()
	if _, err := io.ReadAll(by); err != nil {
		t.Log(err) // a reset is as good as an end
	}
}
