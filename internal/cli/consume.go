package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/internal/admin"
)

// consumeFlags are the flags of barnabas consume.
type consumeFlags struct {
	from, until  string
	tail, num    int64
	exit, follow bool
	group        string
	partitions   []int32
	uncommitted  bool
	layout       string
	key, grep    string
}

// Three ways to read, which differ in what is asked of the cluster:
//
//	partitions   Metadata, ListOffsets for the bounds of --from, --until and --exit, then Fetch from each leader;
//	             no group, nothing is committed
//	--tail       the same, in windows before the ends that grow until there are enough records
//	--group      joins as a member; begins at the committed offsets, and commits what was printed
//
// Records go out as they come: in the order of each partition, with none between partitions (--tail sorts by
// timestamp). Transactions that are open or aborted are not seen unless --read-uncommitted is given.
func consumeCommand(c *common) *cobra.Command {
	var flags consumeFlags
	command := &cobra.Command{
		Use:   "consume TOPIC...",
		Short: "Read records",
		Long: `Read records and print their values, one a line.

It follows the topics until it is interrupted; with --exit it ends where the topics ended when it began.
Without --group it joins no group and commits nothing. With --group it begins where the group is (--from
says where it begins without any offset), and what has been printed is committed.`,
		Example: `  barnabas consume orders --tail 10
  barnabas consume orders --from -2h --exit -o json
  barnabas consume orders -f '%p:%o %k=%v\n'`,
		Args:              atLeast(1, "topic"),
		ValidArgsFunction: completeTopics(c),
		RunE: func(command *cobra.Command, topics []string) error {
			return runConsume(command.Context(), c, flags, topics)
		},
	}
	f := command.Flags()
	f.StringVar(&flags.from, "from", "start", "start, end, an offset (negative: before the end) or a time (2026-01-31, @ms, -90m)")
	f.StringVar(&flags.until, "until", "", "stop before this time or offset")
	f.Int64Var(&flags.tail, "tail", 0, "print the last so many records and end (with --follow: go on)")
	f.Int64VarP(&flags.num, "num", "n", 0, "end after so many records")
	f.BoolVarP(&flags.exit, "exit", "e", false, "end where the topics end now")
	f.BoolVar(&flags.follow, "follow", false, "go on behind --tail")
	f.StringVarP(&flags.group, "group", "g", "", "read as a member of this group and commit")
	f.Int32SliceVarP(&flags.partitions, "partition", "p", nil, "read these partitions only")
	f.BoolVar(&flags.uncommitted, "read-uncommitted", false, "read records of open and aborted transactions too")
	f.StringVarP(&flags.layout, "layout", "f", "", "layout of a record, such as '%k %v\\n' (the words of rpk and kcl)")
	f.StringVar(&flags.key, "key", "", "print only records with this key")
	f.StringVar(&flags.grep, "grep", "", "print only records whose value matches this regular expression")
	return command
}

func runConsume(ctx context.Context, c *common, flags consumeFlags, topics []string) error {
	if err := flags.check(); err != nil {
		return err
	}
	out := bufio.NewWriterSize(c.out, 1<<16)
	write, err := flags.writer(c, out)
	if err != nil {
		return err
	}
	keep, err := flags.filter()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	p := &printer{write: write, keep: keep, out: out, most: flags.num}
	if flags.group != "" {
		err = consumeGroup(ctx, c, flags, topics, p)
	} else {
		err = consumePartitions(ctx, c, flags, topics, p)
	}
	return errors.Join(err, out.Flush())
}

func (f *consumeFlags) check() error {
	switch {
	case f.group != "" && (f.tail > 0 || f.until != "" || len(f.partitions) > 0):
		return usageError{errors.New("--group leaves no choice of --partition, --tail or --until")}
	case f.tail > 0 && f.from != "start":
		return usageError{errors.New("--tail and --from exclude each other")}
	case f.tail < 0 || f.num < 0:
		return usageError{errors.New("--tail and --num cannot be negative")}
	case f.follow && (f.exit || f.until != ""):
		return usageError{errors.New("--follow excludes --exit and --until")}
	}
	return nil
}

// printer prints records as they come.
//
// It is used by one goroutine, that of the reading. Records are buffered and flushed whenever none is at hand,
// so that a pipe sees each as soon as it would have to wait for the next.
type printer struct {
	write func(io.Writer, *kgo.Record) error
	keep  func(*kgo.Record) bool
	out   *bufio.Writer
	// most is how many records to print, 0 for all.
	most, printed int64
}

func (p *printer) print(record *kgo.Record) error {
	if !p.keep(record) {
		return nil
	}
	if err := p.write(p.out, record); err != nil {
		return err
	}
	p.printed++
	if p.most > 0 && p.printed == p.most {
		return admin.ErrStop
	}
	return nil
}

// isolation is the option for what is read of transactions.
func (f *consumeFlags) isolation() kgo.Opt {
	if f.uncommitted {
		return kgo.FetchIsolationLevel(kgo.ReadUncommitted())
	}
	return kgo.FetchIsolationLevel(kgo.ReadCommitted())
}

// consumePartitions reads partitions from point to point without any group.
func consumePartitions(ctx context.Context, c *common, flags consumeFlags, names []string, p *printer) error {
	client, err := c.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	ranges, b, err := flags.ranges(ctx, client, names, time.Now())
	if err != nil {
		return err
	}
	if flags.tail > 0 {
		return consumeTail(ctx, c, flags, b, ranges, p)
	}
	return c.read(ctx, flags, ranges, admin.Sink{Each: p.print, Batch: p.out.Flush})
}

// read hands the records of the ranges to the sink.
func (c *common) read(ctx context.Context, flags consumeFlags, ranges admin.Ranges, sink admin.Sink) error {
	reading := admin.NewReading(ranges)
	reader, err := c.connect(append(reading.Options(), flags.isolation())...)
	if err != nil {
		return err
	}
	defer reader.Close()
	return reader.Read(ctx, reading, sink)
}

// consumeGroup reads as a member of a group, with --exit up to where the topics end now.
//
// What is committed has been handed to the writer and flushed before: a record may be printed twice after a
// crash, but none is skipped.
func consumeGroup(ctx context.Context, c *common, flags consumeFlags, names []string, p *printer) error {
	from, err := parsePoint("--from", flags.from, time.Now())
	if err != nil {
		return err
	}
	sink := admin.Sink{Each: p.print, Batch: p.out.Flush}
	options := []kgo.Opt{kgo.ConsumeStartOffset(from.offsetFor()), flags.isolation()}
	// The ends are asked for by a client that is no member: joining starts with the member's first poll.
	asking, err := c.connect()
	if err != nil {
		return err
	}
	defer asking.Close()
	ranges, _, err := flags.ranges(ctx, asking, names, time.Now())
	if err != nil {
		return err
	}
	if !flags.exit {
		client, err := c.connect(append(admin.MemberOptions(flags.group, names), options...)...)
		if err != nil {
			return err
		}
		defer client.Close()
		return client.Consume(ctx, true, sink)
	}
	reading := admin.NewMemberReading(flags.group, names, ranges)
	client, err := c.connect(append(reading.Options(), options...)...)
	if err != nil {
		return err
	}
	defer client.Close()
	return client.ReadAsMember(ctx, reading, sink)
}

// offsetFor is the point for a partition that a group has no offset of.
func (p point) offsetFor() kgo.Offset {
	switch p.kind {
	case pointEnd:
		return kgo.NewOffset().AtEnd()
	case pointOffset:
		if p.offset < 0 {
			return kgo.NewOffset().AtEnd().Relative(p.offset)
		}
		return kgo.NewOffset().At(p.offset)
	case pointTime:
		return kgo.NewOffset().AfterMilli(p.time.UnixMilli())
	}
	return kgo.NewOffset().AtStart()
}

func unknownPartition(topic string, number int32) error {
	return usageError{fmt.Errorf("topic %s has no partition %d", topic, number)}
}
