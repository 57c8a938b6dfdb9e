package logdir

import "github.com/barnabas-mq/barnabas/internal/log"

// Stopped says how the last life of this broker ended, as the directories told at Open: the least that any
// of them may be trusted. It is false where all of them are new.
func (s *Set) Stopped() (trust log.Trust, earlier bool) {
	trust = log.Clean
	for _, d := range s.dirs {
		if d.err() != nil || !d.clean && d.boot.id == "" && len(d.found) == 0 {
			continue
		}
		earlier = true
		switch {
		case d.clean:
		case d.boot.survived(s.options.BootID, d.path):
			trust = max(trust, log.SameBoot)
		default:
			trust = max(trust, log.Scan)
		}
	}
	return trust, earlier
}
