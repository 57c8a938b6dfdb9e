package logdir

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/config"
	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// none is the Settings of a broker that knows no partition.
func none(protocol.TopicPartition, protocol.TopicID) (config.Topic, bool) {
	return config.Topic{}, false
}

func TestTrust(t *testing.T) {
	m := vfs.NewMemory()
	w := newWorld(t, m)
	trust := func() log.Trust {
		t.Helper()
		s, err := Open(w.options)
		must(t, err)
		defer kill(s)
		return s.trust(s.dirs[0], "t-0")
	}
	s := w.start(t)
	w.make(t, s, partition("t", 0))
	kill(s)
	if got := trust(); got != log.SameBoot {
		t.Errorf("after a kill: %s", got)
	}
	w.options.BootID = ""
	if got := trust(); got != log.Scan {
		t.Errorf("without a boot id: %s", got)
	}
	w.options.BootID = "boot-2"
	if got := trust(); got != log.Scan {
		t.Errorf("after another boot: %s", got)
	}
	must(t, m.Rename("/data", "/copy"))
	w.options.Dirs, w.options.BootID = []string{"/copy"}, "boot-1"
	if got := trust(); got != log.Scan {
		t.Errorf("a copy: %s", got)
	}
	must(t, m.Rename("/copy", "/data"))
	w.options.Dirs = []string{"/data"}
	stop(t, w.start(t))
	for range 2 { // Open alone changes nothing
		if got := trust(); got != log.Clean {
			t.Errorf("after a clean stop: %s", got)
		}
	}
	s = w.start(t)
	s.suspect(s.entries(nil)[0])
	stop(t, s)
	if got := trust(); got != log.Scan {
		t.Errorf("a suspect after a clean stop: %s", got)
	}
	stop(t, w.start(t))
	if got := trust(); got != log.Clean {
		t.Errorf("a suspect that was found well: %s", got)
	}
}

// What the last life was is still known when this one has loaded its logs, and written its own boot. A loss is
// told until a controller has heard of it.
func TestStopped(t *testing.T) {
	w := newWorld(t, vfs.NewMemory())
	told := func(want log.Trust, earlier bool) *Set {
		t.Helper()
		s := w.start(t)
		if got, there := s.Stopped(); there != earlier || there && got != want {
			t.Errorf("%s, %v; want %s, %v", got, there, want, earlier)
		}
		return s
	}
	s := told(log.Clean, false)
	w.make(t, s, partition("t", 0))
	kill(s)
	s = told(log.Scan, true)
	s.Heard()
	kill(s)
	kill(told(log.SameBoot, true))
	w.options.BootID = "boot-2"
	kill(told(log.Scan, true))
	stop(t, told(log.Scan, true))
	s = told(log.Scan, true)
	s.Heard()
	kill(s)
	stop(t, told(log.SameBoot, true))
	kill(told(log.Clean, true))
	must(t, w.options.FS.RemoveAll("/data"))
	kill(told(log.Clean, false))
}

func TestFoldersThatNobodyOpenedAreNotTrusted(t *testing.T) {
	w := newWorld(t, vfs.NewMemory())
	s := w.start(t)
	must(t, appendValues(w.make(t, s, partition("t", 0)), "a"))
	kill(s)
	w.options.BootID = "boot-2" // the power was cut
	s, err := Open(w.options)
	must(t, err)
	must(t, s.Load(t.Context(), none))
	kill(s)
	s, err = Open(w.options)
	must(t, err)
	if got := s.trust(s.dirs[0], "t-0"); got != log.Scan {
		t.Errorf("in the boot after a power cut: %s, although nobody has looked", got)
	}
	kill(s)
}

func TestLoadCanBeStopped(t *testing.T) {
	m := vfs.NewMemory()
	w := newWorld(t, m)
	s := w.start(t)
	for i := range int32(50) {
		must(t, appendValues(w.make(t, s, partition("t", i)), fmt.Sprint(i)))
	}
	stop(t, s)
	s, err := Open(w.options)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Load(ctx, w.all); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	stop(t, s)
	if clean, _, _ := readMarker(m, "/data"); !clean {
		t.Error("nothing was written, and yet the marker is gone")
	}
	s = w.start(t)
	if len(s.All()) != 50 {
		t.Errorf("%d logs", len(s.All()))
	}
	wantValues(t, s.Get(partition("t", 49)), "49")
	if s.Load(t.Context(), w.all) == nil {
		t.Error("loaded twice")
	}
	stop(t, s)
	stop(t, s)
	if _, err := s.Create(partition("late", 0), protocol.TopicID{}, w.topic); err == nil {
		t.Error("a closed set took a partition")
	}
	s.Run(t.Context()) // and ends at once
}

// BenchmarkLoad opens partitions that were closed cleanly.
func BenchmarkLoad(b *testing.B) {
	for _, count := range []int{1000, 10000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			w := newWorld(b, vfs.OS(), b.TempDir())
			s, err := Open(w.options)
			must(b, err)
			must(b, s.Load(context.Background(), w.all))
			specs := make([]Spec, count)
			for i := range specs {
				specs[i] = Spec{Partition: partition("many", int32(i)), TopicID: protocol.NewTopicID(), Config: w.topic, New: true}
			}
			logs, errs := s.CreateAll(specs)
			must(b, errors.Join(errs...))
			for _, l := range logs {
				must(b, appendValues(l, "a value"))
			}
			must(b, s.Close(context.Background()))
			for b.Loop() {
				s, err := Open(w.options)
				must(b, err)
				must(b, s.Load(context.Background(), w.all))
				b.StopTimer()
				must(b, s.Close(context.Background()))
				b.StartTimer()
			}
		})
	}
}
