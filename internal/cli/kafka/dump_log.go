package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/barnabas-mq/barnabas/internal/log"
	"github.com/barnabas-mq/barnabas/internal/vfs"
)

// dumpLogTool is kafka-dump-log. It reads files and connects to nothing. The work is that of package log; here
// are the flags, and the decoders for the records of the coordinators.
func dumpLogTool() *tool {
	return &tool{
		name: "kafka-dump-log",
		summary: "This tool helps to parse a log file and dump its contents to the console, useful for debugging a " +
			"seemingly corrupt log segment.",
		flags: []flag{
			{names: []string{"print-data-log"}, doc: "print keys and values too"},
			{names: []string{"verify-index-only"}, doc: "check indexes without printing them"},
			{names: []string{"index-sanity-check"}, doc: "only tell whether an index would be rebuilt"},
			{names: []string{"files"}, argument: "files", doc: "the files, with commas"},
			{names: []string{"max-message-size"}, argument: "bytes", kind: integer, doc: "taken, without effect here"},
			{names: []string{"max-bytes"}, argument: "bytes", kind: integer, doc: "how much of a log file to read"},
			{names: []string{"deep-iteration"}, doc: "print the records of batches"},
			{names: []string{"value-decoder-class"}, argument: "class", optional: true, doc: "how values are read: " +
				"Kafka's StringDecoder, IntegerDecoder, LongDecoder or DefaultDecoder"},
			{names: []string{"key-decoder-class"}, argument: "class", optional: true, doc: "how keys are read"},
			{names: []string{"offsets-decoder"}, doc: "read records of __consumer_offsets"},
			{names: []string{"transaction-log-decoder"}, doc: "read records of __transaction_state"},
			{names: []string{"cluster-metadata-decoder"}, doc: "not there yet"},
			{names: []string{"remote-log-metadata-decoder"}, doc: "not there yet"},
			{names: []string{"share-group-state-decoder"}, doc: "not there yet"},
			{names: []string{"skip-record-metadata"}, doc: "print nothing of records but keys and values"},
		},
		run: runDumpLog,
	}
}

// decoders are the flags that say what records are.
var decoders = [...]string{
	"offsets-decoder", "transaction-log-decoder", "cluster-metadata-decoder", "remote-log-metadata-decoder",
	"share-group-state-decoder", "value-decoder-class", "key-decoder-class",
}

// Files go one after another. What is wrong with indexes is told at the end, on standard error; a file that is
// not there ends the run.
func runDumpLog(_ context.Context, t *call) error {
	if err := t.require("files"); err != nil {
		return err
	}
	decode, err := t.recordDecoder()
	if err != nil {
		return err
	}
	var faults bytes.Buffer
	data := t.has("print-data-log") || t.count(decoders[:]...) > 0
	options := log.DumpOptions{
		DeepIteration: t.has("deep-iteration") || data, PrintDataLog: data, SkipRecordMetadata: t.has("skip-record-metadata"),
		IndexSanityCheck: t.has("index-sanity-check"), VerifyIndexOnly: t.has("verify-index-only"),
		MaxBytes: t.number("max-bytes"), Decode: decode, Errors: &faults,
	}
	if options.MaxBytes == math.MaxInt32 {
		options.MaxBytes = 0
	}
	for _, file := range strings.Split(t.value("files"), ",") {
		if err = log.Dump(t.Out, vfs.OS(), file, options); err != nil {
			break
		}
	}
	fmt.Fprint(t.Err, faults.String())
	if errors.Is(err, fs.ErrNotExist) {
		return sentencef("%v", err)
	}
	return err
}

// recordDecoder is what makes text of keys and values; nil for plain text.
func (t *call) recordDecoder() (func(key, value []byte) (k, v *string), error) {
	switch {
	case t.has("offsets-decoder"):
		return decodeOffsets, nil
	case t.has("transaction-log-decoder"):
		return decodeTransactions, nil
	case t.count("cluster-metadata-decoder", "remote-log-metadata-decoder", "share-group-state-decoder") > 0:
		return nil, sentence("Only the decoders of __consumer_offsets and __transaction_state are there yet")
	}
	key, err := decoderOf(t.value("key-decoder-class"))
	if err != nil {
		return nil, err
	}
	value, err := decoderOf(t.value("value-decoder-class"))
	if err != nil || key == nil && value == nil {
		return nil, err
	}
	return func(k, v []byte) (*string, *string) { return decoded(key, k), decoded(value, v) }, nil
}

// decoderOf is the decoder of a Java class; nil for plain text.
func decoderOf(class string) (deserializer, error) {
	switch simpleName(class) {
	case "", "StringDecoder":
		return nil, nil
	case "IntegerDecoder":
		return deserializerOf("IntegerDeserializer")
	case "LongDecoder":
		return deserializerOf("LongDeserializer")
	}
	return nil, sentencef("There is no decoder %s here: only Kafka's own are", class)
}

// decoded is a field as text, nil for null; what does not decode says why.
func decoded(d deserializer, b []byte) *string {
	if b == nil {
		return nil
	}
	text := string(b)
	if d != nil {
		var err error
		if text, err = d(b); err != nil {
			text = err.Error()
		}
	}
	return &text
}
