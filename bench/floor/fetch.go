package floor

import (
	"encoding/binary"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
)

// wanted is what a request asks of a partition, and what is sent.
type wanted struct {
	number           int32
	offset, most     int64
	partition        *partition
	position, length int64
	end              int64
}

// fetch answers with ranges of files, after a wait where there are none: for each partition a header and a range.
func (s *Server) fetch(conn *net.TCPConn, r *kbin.Reader, out []byte) ([]byte, error) {
	r.Int32() // replica
	wait := time.Duration(r.Int32()) * time.Millisecond
	r.Int32() // at least
	most := int64(r.Int32())
	r.Int8()  // isolation
	r.Int32() // session
	r.Int32() // its epoch
	type topic struct {
		name       []byte
		partitions []wanted
	}
	topics := make([]topic, r.Int32())
	for i := range topics {
		topics[i].name = r.Span(int(r.Int16()))
		topics[i].partitions = make([]wanted, r.Int32())
		for j := range topics[i].partitions {
			w := &topics[i].partitions[j]
			w.number = r.Int32()
			r.Int32() // leader epoch
			w.offset = r.Int64()
			r.Int64() // the follower's start
			w.most = int64(r.Int32())
			w.partition = s.find(topics[i].name, w.number)
		}
	}
	for deadline := time.Now().Add(wait); ; {
		appended := s.nextAppend()
		size := int64(0)
		for i := range topics {
			for j := range topics[i].partitions {
				size += topics[i].partitions[j].locate(most - size)
			}
		}
		if size > 0 || !s.await(appended, time.Until(deadline)) {
			break
		}
	}
	// throttle, error, session; see the head of the response in Kafka's protocol
	out = kbin.AppendInt32(kbin.AppendInt16(kbin.AppendInt32(out, 0), 0), 0)
	out = kbin.AppendInt32(out, int32(len(topics)))
	var ranges []piece
	for _, t := range topics {
		out = append(kbin.AppendInt16(out, int16(len(t.name))), t.name...)
		out = kbin.AppendInt32(out, int32(len(t.partitions)))
		for i := range t.partitions {
			w := &t.partitions[i]
			out = w.header(out)
			if w.length > 0 {
				ranges = append(ranges, piece{len(out), w.partition.file, w.position, w.length})
			}
		}
	}
	total := int64(len(out) - 4)
	for _, p := range ranges {
		total += p.length
	}
	binary.BigEndian.PutUint32(out, uint32(total))
	return out, send(conn, out, ranges)
}

// locate finds the range, and returns its length.
func (w *wanted) locate(most int64) int64 {
	if w.partition == nil || most <= 0 {
		w.length = 0
		return 0
	}
	w.position, w.length, w.end = w.partition.from(w.offset, min(w.most, most))
	return w.length
}

// header is what stands in front of a partition's range.
func (w *wanted) header(out []byte) []byte {
	code := int16(0)
	if w.partition == nil {
		code = kerr.UnknownTopicOrPartition.Code
	}
	out = kbin.AppendInt16(kbin.AppendInt32(out, w.number), code)
	out = kbin.AppendInt64(kbin.AppendInt64(kbin.AppendInt64(out, w.end), w.end), 0)
	out = kbin.AppendInt32(kbin.AppendInt32(out, -1), -1) // no aborted transactions, no preferred replica
	return kbin.AppendInt32(out, int32(w.length))
}
