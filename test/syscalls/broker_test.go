package main

import "testing"

func TestParse(t *testing.T) {
	const batch = 1094
	for line, want := range map[string]string{
		`4711 pwrite64(12, "\0\0"..., 1094, 0) = 1094`:                                 "pwrite64",
		`4711 pwrite64(12, "\0\0"..., 1920, 0) = 1920`:                                 "pwrite64 of no batch",
		`4711 write(3, "\1\0\0\0\0\0\0\0", 8)  = 8`:                                    "write of an event",
		`4711 write(3, "..." <unfinished ...>`:                                         "",
		`4711 <... write resumed>, 66)          = 66`:                                  "write",
		`4711 sendfile(10, 12, [526592] => [575960], 49368) = 49368`:                   "sendfile",
		`4711 sendfile(10, 12, [526592] => [526692], 49368) = 100`:                     "sendfile in part",
		`4711 <... sendfile resumed> => [526692], 49368) = 100`:                        "sendfile in part",
		`4711 recvmsg(9, {...}, 0)     = -1 EAGAIN (Resource temporarily unavailable)`: "in vain",
		`4711 +++ exited with 0 +++`:                                                   "",
	} {
		c, ok := parse(line + "\n")
		got := ""
		switch {
		case c.again:
			got = "in vain"
		case ok:
			got = c.kind(batch)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
		if _, ok := parse(line); ok {
			t.Errorf("half of a line is taken: %s", line)
		}
	}
}
