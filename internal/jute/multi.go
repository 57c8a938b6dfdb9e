package jute

import "fmt"

// multiHeader stands before each part of a transaction: int type, bool done, int err. The last one has
// type -1 and done, and nothing behind it.
type multiHeader struct {
	op   Op
	done bool
	err  Code
}

func (h *multiHeader) append(dst []byte) []byte {
	return AppendInt(AppendBool(AppendInt(dst, int32(h.op)), h.done), int32(h.err))
}

func (h *multiHeader) read(r *Reader) { h.op, h.done, h.err = Op(r.Int()), r.Bool(), Code(r.Int()) }

// appendEnd ends a transaction.
func appendEnd(dst []byte) []byte {
	end := multiHeader{op: OpError, done: true, err: -1}
	return end.append(dst)
}

// MultiOp is one operation of a transaction.
type MultiOp struct {
	Op Op
	// Request is the body of Op, as outside a transaction.
	Request Record
}

// MultiRequest is a transaction (OpMulti) or a batch of reads (OpMultiRead):
//
//	{multiHeader, body}… multiHeader{-1, true, -1}
type MultiRequest struct {
	Ops []MultiOp
}

// Append implements Record.
func (m *MultiRequest) Append(dst []byte) []byte {
	for _, op := range m.Ops {
		header := multiHeader{op: op.Op, err: -1}
		dst = op.Request.Append(header.append(dst))
	}
	return appendEnd(dst)
}

// Read implements Record.
func (m *MultiRequest) Read(r *Reader) {
	m.Ops = nil
	for {
		var header multiHeader
		header.read(r)
		if r.err != nil || header.done {
			return
		}
		body := requestBody(header.op)
		if body == nil {
			r.fail(fmt.Errorf("%w %d in a transaction", ErrOp, header.op))
			return
		}
		body.Read(r)
		m.Ops = append(m.Ops, MultiOp{Op: header.op, Request: body})
	}
}

// requestBody makes the record of an operation that may stand in a transaction; nil for any other.
func requestBody(op Op) Record {
	switch op {
	case OpCreate, OpCreate2:
		return new(CreateRequest)
	case OpDelete, OpCheck:
		return new(DeleteRequest)
	case OpSetData:
		return new(SetDataRequest)
	case OpGetData, OpGetChildren:
		return new(ReadRequest)
	}
	return nil
}

// MultiResult is what became of one operation.
type MultiResult struct {
	// Op is that of the request, or OpError.
	Op Op
	// Err is why it failed, of OpError. In a transaction that failed only the culprit has the reason: those
	// before it say OK although nothing happened, those behind it RuntimeInconsistency.
	Err Code
	// Path is the node of OpCreate and OpCreate2.
	Path string
	// Data is that of OpGetData, and lies in the packet.
	Data []byte
	// Names are those of OpGetChildren.
	Names []string
	// Stat is that of OpCreate2, OpSetData and OpGetData.
	Stat Stat
}

// MultiResponse is the answer to MultiRequest:
//
//	{multiHeader, body}… multiHeader{-1, true, -1}
//
// A part that failed has the type -1, and its body is int err.
type MultiResponse struct {
	Results []MultiResult
}

// Append implements Record.
func (m *MultiResponse) Append(dst []byte) []byte {
	for i := range m.Results {
		result := &m.Results[i]
		header := multiHeader{op: result.Op, err: result.Err}
		dst = result.append(header.append(dst))
	}
	return appendEnd(dst)
}

// Read implements Record.
func (m *MultiResponse) Read(r *Reader) {
	m.Results = nil
	for {
		var header multiHeader
		header.read(r)
		if r.err != nil || header.done {
			return
		}
		m.Results = append(m.Results, MultiResult{Op: header.op})
		m.Results[len(m.Results)-1].read(r)
	}
}

func (m *MultiResult) append(dst []byte) []byte {
	switch m.Op {
	case OpError:
		return AppendInt(dst, int32(m.Err))
	case OpCreate:
		return AppendString(dst, m.Path)
	case OpCreate2:
		return m.Stat.Append(AppendString(dst, m.Path))
	case OpSetData:
		return m.Stat.Append(dst)
	case OpGetData:
		return m.Stat.Append(AppendBuffer(dst, m.Data))
	case OpGetChildren:
		return AppendStrings(dst, m.Names)
	}
	return dst
}

func (m *MultiResult) read(r *Reader) {
	switch m.Op {
	case OpError:
		m.Err = Code(r.Int())
	case OpCreate:
		m.Path = r.String()
	case OpCreate2:
		m.Path = r.String()
		m.Stat.Read(r)
	case OpSetData:
		m.Stat.Read(r)
	case OpGetData:
		m.Data = r.Buffer()
		m.Stat.Read(r)
	case OpGetChildren:
		m.Names = r.Strings()
	case OpDelete, OpCheck:
	default:
		r.fail(fmt.Errorf("%w %d in an answer to a transaction", ErrOp, m.Op))
	}
}
