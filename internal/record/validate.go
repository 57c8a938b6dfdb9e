package record

import (
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Validate checks that raw is exactly one batch of format 2 that may be appended, with Kafka's rules and
// error codes. It may change raw: the maximum timestamp, the timestamp type and with them the CRC, as the
// topic asks for. Errors carry a *protocol.Error; see [RecordErrorsOf].
func Validate(raw []byte, v Validation) (Validated, error) {
	header, err := ParseHeader(raw)
	if err != nil {
		return Validated{}, err
	}
	if header.Size > len(raw) {
		return Validated{}, ErrShort
	}
	b := Batch(raw[:header.Size:header.Size])
	if !b.ValidCRC() {
		return Validated{}, protocol.Errorf(protocol.CorruptMessage, "CRC of a batch for %s is wrong", v.Partition)
	}
	result := Validated{Batch: b, MaxTimestamp: NoTimestamp, OffsetOfMaxTimestamp: -1, AppendTime: NoTimestamp}
	for r, err := range b.Records(v.Decompressor) {
		if err != nil {
			return Validated{}, err
		}
		if r.Timestamp > result.MaxTimestamp {
			result.MaxTimestamp, result.OffsetOfMaxTimestamp = r.Timestamp, int32(result.Count)
		}
		result.Count++
	}
	return result, nil
}
