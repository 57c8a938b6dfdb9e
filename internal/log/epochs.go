package log

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// leader-epoch-checkpoint is a text file, which Kafka reads too. This one says that the records from offset 0 on
// are of epoch 0, those from 4711 on of epoch 3, and that epochs 1 and 2 wrote nothing:
//
//	0                 version
//	2                 how many lines follow
//	0 0               epoch, first offset
//	3 4711
//
//	offsets   0 ............ 4710 | 4711 ........ end
//	epoch     0                   | 3
//	endOffset(0) = endOffset(1) = endOffset(2) = (0, 4711)     endOffset(3) = (3, end)     endOffset(4) = (-1, -1)
//
// epochEntry is one line: at which offset the records of a leader epoch begin.
type epochEntry struct {
	epoch protocol.LeaderEpoch
	start protocol.Offset
}

// epochs is what a log knows about its leaders: epochs and starts rise strictly. A list is never changed;
// each change makes a new one, so that readers need no lock.
type epochs []epochEntry

// latest is the newest epoch, or NoLeaderEpoch.
func (list epochs) latest() protocol.LeaderEpoch {
	if len(list) == 0 {
		return protocol.NoLeaderEpoch
	}
	return list[len(list)-1].epoch
}

// at is the epoch that offset was or will be written in, or NoLeaderEpoch.
func (list epochs) at(offset protocol.Offset) protocol.LeaderEpoch {
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].start <= offset {
			return list[i].epoch
		}
	}
	return protocol.NoLeaderEpoch
}

// covering is at for a batch that begins at base: one that straddles the log start offset counts to the first
// epoch, which begins there.
func (list epochs) covering(base protocol.Offset) protocol.LeaderEpoch {
	if len(list) > 0 {
		base = max(base, list[0].start)
	}
	return list.at(base)
}

// assign notes that epoch begins at start. What contradicts it, epochs not below or starts not below, gives
// way: the newest word counts, as it comes from the newest leader. changed is false where it was known.
//
// It is linear only in what gives way, which is nothing as a rule. The kept part is shared with the old list up to
// its capacity, which is cut to its length: an append must not write where a reader of the old list looks.
func (list epochs) assign(epoch protocol.LeaderEpoch, start protocol.Offset) (_ epochs, changed bool) {
	if n := len(list); n > 0 && list[n-1].epoch == epoch && list[n-1].start <= start {
		return list, false
	}
	keep := len(list)
	for keep > 0 && (list[keep-1].epoch > epoch || list[keep-1].start >= start) {
		keep--
	}
	if keep > 0 && list[keep-1].epoch == epoch {
		return list[:keep:keep], true // it goes on behind what was noted of later ones
	}
	return append(list[:keep:keep], epochEntry{epoch, start}), true
}

// truncateEnd forgets the epochs that begin at end or behind it (BR-123: whether or not records went).
//
//	before       (0, 0) (3, 4711) (5, 9000)
//	end 9000     (0, 0) (3, 4711)                epoch 5 has no record left
func (list epochs) truncateEnd(end protocol.Offset) (_ epochs, changed bool) {
	keep := len(list)
	for keep > 0 && list[keep-1].start >= end {
		keep--
	}
	return list[:keep:keep], keep < len(list)
}

// behind is what is left where a message of formats 0 and 1 stands at offset: nothing is said of it or before it.
func (list epochs) behind(offset protocol.Offset) epochs {
	first := 0
	for first < len(list) && list[first].start <= offset {
		first++
	}
	return list[first:]
}

// truncateStart forgets the epochs that ended at or before start; the one that holds it then begins there.
//
//	before       (0, 0) (3, 4711) (5, 9000)
//	start 6000          (3, 6000) (5, 9000)      an entry below the log start would name offsets that are gone
//	start 9000                    (5, 9000)
func (list epochs) truncateStart(start protocol.Offset) (_ epochs, changed bool) {
	first := 0
	for first+1 < len(list) && list[first+1].start <= start {
		first++
	}
	if len(list) == 0 || first == 0 && list[0].start >= start {
		return list, false
	}
	out := append(epochs(nil), list[first:]...)
	if out[0].start < start {
		out[0].start = start
	}
	return out, true
}

// endOffset answers OffsetForLeaderEpoch as Kafka does: the largest known epoch that is not above the one
// asked for, and where the next one begins; end is the log end offset. An epoch below the first known one is
// answered with itself and the first start; one above the last, or none, with nothing (BR-102, BR-182).
func (list epochs) endOffset(epoch protocol.LeaderEpoch, end protocol.Offset) (protocol.LeaderEpoch, protocol.Offset) {
	if epoch < 0 || epoch > list.latest() {
		return protocol.NoLeaderEpoch, protocol.NoOffset
	}
	if epoch == list.latest() {
		return epoch, end
	}
	higher := 0
	for list[higher].epoch <= epoch {
		higher++
	}
	if higher == 0 {
		return epoch, list[0].start
	}
	return list[higher-1].epoch, list[higher].start
}

// format is the text of leader-epoch-checkpoint.
func (list epochs) format() []byte {
	b := fmt.Appendf(nil, "0\n%d\n", len(list))
	for _, e := range list {
		b = fmt.Appendf(b, "%d %d\n", e.epoch, e.start)
	}
	return b
}

// parseEpochs reads the text of leader-epoch-checkpoint. A file that is not whole is an error: the caller
// then rebuilds the list from the batches. Entries that contradict later ones are dropped, as Kafka does.
func parseEpochs(text []byte) (epochs, error) {
	whole, ended := strings.CutSuffix(string(text), "\n")
	lines := strings.Split(whole, "\n")
	if !ended {
		return nil, fmt.Errorf("%s: cut short", epochsName)
	}
	if len(lines) < 2 || lines[0] != "0" {
		return nil, fmt.Errorf("%s: version %q is not 0", epochsName, lines[0])
	}
	n, err := strconv.Atoi(lines[1])
	if err != nil || n != len(lines)-2 {
		return nil, fmt.Errorf("%s: %q entries announced, %d there", epochsName, lines[1], len(lines)-2)
	}
	var list epochs
	for _, line := range lines[2:] {
		first, second, _ := strings.Cut(line, " ")
		epoch, err1 := strconv.ParseInt(first, 10, 32)
		start, err2 := strconv.ParseInt(second, 10, 64)
		if err1 != nil || err2 != nil || epoch < 0 || start < 0 {
			return nil, fmt.Errorf("%s: bad entry %q", epochsName, line)
		}
		list, _ = list.assign(protocol.LeaderEpoch(epoch), protocol.Offset(start))
	}
	return list, nil
}
