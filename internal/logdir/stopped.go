package logdir

import "github.com/barnabas-mq/barnabas/internal/log"

// ended says how the last life of this broker ended.
type ended struct {
	trust   log.Trust
	earlier bool
}

// Stopped says how the last life of this broker ended, as the directories told at Open: the least that any
// of them may be trusted. It is false where all of them were new. What this life writes into them changes
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
		case d.clean:
		case d.boot.survived(s.options.BootID, d.path):
			e.trust = max(e.trust, log.SameBoot)
		default:
			e.trust = max(e.trust, log.Scan)
		}
	}
	return e
}
