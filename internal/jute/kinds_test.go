package jute

import "reflect"

// zeros are an empty one of each record.
func zeros() []Record {
	return []Record{
		new(ConnectRequest), new(ConnectResponse), new(RequestHeader), new(ReplyHeader), new(AuthRequest), new(SASLToken),
		new(CreateRequest), new(Create2Response), new(DeleteRequest), new(ReadRequest), new(GetDataResponse), new(Stat),
		new(SetDataRequest), new(GetChildrenResponse), new(GetChildren2Response), new(PathRecord), new(GetACLResponse),
		new(SetACLRequest), new(AddWatchRequest), new(RemoveWatchesRequest), new(SetWatches), new(WatchEvent),
		new(ErrorResult), new(MultiRequest), new(MultiResponse),
	}
}

func typeOf(r Record) reflect.Type { return reflect.TypeOf(r) }
