package logdir

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/internal/log"
)

// verifyDelay lets a broker serve before it reads what it has trusted.
const verifyDelay = 5 * time.Second

// distrust notes that a log was opened on the word of the boot id alone. Its recovery point stays where it
// is until it has been read: the next start must find the same to check.
func (s *Set) distrust(l *log.Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.unverified[l] = true
}

// verified reports whether nothing in a log has been taken on trust.
func (s *Set) verified(l *log.Log) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return !s.mu.unverified[l]
}

// trustAgain notes that a log has been read.
func (s *Set) trustAgain(l *log.Log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.unverified, l)
}

// verify reads the logs that were opened after the kill of a process, one after the other. One that is
// damaged goes offline, and stays so after the next start.
func (s *Set) verify(ctx context.Context) time.Duration {
	began, count := time.Now(), 0
	for _, e := range s.entries(nil) {
		if e.log == nil || s.verified(e.log) {
			continue
		}
		if ctx.Err() != nil {
			return forever
		}
		apart(func() { s.verifyOne(ctx, e) })
		if ctx.Err() == nil {
			s.trustAgain(e.log)
			count++
		}
	}
	if count > 0 {
		s.logger.Info("logs are verified that a killed process left", "logs", count, "took", time.Since(began).Round(time.Millisecond))
	}
	return forever
}

// verifyOne reads a log.
//
// The order is suspect, then poison: were the partition taken offline first, a kill between the two would let the next
// start trust it again.
func (s *Set) verifyOne(ctx context.Context, e *entry) {
	s.guard(e, "verification", func(l *log.Log) error {
		err := l.Verify(ctx)
		if _, ok := errors.AsType[*log.DamageError](err); ok {
			s.suspect(e)
			s.poison(e, err)
			return nil
		}
		return err
	})
}

// suspect remembers durably that a partition is damaged, whatever marker or boot id say.
func (s *Set) suspect(e *entry) {
	d, folder := e.dir, e.partition.String()
	remember := func(b *boot) {
		if !slices.Contains(b.suspects, folder) {
			b.suspects = append(b.suspects, folder)
		}
	}
	if err := s.report(d, s.amendBoot(d, remember)); err != nil {
		s.logger.Warn("cannot remember that a partition is damaged", "partition", e.partition, "error", err)
	}
}
