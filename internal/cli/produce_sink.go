package cli

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

// sinkFlags say how records are written.
type sinkFlags struct {
	partitioner, acks, compression string
	partition                      int32
	linger                         time.Duration
}

func (f *sinkFlags) register(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.partitioner, "partitioner", "key-hash", "key-hash (as Kafka's clients do), round-robin or random")
	flags.Int32VarP(&f.partition, "partition", "p", -1, "write to this partition only")
	flags.StringVar(&f.acks, "acks", "all", "all (or -1), 1 or 0")
	flags.StringVarP(&f.compression, "compression", "z", "none", "none, gzip, snappy, lz4 or zstd")
	flags.DurationVar(&f.linger, "linger", 5*time.Millisecond, "how long a batch waits to fill")
	completeWords(command, "partitioner", "key-hash", "round-robin", "random")
	completeWords(command, "acks", "all", "1", "0")
	completeWords(command, "compression", "none", "gzip", "snappy", "lz4", "zstd")
}

// options are the options of the client that writes.
func (f *sinkFlags) options() ([]kgo.Opt, error) {
	partitioner, err := f.chosenPartitioner()
	if err != nil {
		return nil, err
	}
	acks, err := acksOptions(f.acks)
	if err != nil {
		return nil, err
	}
	codec, err := codecOf(f.compression)
	if err != nil {
		return nil, err
	}
	return append(acks, kgo.RecordPartitioner(partitioner), kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(f.linger)), nil
}

// key-hash must agree with Java's producer to the bit: records of one key that two programs write have to be in
// one partition, or their order is lost.
func (f *sinkFlags) chosenPartitioner() (kgo.Partitioner, error) {
	if f.partition >= 0 {
		number := int(f.partition)
		return kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int {
			return func(*kgo.Record, int) int { return number }
		}), nil
	}
	switch f.partitioner {
	case "key-hash":
		// As Java's producer: murmur2 of the key, and records without one in batches to one partition after
		// another, so that batches fill.
		return kgo.UniformBytesPartitioner(1<<14, false, true, nil), nil
	case "round-robin":
		return kgo.RoundRobinPartitioner(), nil
	case "random":
		return kgo.BasicConsistentPartitioner(func(string) func(*kgo.Record, int) int {
			return func(_ *kgo.Record, n int) int { return rand.IntN(n) }
		}), nil
	}
	return nil, usageError{fmt.Errorf("--partitioner %q is none of key-hash, round-robin, random", f.partitioner)}
}

// acksOptions are the options for who must have a record before it counts as written. Only all makes the
// writing idempotent.
func acksOptions(acks string) ([]kgo.Opt, error) {
	switch acks {
	case "all", "-1":
		return []kgo.Opt{kgo.RequiredAcks(kgo.AllISRAcks())}, nil
	case "1":
		return []kgo.Opt{kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()}, nil
	case "0":
		return []kgo.Opt{kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite()}, nil
	}
	return nil, usageError{fmt.Errorf("--acks %q is none of all, -1, 1, 0", acks)}
}

func codecOf(name string) (kgo.CompressionCodec, error) {
	switch strings.ToLower(name) {
	case "none":
		return kgo.NoCompression(), nil
	case "gzip":
		return kgo.GzipCompression(), nil
	case "snappy":
		return kgo.SnappyCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	}
	return kgo.CompressionCodec{}, usageError{fmt.Errorf("compression %q is none of none, gzip, snappy, lz4, zstd", name)}
}
