package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// usage is what a broker's process holds.
type usage struct{ files, goroutines int }

// How much more than under load before the first fault a process may hold when the load has ended. Connections end at
// once. Files of logs that were written or read stay open for up to two minutes, which is many where much was.
const (
	moreFiles      = 64
	moreGoroutines = 16
	rest           = 3 * time.Minute
)

// usage asks a broker. Its goroutines are known only where it has an address of its own for that.
func (b *broker) usage(ctx context.Context) (u usage, err error) {
	if u.files, err = openFiles(b.Process().Pid); err != nil || b.host.ip == "" {
		return u, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.host.ip+metricsPort+"/metrics", nil)
	if err != nil {
		return u, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return u, err
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), "go_goroutines "); found {
			u.goroutines, err = strconv.Atoi(value)
			return u, err
		}
	}
	return u, fmt.Errorf("broker %d does not say how many goroutines it has", b.id)
}

// metricsPort is that of a broker with an address of its own.
const metricsPort = ":9644"

// leaks waits until every broker holds about what it held before.
func (t *trial) leaks(ctx context.Context) (string, error) {
	var texts []string
	err := t.load.within(ctx, rest, "descriptors and goroutines to be given back", func(ctx context.Context) error {
		texts = nil
		for _, b := range t.brokers {
			before := t.usages[b.id]
			now, err := b.usage(ctx)
			if err != nil {
				return err
			}
			if now.files > before.files+moreFiles || now.goroutines > before.goroutines+moreGoroutines {
				return fmt.Errorf("broker %d has %d files and %d goroutines, and had %d and %d under load", b.id, now.files, now.goroutines, before.files, before.goroutines)
			}
			texts = append(texts, fmt.Sprintf("%d and %d (%d and %d)", now.files, now.goroutines, before.files, before.goroutines))
		}
		return nil
	})
	return "files and goroutines of the brokers, in parentheses under load at the beginning: " + strings.Join(texts, ", "), err
}
