package cli

import (
	"testing"
	"time"
)

func TestPoints(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(year int, month time.Month, day, hour, minute int) point {
		return point{kind: pointTime, time: time.Date(year, month, day, hour, minute, 0, 0, time.Local)}
	}
	for given, want := range map[string]point{
		"start": {kind: pointStart}, "earliest": {kind: pointStart}, "end": {kind: pointEnd}, "latest": {kind: pointEnd},
		"0": {kind: pointOffset}, "42": {kind: pointOffset, offset: 42}, "-7": {kind: pointOffset, offset: -7},
		"@1700000000000":       {kind: pointTime, time: time.UnixMilli(1700000000000)},
		"now":                  {kind: pointTime, time: now},
		"-90m":                 {kind: pointTime, time: now.Add(-90 * time.Minute)},
		"90m":                  {kind: pointTime, time: now.Add(-90 * time.Minute)},
		"-2d":                  {kind: pointTime, time: now.Add(-48 * time.Hour)},
		"2026-01-31":           at(2026, 1, 31, 0, 0),
		"2026-01-31 15:04":     at(2026, 1, 31, 15, 4),
		"2026-01-31T15:04":     at(2026, 1, 31, 15, 4),
		"2026-01-31 15:04:00":  at(2026, 1, 31, 15, 4),
		"2026-01-31T15:04:00Z": {kind: pointTime, time: time.Date(2026, 1, 31, 15, 4, 0, 0, time.UTC)},
	} {
		got, err := parsePoint("--from", given, now)
		if err != nil || got.kind != want.kind || got.offset != want.offset || !got.time.Equal(want.time) {
			t.Errorf("%q is %+v, %v, expected %+v", given, got, err, want)
		}
	}
	for _, given := range []string{"", "yesterday", "@", "@x", "2026-13-01", "5x", "--1"} {
		if got, err := parsePoint("--from", given, now); err == nil || !isUsage(err) {
			t.Errorf("%q is %+v, expected a usage error", given, got)
		}
	}
}
