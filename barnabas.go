// Package barnabas embeds a broker: several of them may live in one process.
//
//	b, err := barnabas.Start(ctx, barnabas.Options{})
//	...
//	client, err := kgo.NewClient(kgo.SeedBrokers(b.Address()))
//
// A broker that is embedded is the same as one that the program runs, except that it installs no signal
// handler and changes nothing of the process.
package barnabas

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/internal/broker"
	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// Options say what broker to start. The zero value is a broker in memory on a free port of 127.0.0.1.
type Options struct {
	// DataDir is where the data is kept; empty means in memory, gone when the broker stops.
	DataDir string
	// Address is the host and port to listen on; empty means a free port of 127.0.0.1.
	Address string
	// Properties are broker properties by Kafka's names; they beat the fields above.
	Properties map[string]string
	// Logger gets what an operator should know; nil discards it.
	Logger *slog.Logger
}

// Broker is a running broker.
type Broker struct{ broker *broker.Broker }

// Start runs a broker until Stop; it returns when clients can use it.
func Start(ctx context.Context, o Options) (*Broker, error) {
	overrides, files := o.overrides()
	loaded, _, err := config.Load(config.LoadOptions{Overrides: overrides})
	if err != nil {
		return nil, err
	}
	b, err := broker.Start(ctx, broker.Options{Config: loaded, FS: files, Memory: o.DataDir == "", Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	return &Broker{b}, nil
}

// overrides are the options as properties, and the files that they mean; nil for those of the system.
func (o Options) overrides() ([]string, vfs.FS) {
	address := o.Address
	if address == "" {
		address = "127.0.0.1:0"
	}
	overrides := []string{"listeners=PLAINTEXT://" + address, "http.listener="}
	var files vfs.FS
	if o.DataDir == "" {
		files = vfs.NewVolatile()
		overrides = append(overrides, "log.dirs=/data")
	} else {
		overrides = append(overrides, "log.dirs="+o.DataDir)
	}
	for _, key := range slices.Sorted(maps.Keys(o.Properties)) {
		overrides = append(overrides, key+"="+o.Properties[key])
	}
	return overrides, files
}

// Address is the host and port of the first listener.
func (b *Broker) Address() string { return b.broker.Addresses()[0] }

// Stop ends the broker in order: it answers what is in flight, and syncs and closes its logs. Where ctx
// ends first, the broker stops as after a crash.
func (b *Broker) Stop(ctx context.Context) error { return b.broker.Stop(ctx) }

// Done is closed when the broker has stopped, by itself or by Stop.
func (b *Broker) Done() <-chan struct{} { return b.broker.Done() }

// Err is why the broker stopped by itself; nil before that and after Stop.
func (b *Broker) Err() error { return b.broker.Err() }
