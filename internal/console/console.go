// Package console is the broker's HTTP endpoint:
//
//	GET /metrics       Prometheus
//	GET /livez         200 while the process answers at all: restart it where this fails
//	GET /readyz        200 when the broker serves clients, otherwise 503; JSON with the reasons, also with those
//	                   why some partitions are not served
//	GET /debug/pprof/  profiles
//	GET /              what there is
//
// It binds to the loopback address unless a host is named, since profiles are nobody else's business.
package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"slices"
	"time"
)

const (
	// headerTimeout bounds how long a request may take to arrive, idleTimeout how long a connection may wait
	// for the next. There is no bound on answers: a profile takes as long as it was asked for.
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	// loopback is where an address without a host binds.
	loopback = "127.0.0.1"
)

// Options are what an endpoint is made of.
type Options struct {
	// Address is http.listener: host:port. Port 0 takes a free one, no host means the loopback address, and
	// an empty address means no endpoint.
	Address string
	// Fallback takes a free port where the one in Address cannot be had. It is for the default address, which
	// nobody chose: a second broker on a machine must not fail because of it.
	Fallback bool
	// Listen opens an address; nil means net.Listen.
	Listen func(network, address string) (net.Listener, error)
	// Metrics answers /metrics; nil for none.
	Metrics http.Handler
	// Unready lists what keeps the broker from serving clients, wholly or in part; none means nothing does. It
	// is called for every request of /readyz and must be quick. Nil means always ready.
	Unready func() []Reason
	// Logger gets where it listens, and what goes wrong. Nil discards.
	Logger *slog.Logger
}

// Reason is why a broker is not ready, or not wholly.
type Reason struct {
	// Partly says that the rest is served: the answer then is 200 all the same, since a balancer that takes the
	// broker away would take the healthy partitions away as well.
	Partly bool `json:"partly,omitempty"`
	// Check names what was looked at, in a word that scripts can compare; Message is for people.
	Check   string `json:"check"`
	Message string `json:"message"`
}

// Console is a running endpoint, or none where the address was empty.
type Console struct {
	logger *slog.Logger
	socket net.Listener // nil for none
	server *http.Server
	ended  chan struct{}
}

// Start opens the endpoint and serves it.
func Start(o Options) (*Console, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Console{logger: o.Logger, ended: make(chan struct{})}
	if o.Address == "" {
		close(c.ended)
		return c, nil
	}
	var err error
	if c.socket, err = open(o); err != nil {
		return nil, err
	}
	c.server = &http.Server{
		Handler:           routes(o),
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
	}
	go c.serve()
	return c, nil
}

// open binds the address, or another port where that may be.
func open(o Options) (net.Listener, error) {
	host, port, err := net.SplitHostPort(o.Address)
	if err != nil {
		return nil, fmt.Errorf("http.listener %q is not host:port: %w", o.Address, err)
	}
	if host == "" {
		host = loopback
	}
	listen := o.Listen
	if listen == nil {
		listen = net.Listen
	}
	address := net.JoinHostPort(host, port)
	socket, err := listen("tcp", address)
	if err != nil && o.Fallback {
		taken := err
		if socket, err = listen("tcp", net.JoinHostPort(host, "0")); err == nil {
			o.Logger.Warn("the default address of http.listener cannot be had; using a free port",
				slog.String("default", address), slog.String("error", taken.Error()),
				slog.String("address", socket.Addr().String()))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("http.listener: %w", err)
	}
	return socket, nil
}

// serve runs until Shutdown.
func (c *Console) serve() {
	defer close(c.ended)
	if err := c.server.Serve(c.socket); !errors.Is(err, http.ErrServerClosed) {
		c.logger.Error("the HTTP endpoint has ended", slog.String("error", err.Error()))
	}
}

// Addr is the address that it listens on; nil where there is none.
func (c *Console) Addr() net.Addr {
	if c.socket == nil {
		return nil
	}
	return c.socket.Addr()
}

// Shutdown lets the requests that run end until ctx does, and closes the endpoint.
func (c *Console) Shutdown(ctx context.Context) error {
	if c.socket == nil {
		return nil
	}
	err := c.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, c.server.Close())
	}
	<-c.ended
	return err
}

// routes is the table of paths.
func routes(o Options) http.Handler {
	mux := http.NewServeMux()
	if o.Metrics != nil {
		mux.Handle("GET /metrics", o.Metrics)
	}
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, o.Logger, http.StatusOK, struct {
			Live bool `json:"live"`
		}{true})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { ready(w, o) })
	mux.HandleFunc("GET /{$}", index)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

// ready answers whether the broker serves clients.
func ready(w http.ResponseWriter, o Options) {
	answer := struct {
		Ready   bool     `json:"ready"`
		Reasons []Reason `json:"reasons"`
	}{true, []Reason{}}
	status := http.StatusOK
	if o.Unready != nil {
		answer.Reasons = append(answer.Reasons, o.Unready()...)
		if slices.ContainsFunc(answer.Reasons, func(r Reason) bool { return !r.Partly }) {
			answer.Ready, status = false, http.StatusServiceUnavailable
		}
	}
	reply(w, o.Logger, status, answer)
}

// reply writes JSON.
func reply(w http.ResponseWriter, logger *slog.Logger, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		logger.Debug("an HTTP answer did not arrive", slog.String("error", err.Error()))
	}
}

// index lists what there is, for people who try the port in a browser.
func index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprint(w, "Barnabas\n\n/metrics\n/livez\n/readyz\n/debug/pprof/\n") // the peer may be gone
}
