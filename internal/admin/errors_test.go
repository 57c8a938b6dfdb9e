package admin

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

func TestErrorWords(t *testing.T) {
	detailed := codeError(kerr.InvalidConfig.Code, new("retention.ms is odd"))
	if CodeName(detailed) != "INVALID_CONFIG" || Message(detailed) != "retention.ms is odd" || !errors.Is(detailed, kerr.InvalidConfig) {
		t.Errorf("%v", detailed)
	}
	plain := codeError(kerr.NonEmptyGroup.Code, nil)
	if CodeName(plain) != "NON_EMPTY_GROUP" || !strings.Contains(Message(plain), "group is not empty") {
		t.Errorf("%v: %s", plain, Message(plain))
	}
	if codeError(0, new("fine")) != nil {
		t.Error("code 0 is an error")
	}
	if other := errors.New("other"); CodeName(other) != "" || Message(other) != "other" {
		t.Error(Message(other))
	}
}

// TestUnreachable asks ports on which nobody listens, nobody answers, and somebody else does.
func TestUnreachable(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	stranger, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	go func() {
		for {
			conn, err := stranger.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	var asking sync.WaitGroup
	for address, want := range map[string]string{
		"127.0.0.1:1":              "cannot reach 127.0.0.1:1: connection refused; is a broker running? (barnabas start)",
		silent.Addr().String():     "no answer within 300ms",
		stranger.Addr().String():   "the connection was closed before an answer came",
		"nowhere.invalid.:9092":    "cannot reach nowhere.invalid.:9092: ",
		"127.0.0.1:1,127.0.0.1:2,": "",
	} {
		asking.Go(func() {
			timeout := DefaultTimeout // what is refused is tried again for some seconds, and must not be cut off
			if address == silent.Addr().String() {
				timeout = 300 * time.Millisecond
			}
			c, err := New(Options{Bootstrap: strings.Split(address, ","), Timeout: timeout})
			if err != nil {
				return
			}
			defer c.Close()
			_, err = c.Cluster(context.Background())
			var unreachable *UnreachableError
			if !errors.As(err, &unreachable) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s gives %v, expected %s", address, err, want)
			}
		})
	}
	asking.Wait()
}
