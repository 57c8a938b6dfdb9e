package kafka

import (
	"strconv"
	"strings"
	"time"
)

// parseDateTime reads 2026-01-31T12:00:00.000, in UTC unless it has a zone.
func parseDateTime(given string) (time.Time, error) {
	if !strings.Contains(given, "T") {
		return time.Time{}, sentence("java.text.ParseException: Error parsing timestamp. It does not contain a 'T' " +
			"according to ISO8601 format")
	}
	for _, layout := range []string{"2006-01-02T15:04:05.999Z07:00", "2006-01-02T15:04:05.999Z0700", "2006-01-02T15:04:05.999"} {
		if t, err := time.Parse(layout, given); err == nil {
			return t, nil
		}
	}
	return time.Time{}, sentencef("java.text.ParseException: Unparseable date: \"%s\"", given)
}

// parseISODuration reads PnDTnHnMn.nS, as Java's Duration does; numbers may be negative.
//
//	P1DT2H3M4.5S    a day, two hours, …; each part may be missing, but not all, and not all behind a T
//	-PT1H           the sign of everything
//
// Days are 24 hours. --by-duration takes it back from now.
func parseISODuration(given string) (time.Duration, error) {
	bad := usagef("Text cannot be parsed to a Duration")
	text := strings.ToUpper(given)
	negative := strings.HasPrefix(text, "-")
	text, ok := strings.CutPrefix(strings.TrimLeft(text, "+-"), "P")
	if !ok || text == "" {
		return 0, bad
	}
	days, clock, hasClock := strings.Cut(text, "T")
	if hasClock && clock == "" {
		return 0, bad
	}
	total, rest, err := durationPart(days, "D", 24*time.Hour)
	if err != nil || rest != "" {
		return 0, bad
	}
	for _, unit := range []struct {
		letter string
		size   time.Duration
	}{{"H", time.Hour}, {"M", time.Minute}, {"S", time.Second}} {
		var part time.Duration
		if part, clock, err = durationPart(clock, unit.letter, unit.size); err != nil {
			return 0, bad
		}
		total += part
	}
	if clock != "" {
		return 0, bad
	}
	if negative {
		total = -total
	}
	return total, nil
}

// durationPart takes a number with its unit from the front of a text, if it is there.
func durationPart(text, letter string, size time.Duration) (time.Duration, string, error) {
	number, rest, ok := strings.Cut(text, letter)
	if !ok {
		return 0, text, nil
	}
	n, err := strconv.ParseFloat(number, 64)
	return time.Duration(n * float64(size)), rest, err
}

// javaDate writes a time in the letters of Java's SimpleDateFormat: those of dates and clocks, text in
// quotes, and everything else as it is.
func javaDate(t time.Time, pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); {
		c := pattern[i]
		if c == '\'' {
			end := strings.IndexByte(pattern[i+1:], '\'')
			if end < 0 {
				end = len(pattern) - i - 1
			}
			if end == 0 {
				b.WriteByte('\'')
			}
			b.WriteString(pattern[i+1 : i+1+end])
			i += end + 2
			continue
		}
		n := 1
		for i+n < len(pattern) && pattern[i+n] == c {
			n++
		}
		b.WriteString(javaDateField(t, c, n))
		i += n
	}
	return b.String()
}

// javaDateField is one field of a date, n letters long in the pattern.
func javaDateField(t time.Time, letter byte, n int) string {
	number := func(value int) string {
		text := strconv.Itoa(value)
		return strings.Repeat("0", max(n-len(text), 0)) + text
	}
	switch letter {
	case 'y':
		if n == 2 {
			return number(t.Year() % 100)
		}
		return number(t.Year())
	case 'M':
		if n >= 3 {
			return t.Format("Jan")
		}
		return number(int(t.Month()))
	case 'd':
		return number(t.Day())
	case 'H':
		return number(t.Hour())
	case 'h':
		return number((t.Hour()+11)%12 + 1)
	case 'm':
		return number(t.Minute())
	case 's':
		return number(t.Second())
	case 'S':
		return number(t.Nanosecond() / int(time.Millisecond))
	case 'a':
		return t.Format("PM")
	case 'E':
		return t.Format("Mon")
	case 'z':
		return t.Format("MST")
	case 'Z':
		return t.Format("-0700")
	}
	return strings.Repeat(string(letter), n)
}
