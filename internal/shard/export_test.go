package shard

import (
	"time"

	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// Counter shows the machine of the tests to those outside.
type Counter = counter

// NewCounter makes one.
func NewCounter(p int32) *counter { return newCounter(p) }

func (c *counter) Set(name string, n int64) Decision { return c.set(name, n) }
func (c *counter) Get(name string) (int64, protocol.Offset) {
	return c.numbers[name], c.offsets[name]
}
func (c *counter) Refused() int                              { return len(c.refused) }
func (c *counter) SetDeadline(name string, at time.Duration) { c.deadline[name] = at }
func (c *counter) Wait(name string, t Ticket)                { c.waiters[name] = t }
func (c *counter) Poison()                                   { c.poison = true }

// Number is a record of the counter.
func Number(name string, n int64) Record { return number(name, n) }

// Clock is the clock by itself.
type Clock = clock

// NewClock makes one.
func NewClock(wall func() time.Time) *clock { return newClock(wall) }

func (c *clock) Now() Now { return c.now() }
