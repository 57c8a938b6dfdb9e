package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// point is where in a partition to begin or to end: its start, its end, an offset (negative: that many
// before the end) or a time.
type point struct {
	kind   pointKind
	offset int64
	time   time.Time
}

type pointKind int8

const (
	pointStart pointKind = iota
	pointEnd
	pointOffset
	pointTime
)

// parsePoint reads start, end, an offset, or a time as parseTime does.
func parsePoint(flag, given string, now time.Time) (point, error) {
	switch given {
	case "start", "earliest", "beginning":
		return point{kind: pointStart}, nil
	case "end", "latest":
		return point{kind: pointEnd}, nil
	}
	if offset, err := strconv.ParseInt(given, 10, 64); err == nil {
		return point{kind: pointOffset, offset: offset}, nil
	}
	t, err := parseTime(given, now)
	if err != nil {
		return point{}, usageError{fmt.Errorf("%s %q is none of start, end, an offset, a time (2026-01-31T12:00:00Z, "+
			"2026-01-31, @milliseconds, -90m)", flag, given)}
	}
	return point{kind: pointTime, time: t}, nil
}

// parseTime reads a date, a date with a time (in local time where it has no zone), @milliseconds, or how
// long ago, as in -90m, 90m or 2d.
//
// Local time is what a person who looks at a clock means. A script should give a zone or @milliseconds.
func parseTime(given string, now time.Time) (time.Time, error) {
	if ms, ok := strings.CutPrefix(given, "@"); ok {
		n, err := strconv.ParseInt(ms, 10, 64)
		return time.UnixMilli(n), err
	}
	if given == "now" {
		return now, nil
	}
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999", "2006-01-02 15:04:05.999", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly,
	} {
		if t, err := time.ParseInLocation(layout, given, time.Local); err == nil {
			return t, nil
		}
	}
	ago, err := parseDuration(strings.TrimPrefix(given, "-"))
	if err != nil {
		return time.Time{}, err
	}
	return now.Add(-ago), nil
}

// parseDuration reads Go's durations, and days.
func parseDuration(given string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(given, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		return time.Duration(n * 24 * float64(time.Hour)), err
	}
	return time.ParseDuration(given)
}
