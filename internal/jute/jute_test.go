package jute

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	stat = Stat{
		Czxid: 1, Mzxid: 2, Ctime: 3, Mtime: 4, Version: 5, Cversion: 6, Aversion: 7, EphemeralOwner: math.MinInt64,
		DataLength: 8, NumberOfChildren: 9, Pzxid: 10,
	}
	acls = []ACL{{PermAll, "auth", ""}, {PermRead, "world", "anyone"}}
)

// examples are one of each record, with all fields set.
func examples() []Record {
	return []Record{
		&ConnectRequest{LastZxid: 7, Timeout: 18000, SessionID: 1 << 60, Password: []byte("0123456789abcdef"), ReadOnly: true},
		&ConnectResponse{Timeout: 18000, SessionID: 1 << 60, Password: []byte("0123456789abcdef")},
		&RequestHeader{Xid: -2, Op: OpPing}, &ReplyHeader{Xid: 5, Zxid: 9, Err: NoNode},
		&AuthRequest{Scheme: "digest", Auth: []byte("u:p")}, &SASLToken{Token: []byte{}}, &SASLToken{},
		&CreateRequest{Path: "/a", Data: []byte("x"), ACL: acls, Flags: FlagEphemeral | FlagSequential},
		&CreateRequest{Path: "/null"}, &CreateRequest{Path: "/empty", Data: []byte{}},
		&Create2Response{Path: "/a", Stat: stat}, &DeleteRequest{Path: "/a", Version: -1}, &ReadRequest{Path: "/a", Watch: true},
		&GetDataResponse{Data: []byte("x"), Stat: stat}, &GetDataResponse{Stat: stat}, &stat,
		&SetDataRequest{Path: "/ä", Data: []byte("x"), Version: 3}, &GetChildrenResponse{Names: []string{"a", ""}},
		&GetChildren2Response{Names: []string{"a", "b"}, Stat: stat}, &GetChildren2Response{Stat: stat},
		&PathRecord{Path: "/a"}, &GetACLResponse{ACL: acls, Stat: stat}, &SetACLRequest{Path: "/a", ACL: acls, Version: 2},
		&AddWatchRequest{Path: "/a", Mode: PersistentRecursive}, &RemoveWatchesRequest{Path: "/a", Type: WatcherAny},
		&SetWatches{LastZxid: 3, Data: []string{"/a"}, Exist: []string{"/b"}, Children: []string{"/c"}, Persistent: []string{"/d"}, Recursive: []string{"/e"}},
		&WatchEvent{Type: EventDataChanged, State: 3, Path: "/a"}, &ErrorResult{Err: NodeExists},
		&MultiRequest{Ops: []MultiOp{
			{OpCreate2, &CreateRequest{Path: "/a", ACL: acls}}, {OpDelete, &DeleteRequest{Path: "/b"}},
			{OpSetData, &SetDataRequest{Path: "/c", Data: []byte("x")}}, {OpCheck, &DeleteRequest{Path: "/d", Version: 4}},
			{OpGetData, &ReadRequest{Path: "/e"}}, {OpGetChildren, &ReadRequest{Path: "/f"}},
		}},
		&MultiRequest{},
		&MultiResponse{Results: []MultiResult{
			{Op: OpCreate, Path: "/a"}, {Op: OpCreate2, Path: "/a", Stat: stat}, {Op: OpDelete}, {Op: OpCheck},
			{Op: OpSetData, Stat: stat}, {Op: OpGetData, Data: []byte("x"), Stat: stat}, {Op: OpGetChildren, Names: []string{"n"}},
			{Op: OpError, Err: BadVersion},
		}},
	}
}

// empty is a zero record of the same type.
func empty(r Record) Record {
	for _, e := range zeros() {
		if typeOf(e) == typeOf(r) {
			return e
		}
	}
	return nil
}

func TestThereAndBack(t *testing.T) {
	for _, want := range examples() {
		got := empty(want)
		r := NewReader(want.Append(nil))
		if got.Read(r); r.Err() != nil || len(r.Rest()) != 0 {
			t.Errorf("%T: %v, %d bytes left", want, r.Err(), len(r.Rest()))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%T (-want +got):\n%s", want, diff)
		}
	}
}

// No record is read from a part of itself without an error, but for fields that older peers leave out.
func TestCutRecords(t *testing.T) {
	for _, whole := range examples() {
		b := whole.Append(nil)
		for n := range len(b) {
			got := empty(whole)
			r := NewReader(b[:n])
			got.Read(r)
			if r.Err() == nil && !optionalTail(whole, len(b)-n) {
				t.Errorf("%T: %d of %d bytes are read without an error", whole, n, len(b))
			}
		}
	}
}

// optionalTail reports whether a record may lack its last n bytes.
func optionalTail(r Record, n int) bool {
	switch r := r.(type) {
	case *ConnectRequest, *ConnectResponse:
		return n == 1
	case *SetWatches:
		return n == len(AppendStrings(AppendStrings(nil, r.Persistent), r.Recursive))
	}
	return false
}

// The bytes of a few records, by their fields.
func TestBytes(t *testing.T) {
	for _, c := range []struct {
		text string
		want Record
	}{
		{"00000000" + "0000000000000000" + "00004650" + "0000000000000000" + "00000010" + "00000000000000000000000000000000" + "00",
			&ConnectRequest{Timeout: 18000, Password: make([]byte, 16)}},
		{"0000000d00ffffffff000000022f6100000003ffffffff01ffffffff",
			&MultiRequest{Ops: []MultiOp{{OpCheck, &DeleteRequest{Path: "/a", Version: 3}}}}},
		{"ffffffff00ffffff99ffffff99ffffffff01ffffffff", &MultiResponse{Results: []MultiResult{{Op: OpError, Err: BadVersion}}}},
	} {
		b, err := hex.DecodeString(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.want.Append(nil); !bytes.Equal(got, b) {
			t.Errorf("%T: %x, want %x", c.want, got, b)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		bytes  []byte
		record Record
		want   error
	}{
		{"a negative length", AppendInt(nil, -2), new(PathRecord), ErrLength},
		{"a negative count", AppendInt(nil, -2), new(GetChildrenResponse), ErrLength},
		{"more elements than bytes", AppendInt(nil, math.MaxInt32), new(GetChildrenResponse), ErrShort},
		{"a boolean of 2", append(AppendString(nil, "/a"), 2), new(ReadRequest), ErrBool},
		{"a ping in a transaction", AppendInt(AppendBool(AppendInt(nil, int32(OpPing)), false), -1), new(MultiRequest), ErrOp},
		{"a ping in an answer", AppendInt(AppendBool(AppendInt(nil, int32(OpPing)), false), -1), new(MultiResponse), ErrOp},
	} {
		r := NewReader(c.bytes)
		if c.record.Read(r); !errors.Is(r.Err(), c.want) {
			t.Errorf("%s: %v, want %v", c.name, r.Err(), c.want)
		}
	}
}

// Older clients and servers leave the last field of the greeting out, and a client may send three lists of
// watches.
func TestOlderForms(t *testing.T) {
	whole := (&ConnectRequest{Timeout: 5, Password: []byte{}}).Append(nil)
	var request ConnectRequest
	if r := NewReader(whole[:len(whole)-1]); true {
		if request.Read(r); r.Err() != nil || request.Timeout != 5 || request.ReadOnly {
			t.Errorf("%+v, %v", request, r.Err())
		}
	}
	var set SetWatches
	r := NewReader(AppendStrings(AppendStrings(AppendStrings(AppendLong(nil, 1), []string{"/a"}), nil), []string{"/c"}))
	if set.Read(r); r.Err() != nil || len(set.Data) != 1 || len(set.Children) != 1 || set.Persistent != nil {
		t.Errorf("%+v, %v", set, r.Err())
	}
}

func FuzzRecords(f *testing.F) {
	for i, e := range examples() {
		f.Add(uint8(i), e.Append(nil))
	}
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		kinds := zeros()
		first, second := kinds[int(which)%len(kinds)], zeros()[int(which)%len(kinds)]
		r := NewReader(b)
		if first.Read(r); r.Err() != nil {
			return
		}
		again := NewReader(first.Append(nil))
		if second.Read(again); again.Err() != nil || len(again.Rest()) != 0 {
			t.Fatalf("%T: what was written cannot be read: %v", first, again.Err())
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("%T (-first +second):\n%s", first, diff)
		}
	})
}
