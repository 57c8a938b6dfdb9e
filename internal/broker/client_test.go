package broker_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
)

// conn is a connection that sends what it is told, right or wrong.
type conn struct {
	net.Conn
	t           testing.TB
	reader      *bufio.Reader
	correlation int32
}

func (r *running) dial() *conn {
	r.t.Helper()
	dial := func() (net.Conn, error) { return (&net.Dialer{Timeout: patience}).Dial("tcp", r.Addresses()[0]) }
	if r.site.network != nil {
		dial = r.site.network.dial
	}
	c, err := dial()
	if err != nil {
		r.t.Fatal(err)
	}
	return newConn(r.t, c)
}

func newConn(t testing.TB, c net.Conn) *conn {
	t.Cleanup(func() { c.Close() })
	return &conn{Conn: c, t: t, reader: bufio.NewReader(c)}
}

// frame is a request with its length and header, of any key and version.
func frame(key, version int16, correlation int32, flexible bool, body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(correlation))
	b = binary.BigEndian.AppendUint16(b, 4)
	b = append(b, "test"...)
	if flexible {
		b = append(b, 0)
	}
	b = append(b, body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// errClosed is a connection that the broker ended.
var errClosed = errors.New("the connection was closed")

// exchange sends bytes and reads the next answer, without its length.
func (c *conn) exchange(b []byte) ([]byte, error) {
	if len(b) > 0 {
		if _, err := c.Write(b); err != nil {
			return nil, errClosed
		}
	}
	return c.next()
}

// next reads an answer, without its length.
func (c *conn) next() ([]byte, error) {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	var size [4]byte
	if _, err := io.ReadFull(c.reader, size[:]); err != nil {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			c.t.Fatal("the broker neither answers nor closes the connection")
		}
		return nil, errClosed
	}
	answer := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c.reader, answer); err != nil {
		return nil, errClosed
	}
	return answer, nil
}

// send writes a request without waiting.
func (c *conn) send(q kmsg.Request) {
	c.t.Helper()
	c.correlation++
	if _, err := c.Write(frame(q.Key(), q.GetVersion(), c.correlation, q.IsFlexible(), q.AppendTo(nil))); err != nil {
		c.t.Fatal(err)
	}
}

// receive reads the answer to q.
func (c *conn) receive(q kmsg.Request) (kmsg.Response, error) {
	answer, err := c.next()
	if err != nil {
		return nil, err
	}
	response := q.ResponseKind()
	answer = answer[4:]
	if response.IsFlexible() && q.Key() != int16(kmsg.ApiVersions) {
		answer = answer[1:]
	}
	return response, response.ReadFrom(answer)
}

// request sends a request and reads its answer.
func (c *conn) request(q kmsg.Request) (kmsg.Response, error) {
	c.correlation++
	if _, err := c.Write(frame(q.Key(), q.GetVersion(), c.correlation, q.IsFlexible(), q.AppendTo(nil))); err != nil {
		return nil, errClosed
	}
	return c.receive(q)
}

// ask is request for those that must be answered.
func ask[R kmsg.Response](c *conn, q kmsg.Request) R {
	c.t.Helper()
	response, err := c.request(q)
	if err != nil {
		c.t.Fatalf("%s %d: %v", kmsg.NameForKey(q.Key()), q.GetVersion(), err)
	}
	return response.(R)
}

// alive fails the test where the connection does not answer any more.
func (c *conn) alive() {
	c.t.Helper()
	ask[*kmsg.ApiVersionsResponse](c, &kmsg.ApiVersionsRequest{})
}

// closed fails the test where the broker keeps the connection open, or answers.
func (c *conn) closed(what string) {
	c.t.Helper()
	if answer, err := c.next(); err == nil {
		c.t.Errorf("%s: answered with %d bytes %x, want a closed connection", what, len(answer), answer[:min(len(answer), 20)])
	}
}

// create makes a topic, with properties as pairs of key and value.
func (c *conn) create(topic string, partitions int32, properties ...string) protocol.TopicID {
	c.t.Helper()
	q := kmsg.NewPtrCreateTopicsRequest()
	q.Version, q.TimeoutMillis = 7, int32(patience.Milliseconds())
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic, partitions, 1
	for i := 0; i < len(properties); i += 2 {
		t.Configs = append(t.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: properties[i], Value: &properties[i+1]})
	}
	q.Topics = append(q.Topics, t)
	answer := ask[*kmsg.CreateTopicsResponse](c, q).Topics[0]
	if answer.ErrorCode != 0 {
		c.t.Fatalf("creating %s: %v", topic, protocol.Code(answer.ErrorCode))
	}
	return answer.TopicID
}

// batch is a batch of records with the given values, all at one time.
func batch(o record.BuilderOptions, values ...string) []byte {
	b := record.NewBuilder(o)
	for _, v := range values {
		b.Append(time.Now().UnixMilli(), []byte("key"), []byte(v))
	}
	return b.Build()
}

// produceRequest writes records to one partition.
func produceRequest(topic string, partition int32, acks int16, records []byte) *kmsg.ProduceRequest {
	q := kmsg.NewPtrProduceRequest()
	q.Version, q.Acks, q.TimeoutMillis = 9, acks, int32(patience.Milliseconds())
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, records
	t := kmsg.NewProduceRequestTopic()
	t.Topic, t.Partitions = topic, []kmsg.ProduceRequestTopicPartition{p}
	q.Topics = []kmsg.ProduceRequestTopic{t}
	return q
}

// produce writes records to one partition and returns the answer.
func (c *conn) produce(topic string, partition int32, records []byte) kmsg.ProduceResponseTopicPartition {
	c.t.Helper()
	return ask[*kmsg.ProduceResponse](c, produceRequest(topic, partition, -1, records)).Topics[0].Partitions[0]
}

// fetchRequest reads one partition without waiting.
func fetchRequest(topic string, partition int32, offset int64) *kmsg.FetchRequest {
	q := kmsg.NewPtrFetchRequest()
	q.Version, q.SessionEpoch, q.ReplicaID, q.MaxBytes = 12, -1, -1, 100<<20
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, 100<<20
	p.CurrentLeaderEpoch, p.LastFetchedEpoch, p.LogStartOffset = -1, -1, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.Partitions = topic, []kmsg.FetchRequestTopicPartition{p}
	q.Topics = []kmsg.FetchRequestTopic{t}
	return q
}

// fetch reads one partition without waiting.
func (c *conn) fetch(topic string, partition int32, offset int64) kmsg.FetchResponseTopicPartition {
	c.t.Helper()
	return ask[*kmsg.FetchResponse](c, fetchRequest(topic, partition, offset)).Topics[0].Partitions[0]
}

// consumed is a record that was read back.
type consumed struct {
	offset     int64
	key, value string
}

// readAll reads a partition from its start to its end.
func (c *conn) readAll(topic string, partition int32) []consumed {
	c.t.Helper()
	var all []consumed
	next := c.offset(topic, partition, -2)
	for {
		answer := c.fetch(topic, partition, next)
		if answer.ErrorCode != 0 {
			c.t.Fatalf("reading %s-%d at %d: %v", topic, partition, next, protocol.Code(answer.ErrorCode))
		}
		if len(answer.RecordBatches) == 0 {
			return all
		}
		for entry, err := range record.Entries(answer.RecordBatches) {
			if err != nil {
				c.t.Fatal(err)
			}
			for r, err := range entry.Records(new(record.Decompressor)) {
				if err != nil {
					c.t.Fatal(err)
				}
				if int64(r.Offset) >= next {
					all = append(all, consumed{int64(r.Offset), string(r.Key), string(r.Value)})
				}
			}
			next = int64(entry.NextOffset())
		}
	}
}

// offset looks an offset up: by time, -1 for the end, -2 for the start.
func (c *conn) offset(topic string, partition int32, timestamp int64) int64 {
	c.t.Helper()
	answer := c.listOffset(topic, partition, timestamp)
	if answer.ErrorCode != 0 {
		c.t.Fatalf("offset of %s-%d for %d: %v", topic, partition, timestamp, protocol.Code(answer.ErrorCode))
	}
	return answer.Offset
}

func (c *conn) listOffset(topic string, partition int32, timestamp int64) kmsg.ListOffsetsResponseTopicPartition {
	c.t.Helper()
	q := kmsg.NewPtrListOffsetsRequest()
	q.Version, q.ReplicaID = 7, -1
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.CurrentLeaderEpoch, p.Timestamp = partition, -1, timestamp
	q.Topics = []kmsg.ListOffsetsRequestTopic{{Topic: topic, Partitions: []kmsg.ListOffsetsRequestTopicPartition{p}}}
	return ask[*kmsg.ListOffsetsResponse](c, q).Topics[0].Partitions[0]
}

// commitRequest commits one offset for a group without members.
func commitRequest(group, topic string, partition int32, offset int64) *kmsg.OffsetCommitRequest {
	q := kmsg.NewPtrOffsetCommitRequest()
	q.Version, q.Group, q.Generation = 8, group, -1
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset = partition, offset
	q.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}}}
	return q
}

// commit commits one offset for a group without members; it asks again while the group is being loaded.
func (c *conn) commit(group, topic string, partition int32, offset int64) protocol.Code {
	c.t.Helper()
	for {
		code := ask[*kmsg.OffsetCommitResponse](c, commitRequest(group, topic, partition, offset)).Topics[0].Partitions[0].ErrorCode
		if protocol.Code(code) != protocol.CoordinatorLoadInProgress {
			return protocol.Code(code)
		}
	}
}

// committed is the offset that a group has committed, or -1; it asks again while the group is being loaded.
func (c *conn) committed(group, topic string, partition int32) int64 {
	c.t.Helper()
	q := kmsg.NewPtrOffsetFetchRequest()
	q.Version, q.Group = 7, group
	q.Topics = []kmsg.OffsetFetchRequestTopic{{Topic: topic, Partitions: []int32{partition}}}
	for {
		answer := ask[*kmsg.OffsetFetchResponse](c, q)
		switch protocol.Code(answer.ErrorCode) {
		case protocol.None:
			return answer.Topics[0].Partitions[0].Offset
		case protocol.CoordinatorLoadInProgress, protocol.NotCoordinator:
			continue
		}
		c.t.Fatalf("offsets of %s: %v", group, protocol.Code(answer.ErrorCode))
	}
}

// warm makes a group's coordinator: creates its topic, and waits until it is loaded.
func (c *conn) warm(group string) {
	c.t.Helper()
	q := kmsg.NewPtrFindCoordinatorRequest()
	q.Version, q.CoordinatorKey = 2, group
	for {
		switch code := protocol.Code(ask[*kmsg.FindCoordinatorResponse](c, q).ErrorCode); code {
		case protocol.None:
			c.committed(group, "none", 0)
			return
		case protocol.CoordinatorNotAvailable:
		default:
			c.t.Fatalf("coordinator of %s: %v", group, code)
		}
	}
}

// alterRequest sets one property of a topic.
func alterRequest(topic, key, value string) *kmsg.IncrementalAlterConfigsRequest {
	q := kmsg.NewPtrIncrementalAlterConfigsRequest()
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	r.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: key, Value: &value}}
	q.Resources = []kmsg.IncrementalAlterConfigsRequestResource{r}
	return q
}

// alter sets one property of a topic.
func (c *conn) alter(topic, key, value string) protocol.Code {
	c.t.Helper()
	return protocol.Code(ask[*kmsg.IncrementalAlterConfigsResponse](c, alterRequest(topic, key, value)).Resources[0].ErrorCode)
}

// property is the value of one property of a topic.
func (c *conn) property(topic, key string) string {
	c.t.Helper()
	q := kmsg.NewPtrDescribeConfigsRequest()
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeTopic, topic, []string{key}
	q.Resources = []kmsg.DescribeConfigsRequestResource{r}
	answer := ask[*kmsg.DescribeConfigsResponse](c, q).Resources[0]
	if answer.ErrorCode != 0 || len(answer.Configs) != 1 {
		c.t.Fatalf("%s of %s: %v, %d values", key, topic, protocol.Code(answer.ErrorCode), len(answer.Configs))
	}
	return *answer.Configs[0].Value
}

// newProducer is the id of a new idempotent producer.
func (c *conn) newProducer() protocol.ProducerID {
	c.t.Helper()
	answer := ask[*kmsg.InitProducerIDResponse](c, &kmsg.InitProducerIDRequest{Version: 1, TransactionTimeoutMillis: 1000})
	if answer.ErrorCode != 0 {
		c.t.Fatal(protocol.Code(answer.ErrorCode))
	}
	return protocol.ProducerID(answer.ProducerID)
}

// tryCreate is create for topics that may not be made.
func (c *conn) tryCreate(topic string) protocol.Code {
	c.t.Helper()
	q := kmsg.NewPtrCreateTopicsRequest()
	q.Version, q.TimeoutMillis = 7, int32(patience.Milliseconds())
	q.Topics = []kmsg.CreateTopicsRequestTopic{{Topic: topic, NumPartitions: 1, ReplicationFactor: 1}}
	return protocol.Code(ask[*kmsg.CreateTopicsResponse](c, q).Topics[0].ErrorCode)
}

// eventually tries until there is no error, a second apart. It is for bubbles.
func (c *conn) eventually(what string, try func() protocol.Code) {
	c.t.Helper()
	code := try()
	for range 30 {
		if code == protocol.None {
			return
		}
		<-time.After(time.Second)
		code = try()
	}
	c.t.Errorf("%s: still %v", what, code)
}

// deleteTopic deletes a topic.
func (c *conn) deleteTopic(topic string) protocol.Code {
	c.t.Helper()
	q := kmsg.NewPtrDeleteTopicsRequest()
	q.Version, q.TimeoutMillis, q.TopicNames = 5, int32(patience.Milliseconds()), []string{topic}
	return protocol.Code(ask[*kmsg.DeleteTopicsResponse](c, q).Topics[0].ErrorCode)
}

// deleteRecords deletes the records of a partition below an offset.
func (c *conn) deleteRecords(topic string, partition int32, offset int64) protocol.Code {
	c.t.Helper()
	q := kmsg.NewPtrDeleteRecordsRequest()
	q.TimeoutMillis = int32(patience.Milliseconds())
	q.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: partition, Offset: offset}}}}
	return protocol.Code(ask[*kmsg.DeleteRecordsResponse](c, q).Topics[0].Partitions[0].ErrorCode)
}
