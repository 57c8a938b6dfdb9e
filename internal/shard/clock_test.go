package shard_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/barnabas-mq/barnabas/internal/shard"
)

func TestStepsOfTheWallClock(t *testing.T) {
	const day = 24 * time.Hour
	for _, step := range []time.Duration{day, -day, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var off time.Duration
			c := shard.NewClock(func() time.Time { return time.Now().Add(off) })
			at := func() (now shard.Now, true_ int64) { return c.Now(), time.Now().UnixMilli() }
			time.Sleep(time.Hour)
			if now, is := at(); now.Wall != is || now.Earliest != is || now.Latest != is {
				t.Errorf("without a step: %+v at %d", now, is)
			}
			off = step
			for range 14 {
				now, is := at()
				stepped := is + step.Milliseconds()
				if now.Wall != stepped || now.Earliest != min(is, stepped) || now.Latest != max(is, stepped) {
					t.Fatalf("after a step by %s: %+v, without it it would be %d", step, now, is)
				}
				time.Sleep(time.Minute)
			}
			time.Sleep(2 * time.Minute)
			if now, is := at(); now.Earliest != is+step.Milliseconds() || now.Earliest != now.Latest {
				t.Errorf("a step that has stayed is still doubted: %+v", now)
			}
		})
	}
}

func TestStepAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var off time.Duration
		c := shard.NewClock(func() time.Time { return time.Now().Add(off) })
		off = time.Hour
		c.Now()
		time.Sleep(14 * time.Minute)
		off = 2 * time.Hour // a step on top: the doubt begins anew
		c.Now()
		time.Sleep(14 * time.Minute)
		if now := c.Now(); now.Earliest != time.Now().UnixMilli() {
			t.Errorf("earliest %d, want %d", now.Earliest, time.Now().UnixMilli())
		}
		off = 0
		if now := c.Now(); now.Earliest != now.Latest || now.Wall != time.Now().UnixMilli() {
			t.Errorf("back again: %+v", now)
		}
	})
}

func TestSlewIsNoStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var off time.Duration
		c := shard.NewClock(func() time.Time { return time.Now().Add(off) })
		for range 1000 {
			time.Sleep(time.Minute)
			off += 100 * time.Millisecond
			if now := c.Now(); now.Earliest != now.Latest {
				t.Fatalf("a drift by %s in all counts as a step", off)
			}
		}
	})
}
