package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHealth asks an endpoint that is ready, one that is not, and none.
func TestHealth(t *testing.T) {
	ready := true
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || !ready {
			http.Error(w, `{"ready":false,"reasons":["starting"]}`, http.StatusServiceUnavailable)
		}
	}))
	defer endpoint.Close()
	address := strings.TrimPrefix(endpoint.URL, "http://")
	var out, errs bytes.Buffer
	run := func(args ...string) int {
		out.Reset()
		errs.Reset()
		return Main(append([]string{"barnabas", "health"}, args...), nil, &out, &errs)
	}
	if code := run("--override", "http.listener="+address); code != exitOK || !strings.Contains(out.String(), address) {
		t.Errorf("ready: exit %d, %s%s", code, out.String(), errs.String())
	}
	ready = false
	if code := run("--override", "http.listener="+address); code != exitFailed || !strings.Contains(errs.String(), "starting") {
		t.Errorf("not ready: exit %d, %s", code, errs.String())
	}
	endpoint.Close()
	if code := run("--override", "http.listener="+address); code != exitFailed || !strings.Contains(errs.String(), "refused") {
		t.Errorf("nobody there: exit %d, %s", code, errs.String())
	}
	for _, nowhere := range []string{"", "127.0.0.1:0", "no-port"} {
		if code := run("--override", "http.listener="+nowhere); code != exitFailed || !strings.Contains(errs.String(), "http.listener") {
			t.Errorf("%q: exit %d, %s", nowhere, code, errs.String())
		}
	}
}

func TestLoopback(t *testing.T) {
	for listener, want := range map[string]string{
		"127.0.0.1:9644": "127.0.0.1:9644", "0.0.0.0:1": "localhost:1", "[::]:2": "localhost:2", ":3": "localhost:3",
		"host:4": "host:4", "[::1]:5": "[::1]:5",
	} {
		if got, err := loopback(listener); got != want || err != nil {
			t.Errorf("%s is reached at %s, %v, want %s", listener, got, err, want)
		}
	}
}
