package logdir

import "github.com/barnabas-mq/barnabas/internal/log"

// ended says how the last life of this broker ended.
type ended struct {
	trust   log.Trust
	earlier bool
}

// Stopped says how the last life of this broker ended, as the directories told at Open: the least that any
// of them may be trusted. It is false where all of them were new. A loss
// that no controller has heard of counts on, however later lives ended. What this life writes into them changes
// nothing about it.
func (s *Set) Stopped() (trust log.Trust, earlier bool) { return s.ended.trust, s.ended.earlier }

// howEnded reads it off the directories as they were found.
func (s *Set) howEnded() ended {
	e := ended{trust: log.Clean}
	for _, d := range s.dirs {
		if d.err() != nil || !d.clean && d.boot.id == "" && len(d.found) == 0 {
			continue
		}
		e.earlier = true
		switch {
		case d.boot.unheard:
			e.trust = log.Scan
		case d.clean:
		case d.boot.survived(s.options.BootID, d.path):
			e.trust = max(e.trust, log.SameBoot)
		default:
			e.trust = max(e.trust, log.Scan)
		}
	}
	return e
}

// lossy reports whether records may be missing that were there once: after a power cut, and in directories that
// are new, as a replaced disk is.
func (e ended) lossy() bool { return !e.earlier || e.trust == log.Scan }

// Heard is called when a controller has written down what [Set.Stopped] says, so that the next life does not have
// to say it again. The directories remember until then.
func (s *Set) Heard() {
	if !s.ended.lossy() {
		return
	}
	for _, d := range s.dirs {
		if d.err() != nil || !d.loaded.Load() {
			continue
		}
		if err := s.report(d, s.amendBoot(d, func(b *boot) { b.unheard = false })); err != nil {
			s.logger.Warn("the next start will say again that records may have been lost", "dir", d.path, "error", err)
		}
	}
}
