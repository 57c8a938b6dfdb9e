package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func place(t *testing.T) *Place {
	t.Helper()
	p, err := NewPlace(t.TempDir(), 20_000)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestLivesOfABroker(t *testing.T) {
	p := place(t)
	s, err := p.Barnabas("ours", "num.partitions=3")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Address), kgo.AllowAutoTopicCreation(), kgo.DefaultProduceTopic("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for life, end := range []func() error{func() error { s.Kill(); return nil }, s.Stop, s.Stop} {
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := client.ProduceSync(t.Context(), &kgo.Record{Value: make([]byte, 1<<10)}).FirstErr(); err != nil {
			t.Fatalf("life %d: %v", life, err)
		}
		if err := s.ResetPeak(); err != nil {
			t.Fatal(err)
		}
		u, err := s.Usage()
		if err != nil || u.RSS < 1<<20 || u.Peak < u.RSS || u.CPU < 0 {
			t.Errorf("%+v, %v", u, err)
		}
		if err := s.Start(t.Context()); err == nil {
			t.Error("it was started twice")
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if s.Running() {
			t.Error("it runs")
		}
		if _, err := s.Usage(); err == nil {
			t.Error("what does not run has a usage")
		}
	}
	s.Kill() // does nothing, as Stop
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if err := p.RemoveEnded(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.Dir); err == nil {
		t.Error("its files are left")
	}
	if _, err := p.Barnabas("ours"); err != nil {
		t.Errorf("its name is not free: %v", err)
	}
}

func TestAStartThatFailsSaysWhy(t *testing.T) {
	p := place(t)
	s, err := p.Barnabas("ours", "log.retention.bytes=many")
	if err != nil {
		t.Fatal(err)
	}
	err = s.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "log.retention.bytes") {
		t.Errorf("%v", err)
	}
}

func TestServersHaveTheDefaultsOfTheirRuntimes(t *testing.T) {
	t.Setenv("GOGC", "400")
	t.Setenv("PORTRAIT", "kept")
	if env := environment(); slices.Contains(env, "GOGC=400") || !slices.Contains(env, "PORTRAIT=kept") {
		t.Errorf("%q", env)
	}
}

func TestUsageCounts(t *testing.T) {
	before, err := usage(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	fill, after := make([]byte, 64<<20), before
	for after.CPU <= before.CPU { // it comes in steps of 10 ms, of which a busy machine may give this process few
		for i := range fill {
			fill[i]++
		}
		if after, err = usage(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	if after.Peak < int64(len(fill)) {
		t.Errorf("%+v, then %+v", before, after)
	}
	if _, err := usage(0); err == nil {
		t.Error("process 0 has a usage")
	}
}

func TestPoll(t *testing.T) {
	tries := 0
	err := Poll(t.Context(), time.Microsecond, func() error {
		if tries++; tries < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("%d tries, %v", tries, err)
	}
	hopeless := errors.New("hopeless")
	if err := Poll(t.Context(), time.Hour, func() error { return fmt.Errorf("it is %w", final{hopeless}) }); err == nil {
		t.Error("no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Poll(ctx, time.Hour, func() error { return hopeless }); !errors.Is(err, hopeless) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	looks, cut := 0, errors.New("cut off")
	err = Poll(ctx, time.Microsecond, func() error {
		if looks++; looks == 1 {
			return hopeless
		}
		cancel()
		return cut
	})
	if !errors.Is(err, hopeless) || errors.Is(err, cut) {
		t.Errorf("%v", err)
	}
}
