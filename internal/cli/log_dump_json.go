package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/barnabas-mq/barnabas/internal/record"
)

// dumpedBatch is a batch, or a message of an older format, as a line of JSON.
//
// position and size are in bytes in the file, offsets those of the log, -1 stands for no producer, no sequence
// and no leader epoch, timestamps are ms since 1970. valid_crc covers what lies behind the CRC: the base
// offset, the length and the leader epoch stand before it, so that a change of these is not seen.
type dumpedBatch struct {
	File          string         `json:"file"`
	Position      int64          `json:"position"`
	Size          int            `json:"size"`
	BaseOffset    int64          `json:"base_offset"`
	LastOffset    int64          `json:"last_offset"`
	Magic         int8           `json:"magic"`
	Codec         string         `json:"codec"`
	LeaderEpoch   int32          `json:"leader_epoch"`
	ProducerID    int64          `json:"producer_id"`
	ProducerEpoch int16          `json:"producer_epoch"`
	BaseSequence  int32          `json:"base_sequence"`
	Transactional bool           `json:"transactional"`
	Control       bool           `json:"control"`
	MaxTimestamp  int64          `json:"max_timestamp"`
	ValidCRC      bool           `json:"valid_crc"`
	Records       []dumpedRecord `json:"records,omitempty"`
	Error         string         `json:"error,omitempty"`
}

// dumpedRecord is a record of a dumpedBatch.
type dumpedRecord struct {
	Offset      int64        `json:"offset"`
	Timestamp   int64        `json:"timestamp"`
	Key         *string      `json:"key"`
	KeyBase64   []byte       `json:"key_base64,omitempty"`
	Value       *string      `json:"value"`
	ValueBase64 []byte       `json:"value_base64,omitempty"`
	Headers     []jsonHeader `json:"headers,omitempty"`
}

// dumpJSON prints the batches of a log as lines of JSON.
func dumpJSON(w io.Writer, path string, records bool) error {
	if filepath.Ext(path) != ".log" {
		return usageError{fmt.Errorf("%s: only logs are printed as JSON", path)}
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<16)
	out := bufio.NewWriter(w)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	var d record.Decompressor
	for position := int64(0); ; {
		raw, err := nextEntry(in)
		if errors.Is(err, io.EOF) {
			return out.Flush()
		} else if err != nil {
			return errors.Join(fmt.Errorf("%s: at position %d: %w", path, position, err), out.Flush())
		}
		for e, err := range record.Entries(raw) {
			if err != nil {
				return errors.Join(fmt.Errorf("%s: at position %d: %w", path, position, err), out.Flush())
			}
			if err := encoder.Encode(dumpBatch(path, position, e, &d, records)); err != nil {
				return err
			}
		}
		position += int64(len(raw))
	}
}

// nextEntry reads one batch or message whole; io.EOF behind the last.
//
// A batch is read whole, of whatever size its header claims: the file is given by the user, not by the network.
func nextEntry(in *bufio.Reader) ([]byte, error) {
	head, err := in.Peek(record.HeaderSize)
	if len(head) == 0 {
		return nil, err
	}
	h, err := record.ParseHeader(head)
	if err != nil {
		return nil, err
	}
	raw := make([]byte, h.Size)
	if _, err := io.ReadFull(in, raw); err != nil {
		return nil, fmt.Errorf("the file ends within a batch: %w", io.ErrUnexpectedEOF)
	}
	return raw, nil
}

func dumpBatch(path string, position int64, e record.Entry, d *record.Decompressor, records bool) dumpedBatch {
	b := dumpedBatch{
		File: path, Position: position, Size: e.Size, BaseOffset: int64(e.BaseOffset), LastOffset: int64(e.LastOffset),
		Magic: e.Magic, Codec: e.Attributes.Codec().String(), LeaderEpoch: int32(e.LeaderEpoch),
		ProducerID: int64(e.ProducerID), ProducerEpoch: int16(e.ProducerEpoch), BaseSequence: e.BaseSequence,
		Transactional: e.Attributes.Transactional(), Control: e.Attributes.Control(), MaxTimestamp: e.MaxTimestamp, ValidCRC: e.ValidCRC(),
	}
	if !records {
		return b
	}
	for r, err := range e.Records(d) {
		if err != nil {
			b.Error = err.Error()
			break
		}
		one := dumpedRecord{Offset: int64(r.Offset), Timestamp: r.Timestamp}
		one.Key, one.KeyBase64 = split(r.Key)
		one.Value, one.ValueBase64 = split(r.Value)
		for key, value := range r.Headers.All() {
			h := jsonHeader{Key: string(key)}
			h.Value, h.ValueBase64 = split(value)
			one.Headers = append(one.Headers, h)
		}
		b.Records = append(b.Records, one)
	}
	return b
}
