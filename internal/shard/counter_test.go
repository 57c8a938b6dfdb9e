package shard

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// counter is a machine with one number per name. Timers set a name to 0, and callers can wait for that.
type counter struct {
	numbers  map[string]int64
	offsets  map[string]protocol.Offset
	pending  map[protocol.ProducerID]map[string]int64
	deadline map[string]time.Duration
	waiters  map[string]Ticket
	answers  []Answer
	loaded   int
	refused  []error
	poison   bool
}

func newCounter(int32) *counter {
	return &counter{
		numbers: map[string]int64{}, offsets: map[string]protocol.Offset{}, deadline: map[string]time.Duration{},
		pending: map[protocol.ProducerID]map[string]int64{}, waiters: map[string]Ticket{},
	}
}

func number(name string, n int64) Record {
	return Record{[]byte(name), binary.BigEndian.AppendUint64(nil, uint64(n))}
}

func (c *counter) Replay(r Replayed) {
	name := string(r.Key)
	switch {
	case name == "poison":
		panic("poisoned record")
	case r.Value == nil:
		delete(c.numbers, name)
	case r.ProducerID != protocol.NoProducerID:
		if c.pending[r.ProducerID] == nil {
			c.pending[r.ProducerID] = map[string]int64{}
		}
		c.pending[r.ProducerID][name] = int64(binary.BigEndian.Uint64(r.Value))
	default:
		c.numbers[name] = int64(binary.BigEndian.Uint64(r.Value))
		c.offsets[name] = r.Offset
	}
}

func (c *counter) EndTransaction(producer protocol.ProducerID, committed bool) {
	for name, n := range c.pending[producer] {
		if committed {
			c.numbers[name] = n
		}
	}
	delete(c.pending, producer)
}

func (c *counter) Loaded(Now) { c.loaded++ }

func (c *counter) Deadline() (time.Duration, bool) {
	nearest, ok := never, false
	for _, at := range c.deadline {
		nearest, ok = min(nearest, at), true
	}
	return nearest, ok
}

func (c *counter) Expire(now Now) (Decision, bool) {
	for name, at := range c.deadline {
		if at > now.Mono {
			continue
		}
		delete(c.deadline, name)
		if c.poison {
			panic("poisoned timer")
		}
		if t, ok := c.waiters[name]; ok {
			delete(c.waiters, name)
			c.answers = append(c.answers, Answer{t, fmt.Sprintf("%s was %d", name, c.numbers[name])})
		}
		return Decision{Records: []Record{number(name, 0)}}, true
	}
	return Decision{}, false
}

func (c *counter) Answers() []Answer {
	answers := c.answers
	c.answers = nil
	return answers
}

// set is a decision of which nothing is true before it is applied.
func (c *counter) set(name string, n int64) Decision {
	return Decision{Records: []Record{number(name, n)}, Refused: func(err error) Decision {
		c.refused = append(c.refused, err)
		return Decision{}
	}}
}
