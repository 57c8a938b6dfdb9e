package coordination

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ValidatePath checks a path by the rules of ZooKeeper's PathUtils: absolute, no trailing slash, no empty
// name, no "." or "..", and no control characters, surrogates, private or special ones. ZooKeeper looks at
// UTF-16 units, so that characters beyond U+FFFF are refused as well. The error wraps ErrBadPath.
func ValidatePath(path string) error {
	switch {
	case path == "":
		return badPath(path, "it is empty")
	case path[0] != '/':
		return badPath(path, "it does not start with /")
	case len(path) == 1:
		return nil
	case path[len(path)-1] == '/':
		return badPath(path, "it ends with /")
	case !utf8.ValidString(path):
		return badPath(path, "it is not UTF-8")
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return badPath(path, fmt.Sprintf("it has a node named %q", name))
		}
	}
	for i, r := range path {
		if !validRune(r) {
			return badPath(path, fmt.Sprintf("it has the character %U at byte %d", r, i))
		}
	}
	return nil
}

// validRune tells whether ZooKeeper takes r in a path.
func validRune(r rune) bool {
	switch {
	case r <= 0x1f, r >= 0x7f && r <= 0x9f, r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0:
		return false
	}
	return true
}

// badPath says what is wrong with a path.
func badPath(path, why string) error {
	return fmt.Errorf("%w %q: %s", ErrBadPath, path, why)
}

// Parent is the path of a node's parent; of the root, the root. The path is valid.
func Parent(path string) string {
	parent, _ := Split(path)
	return parent
}

// Split takes a node's name off its path; the root's is empty. The path is valid.
func Split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 1)], path[i+1:]
}

// Join appends a name to a path.
func Join(path, name string) string {
	if path == "/" {
		return path + name
	}
	return path + "/" + name
}

// Chroot translates between the paths of a session and those of its store.
type Chroot string

// NewChroot checks a chroot; "" and "/" mean none.
func NewChroot(path string) (Chroot, error) {
	if path == "" || path == "/" {
		return "", nil
	}
	if err := ValidatePath(path); err != nil {
		return "", fmt.Errorf("chroot: %w", err)
	}
	return Chroot(path), nil
}

// Outer turns a session's path into the store's.
func (c Chroot) Outer(path string) string {
	switch {
	case c == "":
		return path
	case path == "/":
		return string(c)
	}
	return string(c) + path
}

// OuterOp turns an operation's path into the store's.
func (c Chroot) OuterOp(op Op) Op {
	if c != "" && op.Path == "/" && op.Kind == OpCreate && op.Options.Sequential {
		op.Path = string(c) + "/" // a number right below the chroot, not beside it
		return op
	}
	op.Path = c.Outer(op.Path)
	return op
}

// Inner turns a store's path at or below the chroot into the session's.
func (c Chroot) Inner(path string) string {
	if len(path) == len(c) {
		return "/"
	}
	return path[len(c):]
}
