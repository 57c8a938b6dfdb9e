package znode

import (
	"fmt"
	"strconv"

	P "github.com/barnabas-mq/barnabas/internal/protocol"
)

// ProducerIDBlockPath is the newest block of producer ids that was given to a broker; the next begins
// behind it. It is created without data. Both ends are inclusive, and strings:
//
//	{"version":1,"broker":1,"block_start":"0","block_end":"999"}
const ProducerIDBlockPath = "/latest_producer_id_block"

// ProducerIDBlockSize is how many ids one block holds.
const ProducerIDBlockSize = 1000

// ProducerIDBlock is a block of producer ids that belongs to one broker.
type ProducerIDBlock struct {
	// Broker hands the ids out.
	Broker P.BrokerID
	// First and Last are the ends, both inclusive.
	First, Last P.ProducerID
}

// NextProducerIDBlock is the block behind the one in data; the first where there is no data yet.
func NextProducerIDBlock(data []byte, broker P.BrokerID) (ProducerIDBlock, error) {
	var first P.ProducerID
	if len(data) > 0 {
		old, err := DecodeProducerIDBlock(data)
		if err != nil {
			return ProducerIDBlock{}, err
		}
		first = old.Last + 1
	}
	next := ProducerIDBlock{Broker: broker, First: first, Last: first + ProducerIDBlockSize - 1}
	if next.First < 0 || next.Last < next.First {
		return ProducerIDBlock{}, fmt.Errorf("%s: all producer ids up to %d are used", ProducerIDBlockPath, first-1)
	}
	return next, nil
}

// EncodeProducerIDBlock writes the znode.
func EncodeProducerIDBlock(b ProducerIDBlock) []byte {
	return fmt.Appendf(nil, `{"version":1,"broker":%d,"block_start":"%d","block_end":"%d"}`, b.Broker, b.First, b.Last)
}

// DecodeProducerIDBlock reads the znode.
func DecodeProducerIDBlock(data []byte) (ProducerIDBlock, error) {
	var v struct {
		Broker P.BrokerID `json:"broker"`
		First  string     `json:"block_start"`
		Last   string     `json:"block_end"`
	}
	if err := decode(ProducerIDBlockPath, data, &v); err != nil {
		return ProducerIDBlock{}, err
	}
	first, err := strconv.ParseInt(v.First, 10, 64)
	if err != nil {
		return ProducerIDBlock{}, fmt.Errorf("%s: block_start: %w", ProducerIDBlockPath, err)
	}
	last, err := strconv.ParseInt(v.Last, 10, 64)
	if err != nil || last < first || first < 0 {
		return ProducerIDBlock{}, fmt.Errorf("%s: block %s to %q is not a range of ids", ProducerIDBlockPath, v.First, v.Last)
	}
	return ProducerIDBlock{Broker: v.Broker, First: P.ProducerID(first), Last: P.ProducerID(last)}, nil
}
