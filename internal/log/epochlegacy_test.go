package log

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// A start after a kill knows of epochs what the log knew: none of those before a message of format 1, and those behind it,
// whether or not leader-epoch-checkpoint was written, or is lost.
func TestEpochsAroundOldMessagesAreFoundAgain(t *testing.T) {
	g := loadGolden(t, "2.8.2-zk-message-v0-v1-clean")
	old := open(t, g.options(t, protocol.TopicPartition{Topic: "v1-none"}, Clean))
	var first record.Entry
	for first = range record.Entries(readBytes(t, old, 0, everything)) {
		break
	}
	for name, story := range map[string][]protocol.LeaderEpoch{
		"it went back":           {3, -1},
		"back and forth":         {3, -1, 5},
		"it went on":             {-1, 5, 7},
		"it went on in segments": {-1, 5, -2, 5},
	} {
		for _, trust := range []Trust{SameBoot, Scan} {
			for _, file := range []string{"as it is", "of the beginning", "lost"} {
				t.Run(name+"/"+trust.String()+"/"+file, func(t *testing.T) {
					o := testOptions(vfs.NewMemory())
					l := open(t, o)
					early := ""
					for _, epoch := range story {
						switch epoch {
						case -1:
							message := bytes.Clone(first.Bytes)
							record.Batch(message).SetBaseOffset(l.EndOffset()) // not covered by the CRC
							if _, err := l.AppendFollower(message); err != nil {
								t.Fatal(err)
							}
						case -2:
							if err := l.Roll(); err != nil {
								t.Fatal(err)
							}
						default:
							mustAppend(t, l, sized(200), epoch)
						}
						if early == "" {
							l.appending.lock()
							if err := l.settleEpochs(); err != nil {
								t.Fatal(err)
							}
							l.unlock()
							early = epochsFile(t, l)
						}
					}
					want := *l.epochs.Load()
					l.CloseUnclean()
					path := filepath.Join(l.Dir(), epochsName)
					switch file {
					case "of the beginning":
						if name != "it went on in segments" { // a new segment has the file written
							writeFile(t, o.FS, path, []byte(early))
						}
					case "lost":
						_ = o.FS.Remove(path)
					}
					o.Trust = trust
					l = open(t, o)
					if got := *l.epochs.Load(); string(got.format()) != string(want.format()) {
						t.Errorf("the epochs were %v and are %v", want, got)
					}
				})
			}
		}
	}
}
