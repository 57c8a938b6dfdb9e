package jute

// Stat is what ZooKeeper tells about a node:
//
//	long czxid, mzxid, ctime, mtime; int version, cversion, aversion; long ephemeralOwner;
//	int dataLength, numChildren; long pzxid
type Stat struct {
	Czxid, Mzxid, Ctime, Mtime   int64
	Version, Cversion, Aversion  int32
	EphemeralOwner               int64
	DataLength, NumberOfChildren int32
	Pzxid                        int64
}

// Append implements Record.
func (s *Stat) Append(dst []byte) []byte {
	dst = AppendLong(AppendLong(AppendLong(AppendLong(dst, s.Czxid), s.Mzxid), s.Ctime), s.Mtime)
	dst = AppendInt(AppendInt(AppendInt(dst, s.Version), s.Cversion), s.Aversion)
	dst = AppendInt(AppendInt(AppendLong(dst, s.EphemeralOwner), s.DataLength), s.NumberOfChildren)
	return AppendLong(dst, s.Pzxid)
}

// Read implements Record.
func (s *Stat) Read(r *Reader) {
	s.Czxid, s.Mzxid, s.Ctime, s.Mtime = r.Long(), r.Long(), r.Long(), r.Long()
	s.Version, s.Cversion, s.Aversion = r.Int(), r.Int(), r.Int()
	s.EphemeralOwner, s.DataLength, s.NumberOfChildren, s.Pzxid = r.Long(), r.Int(), r.Int(), r.Long()
}

// Permissions of an ACL.
const (
	PermRead   int32 = 1
	PermWrite  int32 = 2
	PermCreate int32 = 4
	PermDelete int32 = 8
	PermAdmin  int32 = 16
	PermAll    int32 = 31
)

// ACL grants permissions to an identity: int perms, string scheme, string id.
type ACL struct {
	Permissions int32
	Scheme, ID  string
}

// appendACLs writes a vector of ACLs.
func appendACLs(dst []byte, list []ACL) []byte {
	dst = AppendInt(dst, int32(len(list)))
	for _, a := range list {
		dst = AppendString(AppendString(AppendInt(dst, a.Permissions), a.Scheme), a.ID)
	}
	return dst
}

// readACLs reads a vector of ACLs; nil where it has none.
func readACLs(r *Reader) []ACL {
	n := r.count(12)
	if n == 0 {
		return nil
	}
	list := make([]ACL, n)
	for i := range list {
		list[i] = ACL{Permissions: r.Int(), Scheme: r.String(), ID: r.String()}
	}
	return list
}

// Flags of CreateRequest; both together make an ephemeral node with a number.
const (
	FlagEphemeral  int32 = 1
	FlagSequential int32 = 2
)

// CreateRequest makes a node: string path, buffer data, vector<ACL> acl, int flags.
type CreateRequest struct {
	Path  string
	Data  []byte
	ACL   []ACL
	Flags int32
}

// Append implements Record.
func (c *CreateRequest) Append(dst []byte) []byte {
	return AppendInt(appendACLs(AppendBuffer(AppendString(dst, c.Path), c.Data), c.ACL), c.Flags)
}

// Read implements Record.
func (c *CreateRequest) Read(r *Reader) {
	c.Path, c.Data, c.ACL, c.Flags = r.String(), r.Buffer(), readACLs(r), r.Int()
}

// Create2Response tells what was made: string path, Stat.
type Create2Response struct {
	// Path holds the number of a sequential node.
	Path string
	Stat Stat
}

// Append implements Record.
func (c *Create2Response) Append(dst []byte) []byte { return c.Stat.Append(AppendString(dst, c.Path)) }

// Read implements Record.
func (c *Create2Response) Read(r *Reader) {
	c.Path = r.String()
	c.Stat.Read(r)
}

// DeleteRequest removes a node: string path, int version (-1: any).
type DeleteRequest struct {
	Path    string
	Version int32
}

// Append implements Record.
func (d *DeleteRequest) Append(dst []byte) []byte {
	return AppendInt(AppendString(dst, d.Path), d.Version)
}

// Read implements Record.
func (d *DeleteRequest) Read(r *Reader) { d.Path, d.Version = r.String(), r.Int() }

// CheckRequest demands a version; it has the fields of DeleteRequest.
type CheckRequest = DeleteRequest

// ReadRequest reads a node, its children or its Stat: string path, bool watch.
type ReadRequest struct {
	Path string
	// Watch leaves a watch that fires once.
	Watch bool
}

// Append implements Record.
func (g *ReadRequest) Append(dst []byte) []byte {
	return AppendBool(AppendString(dst, g.Path), g.Watch)
}

// Read implements Record.
func (g *ReadRequest) Read(r *Reader) { g.Path, g.Watch = r.String(), r.Bool() }

// StatResponse is the answer of OpExists and OpSetData.
type StatResponse = Stat

// GetDataResponse is a node: buffer data, Stat.
type GetDataResponse struct {
	Data []byte
	Stat Stat
}

// Append implements Record.
func (g *GetDataResponse) Append(dst []byte) []byte { return g.Stat.Append(AppendBuffer(dst, g.Data)) }

// Read implements Record.
func (g *GetDataResponse) Read(r *Reader) {
	g.Data = r.Buffer()
	g.Stat.Read(r)
}

// SetDataRequest writes a node: string path, buffer data, int version (-1: any).
type SetDataRequest struct {
	Path    string
	Data    []byte
	Version int32
}

// Append implements Record.
func (s *SetDataRequest) Append(dst []byte) []byte {
	return AppendInt(AppendBuffer(AppendString(dst, s.Path), s.Data), s.Version)
}

// Read implements Record.
func (s *SetDataRequest) Read(r *Reader) { s.Path, s.Data, s.Version = r.String(), r.Buffer(), r.Int() }

// GetChildrenResponse lists names, in no order: vector<string>.
type GetChildrenResponse struct {
	Names []string
}

// Append implements Record.
func (g *GetChildrenResponse) Append(dst []byte) []byte { return AppendStrings(dst, g.Names) }

// Read implements Record.
func (g *GetChildrenResponse) Read(r *Reader) { g.Names = r.Strings() }

// GetChildren2Response lists names, in no order: vector<string>, Stat.
type GetChildren2Response struct {
	Names []string
	Stat  Stat
}

// Append implements Record.
func (g *GetChildren2Response) Append(dst []byte) []byte {
	return g.Stat.Append(AppendStrings(dst, g.Names))
}

// Read implements Record.
func (g *GetChildren2Response) Read(r *Reader) {
	g.Names = r.Strings()
	g.Stat.Read(r)
}

// PathRecord is a path alone: OpSync both ways, OpGetACL, and the answer of OpCreate.
type PathRecord struct {
	Path string
}

// Append implements Record.
func (p *PathRecord) Append(dst []byte) []byte { return AppendString(dst, p.Path) }

// Read implements Record.
func (p *PathRecord) Read(r *Reader) { p.Path = r.String() }

// CreateResponse is the answer of OpCreate.
type CreateResponse = PathRecord

// GetACLResponse tells who may do what: vector<ACL>, Stat.
type GetACLResponse struct {
	ACL  []ACL
	Stat Stat
}

// Append implements Record.
func (g *GetACLResponse) Append(dst []byte) []byte { return g.Stat.Append(appendACLs(dst, g.ACL)) }

// Read implements Record.
func (g *GetACLResponse) Read(r *Reader) {
	g.ACL = readACLs(r)
	g.Stat.Read(r)
}

// SetACLRequest replaces an ACL: string path, vector<ACL>, int version of the ACL (-1: any).
type SetACLRequest struct {
	Path    string
	ACL     []ACL
	Version int32
}

// Append implements Record.
func (s *SetACLRequest) Append(dst []byte) []byte {
	return AppendInt(appendACLs(AppendString(dst, s.Path), s.ACL), s.Version)
}

// Read implements Record.
func (s *SetACLRequest) Read(r *Reader) { s.Path, s.ACL, s.Version = r.String(), readACLs(r), r.Int() }
