package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// usage is what a broker's process holds.
type usage struct{ files, goroutines, megabytes int }

// String is the usage as reports have it.
func (u usage) String() string {
	return fmt.Sprintf("%d files, %d goroutines, %d MB", u.files, u.goroutines, u.megabytes)
}

// How much more than under load before the first fault a process may hold when the load has ended. Connections end at
// once. Files of logs that were written or read stay open for up to two minutes, which is many where much was.
const (
	moreFiles      = 64
	moreGoroutines = 16
	moreMegabytes  = 128
	rest           = 3 * time.Minute
)

// usage asks a broker. Its goroutines and its memory are known only where it has an address for that.
func (b *broker) usage(ctx context.Context) (u usage, err error) {
	if u.files, err = openFiles(b.Process().Pid); err != nil || b.metrics == "" {
		return u, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.metrics+"/metrics", nil)
	if err != nil {
		return u, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return u, err
	}
	defer response.Body.Close()
	told, err := values(response.Body, "go_goroutines", "process_resident_memory_bytes")
	if err != nil {
		return u, fmt.Errorf("broker %d: %w", b.id, err)
	}
	u.goroutines, u.megabytes = int(told[0]), int(told[1]/1e6)
	return u, nil
}

// values reads metrics without labels out of a page of them.
func values(page io.Reader, names ...string) ([]float64, error) {
	all := make([]float64, len(names))
	missing := slices.Clone(names)
	lines := bufio.NewScanner(page)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		i := slices.Index(names, name)
		if i < 0 {
			continue
		}
		var err error
		if all[i], err = strconv.ParseFloat(text, 64); err != nil {
			return nil, err
		}
		missing = slices.DeleteFunc(missing, func(m string) bool { return m == name })
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the page of metrics lacks %s", strings.Join(missing, ", "))
	}
	return all, nil
}

// leaks waits until every broker holds about what it held before.
func (t *trial) leaks(ctx context.Context) (string, error) {
	var texts []string
	err := t.load.within(ctx, rest, "descriptors, goroutines and memory to be given back", func(ctx context.Context) error {
		texts = nil
		for _, b := range t.brokers {
			before := t.usages[b.id]
			now, err := b.usage(ctx)
			if err != nil {
				return err
			}
			if now.files > before.files+moreFiles || now.goroutines > before.goroutines+moreGoroutines || now.megabytes > before.megabytes+moreMegabytes {
				return fmt.Errorf("broker %d has %v, and had %v under load", b.id, now, before)
			}
			texts = append(texts, fmt.Sprintf("%v (%v)", now, before))
		}
		return nil
	})
	return "what brokers hold, in parentheses under load at the beginning: " + strings.Join(texts, ", "), err
}
