package metrics

import (
	"sync"
)

// series bounds the things of one kind. A thing that was let in stays in until it is gone, so that a scrape
// shows the same ones as the last, whatever their order in the source.
//
// A bound of N lets in the first N that are seen, and these stay. What is left out is counted by thing and
// scrape in barnabas_metrics_dropped_series_total{kind}: any rise means that boards do not show everything.
type series struct {
	limit   int
	dropped func()

	mu struct {
		sync.Mutex
		scrape int64
		seen   map[string]int64 // what is in, with the scrape that saw it last
	}
}

// newSeries is for things of a kind.
func (r *Registry) newSeries(kind string) *series {
	s := &series{limit: r.options.SeriesLimit, dropped: r.dropped.WithLabelValues(kind).Inc}
	s.mu.seen = make(map[string]int64)
	return s
}

// begin starts a scrape; what two scrapes have not seen makes room.
func (s *series) begin() (scrape int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.scrape++
	for key, last := range s.mu.seen {
		if last < s.mu.scrape-scrapesAtOnce {
			delete(s.mu.seen, key)
		}
	}
	return s.mu.scrape
}

// admit reports whether a thing is shown.
func (s *series) admit(scrape int64, key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, in := s.mu.seen[key]; !in && len(s.mu.seen) >= s.limit {
		s.dropped()
		return false
	}
	s.mu.seen[key] = scrape
	return true
}
