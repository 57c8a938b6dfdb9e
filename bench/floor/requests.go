package floor

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The keys that are answered, with one version each, none of them a flexible one.
const (
	produceKey, produceVersion = 0, 8
	fetchKey, fetchVersion     = 1, 11
	versionsKey                = 18
)

// versions are those of the requests that kmsg decodes.
var versions = map[int16]int16{2: 5, 3: 8, 19: 4, 20: 3, 22: 1, versionsKey: 0}

// answer answers one request:
//
//	key int16 | version int16 | correlation id int32 | client id string | body
func (s *Server) answer(conn *net.TCPConn, frame, out []byte) ([]byte, error) {
	r := kbin.Reader{Src: frame}
	key, version, correlation := r.Int16(), r.Int16(), r.Int32()
	r.Span(int(max(r.Int16(), 0)))
	out = kbin.AppendInt32(append(out, 0, 0, 0, 0), correlation)
	switch {
	case !r.Ok():
		return out, fmt.Errorf("request %d is cut off", key)
	case key == fetchKey:
		return s.fetch(conn, &r, out)
	case key == produceKey:
		var answered bool
		if out, answered = s.produce(&r, out); !answered {
			return out, nil
		}
	default:
		body, err := s.occasional(key, version, r.Src)
		if err != nil {
			return out, err
		}
		out = append(out, body...)
	}
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	_, err := conn.Write(out)
	return out, err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// produce appends the batches of a request, and the answer to out; with acks=0 there is none.
func (s *Server) produce(r *kbin.Reader, out []byte) (_ []byte, answered bool) {
	r.Span(int(max(r.Int16(), 0))) // transactional id
	acks := r.Int16()
	r.Int32() // timeout
	topics := r.Int32()
	out = kbin.AppendInt32(out, topics)
	for range topics {
		name := r.Span(int(r.Int16()))
		out = append(kbin.AppendInt16(out, int16(len(name))), name...)
		partitions := r.Int32()
		out = kbin.AppendInt32(out, partitions)
		for range partitions {
			number := r.Int32()
			batch := r.Span(int(r.Int32()))
			base, code := s.append(s.find(name, number), batch)
			out = kbin.AppendInt16(kbin.AppendInt32(out, number), code)
			out = kbin.AppendInt64(kbin.AppendInt64(kbin.AppendInt64(out, base), -1), 0)
			out = kbin.AppendInt16(kbin.AppendInt32(out, 0), -1) // no errors of records, no message
		}
	}
	return kbin.AppendInt32(out, 0), acks != 0
}

// Where a batch has what.
const (
	crcAt, crcFrom = 17, 21
	lastDeltaAt    = 23
	batchHeader    = 61
)

// append gives a batch its offset and writes it at the end of the file.
func (s *Server) append(p *partition, batch []byte) (base int64, code int16) {
	if p == nil {
		return -1, kerr.UnknownTopicOrPartition.Code
	}
	if len(batch) < batchHeader {
		return -1, kerr.CorruptMessage.Code
	}
	records := int64(binary.BigEndian.Uint32(batch[lastDeltaAt:])) + 1
	if s.dir != "" && crc32.Checksum(batch[crcFrom:], castagnoli) != binary.BigEndian.Uint32(batch[crcAt:]) {
		return -1, kerr.CorruptMessage.Code
	}
	p.mu.Lock()
	base = p.end
	p.end += records
	if p.file != nil {
		binary.BigEndian.PutUint64(batch, uint64(base))
		if _, err := p.file.WriteAt(batch, p.size); err != nil {
			p.mu.Unlock()
			return -1, kerr.KafkaStorageError.Code
		}
		p.batches = append(p.batches, placed{base, p.size})
		p.size += int64(len(batch))
	}
	p.mu.Unlock()
	s.wake()
	return base, 0
}

// occasional answers the requests that come once in a while, decoded by kmsg.
func (s *Server) occasional(key, version int16, body []byte) ([]byte, error) {
	if key == versionsKey && version != 0 {
		return s.supported(kerr.UnsupportedVersion.Code), nil // the client asks again with version 0
	}
	if known, ok := versions[key]; !ok || known != version {
		return nil, fmt.Errorf("request %d of version %d", key, version)
	}
	request := kmsg.RequestForKey(key)
	request.SetVersion(version)
	if err := request.ReadFrom(body); err != nil {
		return nil, err
	}
	response := request.ResponseKind()
	response.SetVersion(version)
	switch q := request.(type) {
	case *kmsg.ApiVersionsRequest:
		return s.supported(0), nil
	case *kmsg.MetadataRequest:
		s.metadata(q, response.(*kmsg.MetadataResponse))
	case *kmsg.CreateTopicsRequest:
		for _, topic := range q.Topics {
			if err := s.create(topic.Topic, int(max(topic.NumPartitions, 1))); err != nil {
				return nil, err
			}
			made := kmsg.NewCreateTopicsResponseTopic()
			made.Topic = topic.Topic
			response.(*kmsg.CreateTopicsResponse).Topics = append(response.(*kmsg.CreateTopicsResponse).Topics, made)
		}
	case *kmsg.DeleteTopicsRequest:
		for _, name := range q.TopicNames {
			s.remove(name)
			gone := kmsg.NewDeleteTopicsResponseTopic()
			gone.Topic = &name
			response.(*kmsg.DeleteTopicsResponse).Topics = append(response.(*kmsg.DeleteTopicsResponse).Topics, gone)
		}
	case *kmsg.InitProducerIDRequest:
		response.(*kmsg.InitProducerIDResponse).ProducerID = time.Now().UnixNano()
	case *kmsg.ListOffsetsRequest:
		s.offsets(q, response.(*kmsg.ListOffsetsResponse))
	}
	return response.AppendTo(nil), nil
}

func (s *Server) supported(code int16) []byte {
	response := kmsg.NewPtrApiVersionsResponse()
	response.ErrorCode = code
	add := func(key, version int16) {
		known := kmsg.NewApiVersionsResponseApiKey()
		known.ApiKey, known.MinVersion, known.MaxVersion = key, version, version
		response.ApiKeys = append(response.ApiKeys, known)
	}
	add(produceKey, produceVersion)
	add(fetchKey, fetchVersion)
	for key, version := range versions {
		add(key, version)
	}
	return response.AppendTo(nil)
}

func (s *Server) metadata(q *kmsg.MetadataRequest, response *kmsg.MetadataResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := "floor"
	response.ClusterID, response.ControllerID = &id, 1
	broker := kmsg.NewMetadataResponseBroker()
	broker.NodeID, broker.Host, broker.Port = 1, s.address.IP.String(), int32(s.address.Port)
	response.Brokers = append(response.Brokers, broker)
	var names []string
	for _, topic := range q.Topics {
		names = append(names, *topic.Topic)
	}
	if q.Topics == nil {
		for name := range s.topics {
			names = append(names, name)
		}
	}
	for _, name := range names {
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic = &name
		if s.topics[name] == nil {
			topic.ErrorCode = kerr.UnknownTopicOrPartition.Code
		}
		for number := range s.topics[name] {
			p := kmsg.NewMetadataResponseTopicPartition()
			p.Partition, p.Leader, p.Replicas, p.ISR = int32(number), 1, []int32{1}, []int32{1}
			topic.Partitions = append(topic.Partitions, p)
		}
		response.Topics = append(response.Topics, topic)
	}
}

func (s *Server) offsets(q *kmsg.ListOffsetsRequest, response *kmsg.ListOffsetsResponse) {
	for _, topic := range q.Topics {
		answer := kmsg.NewListOffsetsResponseTopic()
		answer.Topic = topic.Topic
		for _, asked := range topic.Partitions {
			told := kmsg.NewListOffsetsResponseTopicPartition()
			told.Partition = asked.Partition
			switch p := s.find([]byte(topic.Topic), asked.Partition); {
			case p == nil:
				told.ErrorCode = kerr.UnknownTopicOrPartition.Code
			case asked.Timestamp == -1:
				_, _, told.Offset = p.from(1<<62, 0)
			default:
				told.Offset = 0
			}
			answer.Partitions = append(answer.Partitions, told)
		}
		response.Topics = append(response.Topics, answer)
	}
}
