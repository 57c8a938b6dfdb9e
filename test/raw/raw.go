// Package raw is a client that sends the same request again and again and allocates nothing for it, so that
// what is counted is the broker's.
package raw

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/wire"
)

// lengthSize is the length in front of every frame.
const lengthSize = 4

// Where a batch has its CRC, over all that is behind it, and its first sequence.
const (
	crcAt      = 17
	sequenceAt = 53
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Conn is a connection to a broker with the one request that it sends. One goroutine uses it at a time.
//
// The frame is made once by Prepare. A fetch session changes four bytes of it with every request, its epoch:
// Session finds them by a value that it has put there. An idempotent producer changes the sequence of each batch, and
// with it the CRC.
//
//	length int32 | key int16 | version int16 | correlation id int32 (0) | client id | body
type Conn struct {
	socket       net.Conn
	key, version int16
	frame        []byte   // with its length
	epoch        []byte   // where frame has the epoch of a fetch session; nil without one
	next         uint32   // the epoch that comes next
	offset       []byte   // where frame has the offset to fetch from; nil for one that stays
	at           uint64   // the offset that comes next
	sequenced    [][]byte // the batches in frame whose sequence goes on; none of who is not idempotent
	sequence     uint32   // the sequence that comes next
	answer       []byte
}

// Dial connects; answers have at most answerMax bytes.
func Dial(address string, answerMax int) (*Conn, error) {
	socket, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Conn{socket: socket, answer: make([]byte, answerMax)}, nil
}

// Address is the broker's.
func (c *Conn) Address() string { return c.socket.RemoteAddr().String() }

// Close ends the connection.
func (c *Conn) Close() error { return c.socket.Close() }

// Prepare makes request the one that Do sends, in a version.
func (c *Conn) Prepare(request kmsg.Request, version int16) {
	request.SetVersion(version)
	c.key, c.version, c.epoch, c.offset, c.sequenced = request.Key(), version, nil, nil, nil
	c.frame = kmsg.NewRequestFormatter(kmsg.FormatterClientID("raw")).AppendRequest(nil, request, 0)
}

// Do sends the request and returns the body of its answer, which the next call writes over.
func (c *Conn) Do() ([]byte, error) {
	if err := c.Send(); err != nil {
		return nil, err
	}
	return c.Receive()
}

// Send is the first half of Do.
func (c *Conn) Send() error {
	if c.epoch != nil {
		binary.BigEndian.PutUint32(c.epoch, c.next)
		c.next++
	}
	if c.offset != nil {
		binary.BigEndian.PutUint64(c.offset, c.at)
		c.at++
	}
	for _, batch := range c.sequenced {
		binary.BigEndian.PutUint32(batch[sequenceAt:], c.sequence)
		binary.BigEndian.PutUint32(batch[crcAt:], crc32.Checksum(batch[crcAt+4:], castagnoli))
	}
	c.sequence++
	_, err := c.socket.Write(c.frame)
	return err
}

// Receive is the second half of Do.
func (c *Conn) Receive() ([]byte, error) {
	if _, err := io.ReadFull(c.socket, c.answer[:lengthSize]); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(c.answer))
	if size > len(c.answer) {
		return nil, fmt.Errorf("an answer of %d bytes", size)
	}
	_, err := io.ReadFull(c.socket, c.answer[:size])
	return c.answer[wire.ResponseHeaderSize(c.key, c.version):size], err
}

// Decode is Do for a request whose answer matters.
func (c *Conn) Decode(response kmsg.Response) error {
	body, err := c.Do()
	if err != nil {
		return err
	}
	response.SetVersion(c.version)
	return response.ReadFrom(body)
}

// Session opens a fetch session with the request; from then on Do sends it as the session's next fetch.
func (c *Conn) Session(request *kmsg.FetchRequest, version int16) error {
	request.SessionID, request.SessionEpoch = 0, 0
	c.Prepare(request, version)
	return c.open(request, version)
}

// Tail is Session for a consumer at the end of one partition that gets one record with each answer: each fetch is from
// the next offset, beginning with the one that request has.
func (c *Conn) Tail(request *kmsg.FetchRequest, version int16) error {
	from := &request.Topics[0].Partitions[0].FetchOffset
	first := *from
	if err := c.Session(request, version); err != nil {
		return err
	}
	epoch := c.next
	request.MaxWaitMillis = int32(time.Minute.Milliseconds()) // however late the record is, its answer has it
	*from = 0x5b5b5b5b5b5b5b5b
	c.Prepare(request, version)
	c.mark(request, epoch)
	mark := binary.BigEndian.AppendUint64(nil, uint64(*from))
	at := bytes.Index(c.frame, mark)
	c.offset, c.at = c.frame[at:at+8], uint64(first)
	return nil
}

// Produce is Prepare for a request whose batches have one record each. Those of an idempotent producer have the next
// sequence each time that they are sent, from 0 on.
func (c *Conn) Produce(request *kmsg.ProduceRequest, version int16) {
	c.Prepare(request, version)
	c.sequence = 0
	rest := c.frame
	for _, topic := range request.Topics {
		for _, partition := range topic.Partitions {
			size := len(partition.Records)
			rest = rest[bytes.Index(rest, partition.Records):]
			if record.Batch(rest[:size]).BaseSequence() >= 0 {
				c.sequenced = append(c.sequenced, rest[:size])
			}
			rest = rest[size:]
		}
	}
}

// ProducerID asks for the id of an idempotent producer, in epoch 0.
func (c *Conn) ProducerID() (protocol.ProducerID, error) {
	request := kmsg.NewPtrInitProducerIDRequest()
	request.ProducerID, request.ProducerEpoch = -1, -1
	c.Prepare(request, 4)
	var response kmsg.InitProducerIDResponse
	if err := c.Decode(&response); err != nil {
		return 0, err
	}
	if response.ErrorCode != 0 {
		return 0, fmt.Errorf("producer id: error %d", response.ErrorCode)
	}
	return protocol.ProducerID(response.ProducerID), nil
}

// open begins the session of the prepared request.
func (c *Conn) open(request *kmsg.FetchRequest, version int16) error {
	var opened kmsg.FetchResponse
	if err := c.Decode(&opened); err != nil {
		return err
	}
	if opened.SessionID == 0 {
		return errors.New("the broker opened no session")
	}
	request.SessionID, request.SessionEpoch = opened.SessionID, 0x5a5a5a5a
	c.Prepare(request, version)
	c.mark(request, 1)
	return nil
}

// mark finds where the prepared frame has the session's epoch, of which next comes next.
func (c *Conn) mark(request *kmsg.FetchRequest, next uint32) {
	mark := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(request.SessionID)), uint32(request.SessionEpoch))
	at := bytes.Index(c.frame, mark) + len(mark)
	c.epoch, c.next = c.frame[at-4:at], next
}

// Topic names a topic for all versions of a request.
type Topic struct {
	// Name and ID name it; versions of requests use one or the other.
	Name string
	ID   [16]byte
	// Partitions are those from 0 to Partitions-1.
	Partitions int32
}

// Create makes a topic with replicas on one broker.
func (c *Conn) Create(name string, partitions int32) (Topic, error) {
	request := kmsg.NewPtrCreateTopicsRequest()
	request.TimeoutMillis = int32(time.Minute.Milliseconds())
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
	request.Topics = append(request.Topics, topic)
	c.Prepare(request, 7)
	var response kmsg.CreateTopicsResponse
	if err := c.Decode(&response); err != nil {
		return Topic{}, err
	}
	if code := response.Topics[0].ErrorCode; code != 0 {
		return Topic{}, fmt.Errorf("create topic %s: error %d", name, code)
	}
	return Topic{Name: name, ID: response.Topics[0].TopicID, Partitions: partitions}, nil
}

// Produce is a request with acks=all and a batch of one record for each partition, whose value is size bytes of text;
// options say whose batches they are and how they are compressed.
func Produce(to Topic, size int, options record.BuilderOptions) *kmsg.ProduceRequest {
	request := kmsg.NewPtrProduceRequest()
	request.Acks = -1
	topic := kmsg.NewProduceRequestTopic()
	topic.Topic, topic.TopicID = to.Name, to.ID
	for number := range to.Partitions {
		b := record.NewBuilder(options)
		b.Append(time.Now().UnixMilli(), nil, text(size))
		partition := kmsg.NewProduceRequestTopicPartition()
		partition.Partition, partition.Records = number, b.Build()
		topic.Partitions = append(topic.Partitions, partition)
	}
	request.Topics = append(request.Topics, topic)
	return request
}

// text is something that can be compressed, as most records can.
func text(size int) []byte {
	var b []byte
	for i := 0; len(b) < size; i++ {
		b = append(strconv.AppendInt(b, int64(i), 10), ' ')
	}
	return b[:size]
}

// Fetch is a request without a session that reads up to bytes from each partition, from its first offset on.
func Fetch(from Topic, bytes int32) *kmsg.FetchRequest {
	request := kmsg.NewPtrFetchRequest()
	request.MaxWaitMillis, request.MinBytes, request.MaxBytes, request.SessionEpoch = 500, 1, bytes*from.Partitions, -1
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = from.Name, from.ID
	for number := range from.Partitions {
		partition := kmsg.NewFetchRequestTopicPartition()
		partition.Partition, partition.PartitionMaxBytes, partition.CurrentLeaderEpoch = number, bytes, -1
		topic.Partitions = append(topic.Partitions, partition)
	}
	request.Topics = append(request.Topics, topic)
	return request
}
