package console

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/internal/leaktest"
)

// start runs an endpoint for the test.
func start(t *testing.T, o Options) *Console {
	t.Helper()
	before := goleak.IgnoreCurrent()
	c, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		leaktest.Verify(t, before)
	})
	return c
}

// get asks for a path.
func get(t *testing.T, c *Console, method, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+c.Addr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestPaths(t *testing.T) {
	var reasons []Reason
	c := start(t, Options{
		Address: "127.0.0.1:0",
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") }),
		Unready: func() []Reason { return reasons },
	})
	for _, test := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/metrics", 200, "up 1\n"},
		{"HEAD", "/metrics", 200, ""},
		{"GET", "/livez", 200, `{"live":true}`},
		{"GET", "/readyz", 200, `{"ready":true,"reasons":[]}`},
		{"GET", "/", 200, "/readyz"},
		{"GET", "/debug/pprof/", 200, "goroutine"},
		{"GET", "/debug/pprof/goroutine?debug=1", 200, "goroutine profile"},
		{"GET", "/debug/pprof/cmdline", 200, "console.test"},
		{"POST", "/debug/pprof/symbol", 200, "num_symbols"},
		{"GET", "/nothing", 404, ""},
		{"POST", "/metrics", 405, ""},
		{"DELETE", "/readyz", 405, ""},
	} {
		if status, body := get(t, c, test.method, test.path); status != test.status || !strings.Contains(body, test.body) {
			t.Errorf("%s %s: %d %.200s", test.method, test.path, status, body)
		}
	}
	reasons = []Reason{{Check: "metadata", Message: "no image of the cluster yet"}}
	status, body := get(t, c, "GET", "/readyz")
	want := `{"ready":false,"reasons":[{"check":"metadata","message":"no image of the cluster yet"}]}`
	if status != 503 || strings.TrimSpace(body) != want {
		t.Errorf("%d %s", status, body)
	}
	reasons = []Reason{{Partly: true, Check: "directory", Message: "/b is offline"}}
	status, body = get(t, c, "GET", "/readyz")
	want = `{"ready":true,"reasons":[{"partly":true,"check":"directory","message":"/b is offline"}]}`
	if status != 200 || strings.TrimSpace(body) != want {
		t.Errorf("%d %s", status, body)
	}
}

// TestBare has neither metrics nor a check.
func TestBare(t *testing.T) {
	c := start(t, Options{Address: "127.0.0.1:0"})
	if status, _ := get(t, c, "GET", "/metrics"); status != 404 {
		t.Errorf("/metrics: %d", status)
	}
	if status, _ := get(t, c, "GET", "/readyz"); status != 200 {
		t.Errorf("/readyz: %d", status)
	}
}

// TestAddress goes through the rule for http.listener.
func TestAddress(t *testing.T) {
	if c := start(t, Options{}); c.Addr() != nil {
		t.Errorf("off, but at %s", c.Addr())
	}
	free := start(t, Options{Address: ":0"})
	if host, _, _ := net.SplitHostPort(free.Addr().String()); host != loopback {
		t.Errorf("without a host it is at %s", free.Addr())
	}
	var log bytes.Buffer
	taken := Options{Address: free.Addr().String(), Logger: slog.New(slog.NewTextHandler(&log, nil))}
	if _, err := Start(taken); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "http.listener") {
		t.Errorf("a chosen port that is taken: %v", err)
	}
	taken.Fallback = true
	other := start(t, taken)
	if !strings.Contains(log.String(), "default="+free.Addr().String()) || !strings.Contains(log.String(), other.Addr().String()) {
		t.Errorf("logged %s", &log)
	}
	if status, _ := get(t, other, "GET", "/livez"); status != 200 {
		t.Errorf("/livez: %d", status)
	}
	for _, address := range []string{"9644", "host:port:9", "127.0.0.1:999999"} {
		if c, err := Start(Options{Address: address}); err == nil {
			t.Errorf("%s: listens at %s", address, c.Addr())
			_ = c.Shutdown(t.Context())
		}
	}
}

// TestShutdown cuts off what runs longer than the context.
func TestShutdown(t *testing.T) {
	running, before := make(chan struct{}), goleak.IgnoreCurrent()
	c, err := Start(Options{Address: "127.0.0.1:0", Metrics: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(running)
		<-r.Context().Done()
	})})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		response, err := http.Get("http://" + c.Addr().String() + "/metrics")
		if err == nil {
			_ = response.Body.Close()
		}
		ended <- err
	}()
	<-running
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if <-ended == nil {
		t.Error("an answer after the end")
	}
	http.DefaultClient.CloseIdleConnections()
	leaktest.Verify(t, before)
}
