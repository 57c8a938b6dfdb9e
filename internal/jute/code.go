package jute

import "strconv"

// Code is ZooKeeper's error code; it is an error where it is not OK.
type Code int32

// The codes that a server answers with.
const (
	OK                      Code = 0
	SystemError             Code = -1
	RuntimeInconsistency    Code = -2
	DataInconsistency       Code = -3
	ConnectionLoss          Code = -4
	MarshallingError        Code = -5
	Unimplemented           Code = -6
	OperationTimeout        Code = -7
	BadArguments            Code = -8
	NewConfigNoQuorum       Code = -13
	ReconfigInProgress      Code = -14
	APIError                Code = -100
	NoNode                  Code = -101
	NoAuth                  Code = -102
	BadVersion              Code = -103
	NoChildrenForEphemerals Code = -108
	NodeExists              Code = -110
	NotEmpty                Code = -111
	SessionExpired          Code = -112
	InvalidCallback         Code = -113
	InvalidACL              Code = -114
	AuthFailed              Code = -115
	SessionMoved            Code = -118
	NotReadOnly             Code = -119
	EphemeralOnLocalSession Code = -120
	NoWatcher               Code = -121
	RequestTimeout          Code = -122
	ReconfigDisabled        Code = -123
	SessionClosedSASL       Code = -124
	QuotaExceeded           Code = -125
	Throttled               Code = -127
)

// Error names a code as ZooKeeper's documentation does.
func (c Code) Error() string {
	switch c {
	case OK:
		return "ok"
	case NoNode:
		return "NoNode"
	case NoAuth:
		return "NoAuth"
	case BadVersion:
		return "BadVersion"
	case NoChildrenForEphemerals:
		return "NoChildrenForEphemerals"
	case NodeExists:
		return "NodeExists"
	case NotEmpty:
		return "NotEmpty"
	case SessionExpired:
		return "SessionExpired"
	case InvalidACL:
		return "InvalidACL"
	case AuthFailed:
		return "AuthFailed"
	case SessionMoved:
		return "SessionMoved"
	case Unimplemented:
		return "Unimplemented"
	case BadArguments:
		return "BadArguments"
	case QuotaExceeded:
		return "QuotaExceeded"
	case Throttled:
		return "ThrottledOp"
	case SessionClosedSASL:
		return "SessionClosedRequireSaslAuth"
	}
	return "ZooKeeper error " + strconv.Itoa(int(c))
}

// ErrorResult is the answer of OpAddWatch, and a failed part of a transaction: int err.
type ErrorResult struct {
	Err Code
}

// Append implements Record.
func (e *ErrorResult) Append(dst []byte) []byte { return AppendInt(dst, int32(e.Err)) }

// Read implements Record.
func (e *ErrorResult) Read(r *Reader) { e.Err = Code(r.Int()) }
