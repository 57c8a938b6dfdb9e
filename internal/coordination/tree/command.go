package tree

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/barnabas-mq/barnabas/internal/coordination"
)

// A command as bytes. All numbers are varints (u: unsigned) unless a size is given:
//
//	version  1 byte, 1
//	kind     1 byte, see Kind
//	time     ms since 1970
//	--- OpenSession ---
//	node     of the owner
//	life     8 bytes, big endian
//	timeout  u, ms
//	--- CloseSession ---
//	session  u
//	--- Transaction ---
//	session  u
//	count    u, then that many operations:
//	  kind     1 byte: coordination.OpKind, +0x10 ephemeral, +0x20 sequential
//	  path     u length, bytes
//	  data     u length + 1 or 0 for nil, bytes; of create and set
//	  version  of check, set and delete
const commandVersion = 1

const (
	ephemeralFlag  = 0x10
	sequentialFlag = 0x20
)

// errMalformed means bytes that no version of this program wrote.
var errMalformed = errors.New("malformed")

// Append appends the command's bytes to dst.
func (c Command) Append(dst []byte) []byte {
	dst = append(dst, commandVersion, byte(c.Kind))
	dst = binary.AppendVarint(dst, c.Time)
	if c.Kind == OpenSession {
		dst = binary.AppendVarint(dst, int64(c.Owner.Node))
		dst = binary.BigEndian.AppendUint64(dst, c.Owner.Life)
		return binary.AppendUvarint(dst, uint64(c.TimeoutMillis))
	}
	dst = binary.AppendUvarint(dst, uint64(c.Session))
	if c.Kind == CloseSession {
		return dst
	}
	dst = binary.AppendUvarint(dst, uint64(len(c.Ops)))
	for _, op := range c.Ops {
		dst = appendOp(dst, op)
	}
	return dst
}

// appendOp appends one operation.
func appendOp(dst []byte, op coordination.Op) []byte {
	kind := byte(op.Kind)
	if op.Options.Ephemeral {
		kind |= ephemeralFlag
	}
	if op.Options.Sequential {
		kind |= sequentialFlag
	}
	dst = append(dst, kind)
	dst = binary.AppendUvarint(dst, uint64(len(op.Path)))
	dst = append(dst, op.Path...)
	if hasData(op.Kind) {
		dst = appendData(dst, op.Data)
	}
	if op.Kind != coordination.OpCreate {
		dst = binary.AppendVarint(dst, int64(op.Version))
	}
	return dst
}

// hasData tells whether operations of a kind carry data.
func hasData(kind coordination.OpKind) bool {
	return kind == coordination.OpCreate || kind == coordination.OpSet
}

// appendData appends data that may be nil.
func appendData(dst, data []byte) []byte {
	if data == nil {
		return append(dst, 0)
	}
	dst = binary.AppendUvarint(dst, uint64(len(data))+1)
	return append(dst, data...)
}

// ParseCommand reads a command that Append wrote. Nothing in it aliases b.
func ParseCommand(b []byte) (Command, error) {
	p := parser{rest: b}
	var c Command
	if version := p.byte(); p.err == nil && version != commandVersion {
		return c, fmt.Errorf("command of version %d, and only %d is known: a newer program wrote it", version, commandVersion)
	}
	c.Kind = Kind(p.byte())
	c.Time = p.varint()
	switch c.Kind {
	case OpenSession:
		c.Owner.Node = p.int32()
		c.Owner.Life = p.uint64()
		c.TimeoutMillis = p.count()
	case CloseSession:
		c.Session = p.count()
	case Transaction:
		c.Session = p.count()
		c.Ops = p.ops()
	default:
		p.fail()
	}
	if len(p.rest) > 0 {
		p.fail()
	}
	if p.err != nil {
		return Command{}, fmt.Errorf("command: %w", p.err)
	}
	return c, nil
}

// parser takes values off a slice; after the first error it gives zeros.
type parser struct {
	rest []byte
	err  error
}

// fail notes that the bytes are malformed.
func (p *parser) fail() {
	if p.err == nil {
		p.err = errMalformed
	}
	p.rest = nil
}

func (p *parser) byte() byte {
	if len(p.rest) < 1 {
		p.fail()
		return 0
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return b
}

func (p *parser) uint64() uint64 {
	if len(p.rest) < 8 {
		p.fail()
		return 0
	}
	v := binary.BigEndian.Uint64(p.rest)
	p.rest = p.rest[8:]
	return v
}

func (p *parser) varint() int64 {
	v, n := binary.Varint(p.rest)
	if n <= 0 {
		p.fail()
		return 0
	}
	p.rest = p.rest[n:]
	return v
}

// int32 is a varint that fits.
func (p *parser) int32() int32 {
	v := p.varint()
	if int64(int32(v)) != v {
		p.fail()
		return 0
	}
	return int32(v)
}

// count is an unsigned varint that fits an int64.
// Sizes, ids and timeouts are never negative, so they need no sign.
func (p *parser) count() int64 {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 || int64(v) < 0 {
		p.fail()
		return 0
	}
	p.rest = p.rest[n:]
	return int64(v)
}

// take is the next n bytes, of p's slice.
func (p *parser) take(n int64) []byte {
	if n > int64(len(p.rest)) {
		p.fail()
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

// data is a copy of data that may be nil.
func (p *parser) data() []byte {
	n := p.count()
	if n == 0 {
		return nil
	}
	return append([]byte{}, p.take(n-1)...)
}

// minOpBytes is the least that an operation takes, so that a count cannot ask for more memory than its
// bytes justify.
const minOpBytes = 4

// ops are the operations of a transaction.
func (p *parser) ops() []coordination.Op {
	n := p.count()
	if n > int64(len(p.rest)/minOpBytes) {
		p.fail()
		return nil
	}
	ops := make([]coordination.Op, n)
	for i := range ops {
		ops[i] = p.op()
	}
	return ops
}

// op is one operation. What Limits.Validate lets through passes, and nothing else.
//
// The log is checked as strictly as a client's request: a command that Apply could not carry out must be found here,
// where it is an error of the store, and not there, where it is a bug.
func (p *parser) op() coordination.Op {
	kind := p.byte()
	op := coordination.Op{
		Kind: coordination.OpKind(kind &^ (ephemeralFlag | sequentialFlag)),
		Options: coordination.CreateOptions{
			Ephemeral: kind&ephemeralFlag != 0, Sequential: kind&sequentialFlag != 0,
		},
	}
	op.Path = string(p.take(p.count()))
	if hasData(op.Kind) {
		op.Data = p.data()
	}
	if op.Kind != coordination.OpCreate {
		op.Version = p.int32()
		if op.Options.Ephemeral || op.Options.Sequential {
			p.fail()
		}
	}
	if p.err == nil && (len(op.Path) > maxPathBytes || coordination.ValidateOp(op) != nil) {
		p.fail()
	}
	return op
}

// maxPathBytes bounds a path, and with it how deep a tree is.
const maxPathBytes = 1 << 20
