package jute

// ConnectRequest is the first packet of a connection: it opens a session, or goes on with one.
//
//	int protocolVersion (0), long lastZxidSeen, int timeOut (ms), long sessionId (0: a new one),
//	buffer passwd (16 bytes), bool readOnly (left out by clients before 3.4)
type ConnectRequest struct {
	ProtocolVersion int32
	// LastZxid is the newest transaction that the client has seen; a server that is behind refuses.
	LastZxid int64
	// Timeout is what the client wishes, in milliseconds.
	Timeout   int32
	SessionID int64
	Password  []byte
	// ReadOnly allows a server that has lost its ensemble to serve reads.
	ReadOnly bool
}

// Append implements Record.
func (c *ConnectRequest) Append(dst []byte) []byte {
	dst = AppendLong(AppendInt(dst, c.ProtocolVersion), c.LastZxid)
	dst = AppendLong(AppendInt(dst, c.Timeout), c.SessionID)
	return AppendBool(AppendBuffer(dst, c.Password), c.ReadOnly)
}

// Read implements Record.
func (c *ConnectRequest) Read(r *Reader) {
	c.ProtocolVersion, c.LastZxid, c.Timeout, c.SessionID = r.Int(), r.Long(), r.Int(), r.Long()
	c.Password = r.Buffer()
	c.ReadOnly = len(r.Rest()) > 0 && r.Bool()
}

// ConnectResponse is the answer to ConnectRequest. A session that has expired is answered with a Timeout of
// 0, and the server closes the connection.
//
//	int protocolVersion, int timeOut (ms), long sessionId, buffer passwd, bool readOnly (not before 3.4)
type ConnectResponse struct {
	ProtocolVersion int32
	// Timeout is what the server grants, in milliseconds.
	Timeout   int32
	SessionID int64
	// Password is what the session is taken up again with.
	Password []byte
	// ReadOnly says that the server has lost its ensemble.
	ReadOnly bool
}

// Append implements Record.
func (c *ConnectResponse) Append(dst []byte) []byte {
	dst = AppendLong(AppendInt(AppendInt(dst, c.ProtocolVersion), c.Timeout), c.SessionID)
	return AppendBool(AppendBuffer(dst, c.Password), c.ReadOnly)
}

// Read implements Record.
func (c *ConnectResponse) Read(r *Reader) {
	c.ProtocolVersion, c.Timeout, c.SessionID = r.Int(), r.Int(), r.Long()
	c.Password = r.Buffer()
	c.ReadOnly = len(r.Rest()) > 0 && r.Bool()
}

// RequestHeader stands before every request but the first: int xid, int type.
type RequestHeader struct {
	// Xid comes back in the answer.
	Xid int32
	Op  Op
}

// Append implements Record.
func (h *RequestHeader) Append(dst []byte) []byte {
	return AppendInt(AppendInt(dst, h.Xid), int32(h.Op))
}

// Read implements Record.
func (h *RequestHeader) Read(r *Reader) { h.Xid, h.Op = r.Int(), Op(r.Int()) }

// ReplyHeader stands before every answer but the first: int xid, long zxid, int err.
type ReplyHeader struct {
	Xid int32
	// Zxid is the newest transaction that the server has applied.
	Zxid int64
	// Err other than OK means that no body follows.
	Err Code
}

// Append implements Record.
func (h *ReplyHeader) Append(dst []byte) []byte {
	return AppendInt(AppendLong(AppendInt(dst, h.Xid), h.Zxid), int32(h.Err))
}

// Read implements Record.
func (h *ReplyHeader) Read(r *Reader) { h.Xid, h.Zxid, h.Err = r.Int(), r.Long(), Code(r.Int()) }

// AuthRequest adds an identity to a connection: int type (0), string scheme, buffer auth.
type AuthRequest struct {
	Scheme string
	Auth   []byte
}

// Append implements Record.
func (a *AuthRequest) Append(dst []byte) []byte {
	return AppendBuffer(AppendString(AppendInt(dst, 0), a.Scheme), a.Auth)
}

// Read implements Record.
func (a *AuthRequest) Read(r *Reader) {
	_ = r.Int()
	a.Scheme, a.Auth = r.String(), r.Buffer()
}

// SASLToken is one step of a SASL exchange, there and back: buffer token.
type SASLToken struct {
	Token []byte
}

// Append implements Record.
func (t *SASLToken) Append(dst []byte) []byte { return AppendBuffer(dst, t.Token) }

// Read implements Record.
func (t *SASLToken) Read(r *Reader) { t.Token = r.Buffer() }
