package log

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/barnabas-mq/barnabas/internal/vfs"
)

var (
	controlCharacters = regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f-\x{9f}]`)
	payload           = regexp.MustCompile(`(payload: )(.*)$`)
)

// shortened treats the output of a dump as that of the golden files was: payloads above 200 characters are
// cut, control characters replaced.
func shortened(out string) []string {
	out = strings.ReplaceAll(out, "/data/", "")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	for i, line := range lines {
		line = controlCharacters.ReplaceAllString(line, "?")
		lines[i] = payload.ReplaceAllStringFunc(line, func(all string) string {
			text := []rune(strings.TrimPrefix(all, "payload: "))
			if len(text) <= 200 {
				return all
			}
			return fmt.Sprintf("payload: %s...<%d characters in all>", string(text[:60]), len(text))
		})
	}
	return lines
}

// dumpAll dumps the files of all partitions with the given suffixes, in the order of their paths.
func dumpAll(t *testing.T, fs vfs.FS, suffixes ...string) (output, complaints string) {
	t.Helper()
	var paths []string
	dirs, err := fs.ReadDir("/data")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if !dir.IsDir() {
			continue
		}
		entries, err := fs.ReadDir("/data/" + dir.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if _, kind, state, ok := parseFileName(e.Name()); ok && state == "" && slices.Contains(suffixes, kind) {
				paths = append(paths, "/data/"+dir.Name()+"/"+e.Name())
			}
		}
	}
	slices.Sort(paths)
	var out, faults bytes.Buffer
	for _, path := range paths {
		if err := Dump(&out, fs, path, DumpOptions{DeepIteration: true, PrintDataLog: true, Errors: &faults}); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return out.String(), faults.String()
}

// isFault reports whether a line of a golden dump comes from the tool's standard error, which stands at
// places of its own.
func isFault(line string) bool {
	return strings.HasPrefix(line, "Non-consecutive") || strings.HasPrefix(line, "Mismatches") || strings.HasPrefix(line, "Found timestamp") ||
		strings.HasPrefix(line, "The following") || isFinding(line)
}

// isFinding reports whether a line of the standard error names offsets or times.
func isFinding(line string) bool {
	return strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "Indexed offset")
}

// findings are those of some lines. Kafka 4.4 also says that -1 is followed by the first offset of a segment
// that does not begin at 0, and orders files as a hash map has them.
func findings(lines []string) []string {
	var out []string
	for _, line := range lines {
		if isFinding(line) && !strings.HasPrefix(line, "  -1 is followed by") {
			out = append(out, line)
		}
	}
	slices.Sort(out)
	return out
}

func TestDumpAsKafka(t *testing.T) {
	for _, test := range []struct {
		name, expected string
		suffixes       []string
	}{
		{"3.9.2-zk-clean", "dump.txt", []string{logSuffix, indexSuffix, timeIndexSuffix, txnIndexSuffix, snapshotSuffix}},
		{"4.4.0-kraft-clean", "dump.txt", []string{logSuffix, indexSuffix, timeIndexSuffix, txnIndexSuffix, snapshotSuffix}},
		{"3.9.2-zk-unclean", "dump.txt.gz", []string{logSuffix, txnIndexSuffix, snapshotSuffix}},
		{"4.4.0-kraft-unclean", "dump.txt.gz", []string{logSuffix, txnIndexSuffix, snapshotSuffix}},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := loadGolden(t, test.name)
			want := g.other[test.expected]
			if strings.HasSuffix(test.expected, ".gz") {
				want = unzip(t, bytes.NewReader(want))
			}
			lines := strings.Split(strings.TrimSuffix(string(want), "\n"), "\n")
			output, complaints := dumpAll(t, g.fs, test.suffixes...)
			compareLines(t, shortened(output), lines)
			compareLines(t, findings(shortened(complaints)), findings(lines))
		})
	}
}

// TestDumpOldFormats compares with what Kafka 4.4's tool printed of segments of formats 0 and 1.
func TestDumpOldFormats(t *testing.T) {
	f, err := os.Open("testdata/golden/4.4.0-dump-of-v0-v1.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := string(unzip(t, f))
	g := loadGolden(t, "2.8.2-zk-message-v0-v1-clean")
	var out, faults bytes.Buffer
	for _, path := range regexp.MustCompile(`(?m)^Dumping (.*)$`).FindAllStringSubmatch(want, -1) {
		if err := Dump(&out, g.fs, "/data/"+path[1], DumpOptions{DeepIteration: true, PrintDataLog: true, Errors: &faults}); err != nil {
			t.Fatal(err)
		}
	}
	compareLines(t, shortened(out.String()), shortened(want))
}

func unzip(t *testing.T, r io.Reader) []byte {
	t.Helper()
	z, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func compareLines(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.ContainsFunc(got, isFault) {
		want = slices.DeleteFunc(slices.Clone(want), isFault)
	}
	for i := range min(len(got), len(want)) {
		if strings.TrimRight(got[i], " ") != strings.TrimRight(want[i], " ") {
			t.Fatalf("line %d is\n%q, expected\n%q", i+1, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d lines, expected %d", len(got), len(want))
	}
}

func TestDumpFaults(t *testing.T) {
	fs := vfs.NewMemory()
	someLog(t, fs)
	base := "/data/t-0/" + fileName(0, "")
	change(t, fs, base+indexSuffix, func(b []byte) []byte { b[3]++; return b })
	change(t, fs, base+timeIndexSuffix, func(b []byte) []byte { b[7]++; return b })
	change(t, fs, base+logSuffix, func(b []byte) []byte { return append(b, 1, 2, 3) })
	var out, faults bytes.Buffer
	o := DumpOptions{Errors: &faults, VerifyIndexOnly: true}
	for _, name := range []string{base + indexSuffix, base + timeIndexSuffix, base + logSuffix, "/data/t-0/" + epochsName, "/data/t-0/other.txt"} {
		if err := Dump(&out, fs, name, o); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"Mismatches in :" + base, "  Index offset: ", "Found timestamp mismatch", "Ignoring unknown file /data/t-0/other.txt"} {
		if !strings.Contains(faults.String(), want) {
			t.Errorf("no %q in\n%s", want, faults.String())
		}
	}
	for _, want := range []string{"Found 3 invalid bytes at the end of " + fileName(0, logSuffix), "epoch: 2 startOffset: 120"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the output", want)
		}
	}
	if err := Dump(&out, fs, base+"9", o); err != nil {
		t.Fatal(err)
	}
	if err := Dump(&out, fs, "/data/t-0/"+fileName(9, logSuffix), o); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

func TestJavaText(t *testing.T) {
	for in, want := range map[string]string{
		"":                     "",
		"grün €😀":              "grün €😀",
		"a\xffb":               "a\uFFFDb",
		"\xe2\x82":             "\uFFFD",
		"\xe2\x82z":            "\uFFFDz",
		"\xf0\x9f\x98":         "\uFFFD",
		"\xc0\x80":             "\uFFFD\uFFFD",
		"\xed\xa0\x80":         "\uFFFD",
		"\xed\xa0z":            "\uFFFDz",
		"\xf4\x90\x80\x80\xe0": "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD",
	} {
		if got := javaText([]byte(in)); got != want {
			t.Errorf("%q reads %q, expected %q", in, got, want)
		}
	}
}
