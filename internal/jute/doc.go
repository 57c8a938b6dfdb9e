// Package jute reads and writes ZooKeeper's wire records, in both directions: as a client of an ensemble
// needs them, and as a server does.
//
// All numbers are big endian. There are no tags and no versions inside a record: both sides know its fields.
//
//	int, long     4 or 8 bytes, signed
//	bool          1 byte, 0 or 1
//	buffer        int length, bytes; length -1 is null
//	string        the same, in UTF-8; null is read as ""
//	vector<T>     int count, elements; count -1 is null
//
// On the connection every packet has its length (int) before it, which does not count itself:
//
//	client                                        server
//	ConnectRequest                          ───▶
//	                                        ◀───  ConnectResponse
//	RequestHeader{xid, op}, body of op      ───▶
//	                                        ◀───  ReplyHeader{xid, zxid, err}, body unless err
//
// Requests are pipelined, and answered in their order. A few xids are not the client's count: see XidEvent.
// What the bodies are stands with the record types; [Op] lists which belong together.
package jute

// Record is one record in both directions.
type Record interface {
	// Append writes the record behind dst.
	Append(dst []byte) []byte
	// Read fills the record. What is wrong with the bytes is kept in r.
	Read(r *Reader)
}

// Op is the type of a request.
type Op int32

// The operations, and their bodies there and back.
const (
	// OpError stands in answers to transactions: ErrorResult.
	OpError Op = -1
	// OpCreate: CreateRequest, CreateResponse.
	OpCreate Op = 1
	// OpDelete: DeleteRequest, nothing.
	OpDelete Op = 2
	// OpExists: ReadRequest, StatResponse.
	OpExists Op = 3
	// OpGetData: ReadRequest, GetDataResponse.
	OpGetData Op = 4
	// OpSetData: SetDataRequest, StatResponse.
	OpSetData Op = 5
	// OpGetACL: PathRecord, GetACLResponse.
	OpGetACL Op = 6
	// OpSetACL: SetACLRequest, StatResponse.
	OpSetACL Op = 7
	// OpGetChildren: ReadRequest, GetChildrenResponse.
	OpGetChildren Op = 8
	// OpSync: PathRecord, PathRecord.
	OpSync Op = 9
	// OpPing: nothing, nothing; with XidPing.
	OpPing Op = 11
	// OpGetChildren2: ReadRequest, GetChildren2Response.
	OpGetChildren2 Op = 12
	// OpCheck: CheckRequest, nothing; in transactions only.
	OpCheck Op = 13
	// OpMulti: MultiRequest, MultiResponse. All operations happen, or none.
	OpMulti Op = 14
	// OpCreate2: CreateRequest, Create2Response.
	OpCreate2 Op = 15
	// OpRemoveWatches: RemoveWatchesRequest, nothing (ZooKeeper 3.5).
	OpRemoveWatches Op = 18
	// OpMultiRead: MultiRequest, MultiResponse. Every read has its own outcome (ZooKeeper 3.6).
	OpMultiRead Op = 22
	// OpAuth: AuthRequest, nothing; with XidAuth.
	OpAuth Op = 100
	// OpSetWatches: SetWatches with three lists, nothing; with XidSetWatches.
	OpSetWatches Op = 101
	// OpSASL: SASLToken, SASLToken.
	OpSASL Op = 102
	// OpSetWatches2: SetWatches with five lists, nothing; with XidSetWatches (ZooKeeper 3.6).
	OpSetWatches2 Op = 105
	// OpAddWatch: AddWatchRequest, ErrorResult (ZooKeeper 3.6).
	OpAddWatch Op = 106
	// OpCloseSession: nothing, nothing.
	OpCloseSession Op = -11
)

// Xids that are not the count of a client's requests.
const (
	// XidEvent is a WatchEvent: the server speaks unasked.
	XidEvent int32 = -1
	// XidPing is an OpPing and its answer.
	XidPing int32 = -2
	// XidAuth is an OpAuth and its answer.
	XidAuth int32 = -4
	// XidSetWatches is an OpSetWatches or OpSetWatches2 and its answer.
	XidSetWatches int32 = -8
)
