package admin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// whyOffline says why nobody leads a partition.
//
// Who may lead is in the in-sync set, or was the last to be. A member that lives and was not elected has been restarted
// in a way that may have cost it records (a power cut, an empty disk): alone it is not believed, and the controller
// waits for the others, to compare what each of them has.
//
//	in sync were    1,2         who may lead
//	down            2           start it, and it leads
//	failed          –           its log directory: start it with a disk that works
//	back, doubtful  1           leads when 2 is there to compare with
//
// Where the topic allows an unclean election the controller waits only until some time, and then makes do with who lives.
func (l *Layout) whyOffline(at TopicPartition, p Partition) string {
	if CodeName(p.Err) == "LISTENER_NOT_FOUND" {
		return "its leader has no listener of the name by which this was asked"
	}
	down, failed, doubtful := l.condition(p, p.ISR)
	why := []string{"no replica in sync can lead: in sync were " + joinIDs(p.ISR)}
	if len(p.ISR) == 0 {
		why = []string{"no replica has ever led it"}
		down = slices.DeleteFunc(slices.Clone(p.Replicas), l.Alive)
	}
	why = append(why, absent(down, failed)...)
	if len(doubtful) > 0 {
		why = append(why, fmt.Sprintf("%s back without an orderly stop and may lack acknowledged records", are(doubtful, "")))
	}
	_, _, others := l.condition(p, less(p.Replicas, p.ISR))
	if len(others) > 0 && len(p.ISR) > 0 {
		why = append(why, fmt.Sprintf("%s not in sync and may lack acknowledged records", are(others, "")))
	}
	return strings.Join(why, "; ") + ". " + remedy(append(down, failed...), append(doubtful, others...), len(doubtful) > 0, l.Elections[at])
}

// condition sorts replicas of a partition: those on brokers that are not there, those whose disk has failed, and those
// that work.
func (l *Layout) condition(p Partition, ids []int32) (down, failed, working []int32) {
	for _, id := range ids {
		switch {
		case !l.Alive(id):
			down = append(down, id)
		case slices.Contains(p.Offline, id):
			failed = append(failed, id)
		default:
			working = append(working, id)
		}
	}
	return down, failed, working
}

// absent says which replicas are not there.
func absent(down, failed []int32) (why []string) {
	if len(down) > 0 {
		why = append(why, are(down, "down"))
	}
	if len(failed) > 0 {
		why = append(why, fmt.Sprintf("the log directory of %s has failed", joinIDs(failed)))
	}
	return why
}

// remedy is what to do about a partition without a leader. living are its replicas that are there and may lack records,
// comparable is true where they can be compared once the missing ones are there, and election is when one of the living is
// elected all the same, zero where never.
func remedy(missing, living []int32, comparable bool, election time.Time) string {
	switch {
	case len(missing) == 0 && comparable:
		return "A leader will be elected from what they have"
	case len(missing) == 0:
		return "Look at the controller's log"
	}
	todo := "Start " + joinIDs(missing) + " with its disks"
	if len(missing) > 1 {
		todo = "Start " + joinIDs(missing) + " with their disks"
	}
	switch {
	case len(living) == 0:
		return todo
	case !election.IsZero():
		return todo + " before " + election.Format(time.TimeOnly) + ": then a leader is elected without them, and what only they had is given up (unclean.leader.election.enable)"
	}
	return todo + "; if those are lost for good, unclean.leader.election.enable=true on the topic gives up what only they had"
}

// whyBehind says why replicas are not in sync.
func (l *Layout) whyBehind(p Partition, missing []int32) string {
	down, failed, behind := l.condition(p, missing)
	why := absent(down, failed)
	if len(behind) > 0 {
		why = append(why, are(behind, "catching up"))
	}
	return strings.Join(why, "; ")
}

// are makes "1 is down" or "1,2 are down".
func are(ids []int32, what string) string {
	verb := "is"
	if len(ids) > 1 {
		verb = "are"
	}
	return strings.TrimSpace(joinIDs(ids) + " " + verb + " " + what)
}

func joinIDs(ids []int32) string {
	var all []string
	for _, id := range ids {
		all = append(all, strconv.Itoa(int(id)))
	}
	return strings.Join(all, ",")
}
