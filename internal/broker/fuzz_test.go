package broker_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// FuzzRequest sends any body in any version of any key to a whole broker. It answers or closes the
// connection; that an error is logged, as a panic is, fails.
func FuzzRequest(f *testing.F) {
	s := &site{t: f, fs: vfs.NewVolatile(), memory: true, network: new(pipes)}
	r := s.start()
	by := r.dial()
	by.create("x", 2)
	by.warm("x")
	for _, key := range by.advertised() {
		for _, version := range []int16{firstServed(key), key.MaxVersion} {
			q := kmsg.RequestForKey(key.ApiKey)
			q.SetVersion(version)
			fill1(q)
			f.Add(key.ApiKey, version, q.AppendTo(nil))
		}
	}
	f.Fuzz(func(t *testing.T, key, version int16, body []byte) {
		q := kmsg.RequestForKey(key)
		flexible := false
		if q != nil {
			q.SetVersion(version)
			flexible = q.IsFlexible()
		}
		network, err := s.network.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer network.Close()
		_, _ = network.Write(frame(key, version, 7, flexible, body))
		_ = network.SetReadDeadline(time.Now().Add(20 * time.Millisecond)) // some wait for long
		_, _ = network.Read(make([]byte, 100))
		r.log.check(t, nil)
	})
}
