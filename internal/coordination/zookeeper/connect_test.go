package zookeeper

import (
	"slices"
	"testing"
)

func TestParseConnect(t *testing.T) {
	for _, c := range []struct {
		connect string
		servers []string
		chroot  string
	}{
		{"localhost:2181", []string{"localhost:2181"}, ""},
		{"a:1,b:2 , c:3/kafka", []string{"a:1", "b:2", "c:3"}, "/kafka"},
		{"a,[::1]:2182,[fe80::1]/x/y", []string{"a:2181", "[::1]:2182", "[fe80::1]:2181"}, "/x/y"},
		{"a:1/", []string{"a:1"}, ""},
		{"a:1,,", []string{"a:1"}, ""},
	} {
		servers, chroot, err := ParseConnect(c.connect)
		if err != nil || !slices.Equal(servers, c.servers) || chroot != c.chroot {
			t.Errorf("%q: %v, %q, %v", c.connect, servers, chroot, err)
		}
	}
	for _, connect := range []string{"", ",", "/kafka", "a:1/kafka/", "a:1//x", "a:", ":2181", "a b:1"} {
		if servers, chroot, err := ParseConnect(connect); err == nil {
			t.Errorf("%q: %v, %q", connect, servers, chroot)
		}
	}
}
