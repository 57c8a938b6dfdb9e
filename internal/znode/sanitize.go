package znode

import (
	"fmt"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/metadata"
)

// Sanitize makes a name fit for a path: letters, digits, '.', '-' and '_' stay, every other byte of its
// UTF-8 becomes %XX. [metadata.DefaultEntity] stays as it is.
func Sanitize(name string) string {
	if name == metadata.DefaultEntity {
		return name
	}
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// Desanitize is the name behind what [Sanitize] wrote. Java's decoder also takes '+' for a space, and so
// does this.
func Desanitize(name string) (string, error) {
	if name == metadata.DefaultEntity {
		return name, nil
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		switch c := name[i]; c {
		case '+':
			b.WriteByte(' ')
		case '%':
			if i+2 >= len(name) || hex(name[i+1]) < 0 || hex(name[i+2]) < 0 {
				return "", fmt.Errorf("name %q has a %% that no two hex digits follow", name)
			}
			b.WriteByte(byte(hex(name[i+1])<<4 | hex(name[i+2])))
			i += 2
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}

// hex is the value of a hex digit, or -1.
func hex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}
