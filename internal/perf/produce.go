package perf

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Load is what [Produce] writes.
//
// The callbacks run on the clients' goroutines while a lock is held: they must be quick.
type Load struct {
	Topic   string
	Records int64
	// Size is the bytes of a value, which are random letters.
	Size int
	// Value makes the values instead, where it is not nil, and Key the keys. With several clients both are called at once.
	Value, Key func(i int64) []byte
	// Rate is records a second, of all clients together; 0 for as fast as they go.
	Rate float64
	// Intended counts latency from when a record was due by Rate, not from when it was handed to the client.
	Intended bool
	// Patience is how long to go on without any acknowledgement; 0 is for ever. Brokers that do not answer, or refuse
	// for now, are tried again and again by the client.
	Patience time.Duration
	// Each is called now and then with what has been measured so far.
	Each func(*Measured)
	// Acknowledged is called with each record's time to its acknowledgement and its size, one at a time.
	Acknowledged func(took time.Duration, size int)
	// Failed is called with the error of each record that failed, one at a time; nil ends the load at the first.
	Failed func(error)
}

const (
	// timedEvery is which share of the records is timed at full speed: reading the clock twice costs as much as the
	// rest of what is done for a record.
	timedEvery = 16
	// eachEvery is how many records lie between two calls of Load.Each.
	eachEvery = 1000
	// slab is how many records are allocated at once.
	slab = 128
)

// Produce writes a load through clients, each of which writes an equal share, and waits for the acknowledgements. It
// ends early with ctx, which is no error, and with the first record that fails. Clients need
// kgo.AllowIdempotentProduceCancellation to end early.
func Produce(ctx context.Context, load Load, clients ...*kgo.Client) (*Measured, error) {
	if load.Value == nil {
		load.Value = Letters(load.Size, 0)
	}
	p := &producing{load: load, began: time.Now()}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	defer p.cancel(nil)
	if load.Patience > 0 {
		go p.watch()
	}
	var senders sync.WaitGroup
	for i, client := range clients {
		senders.Go(func() { p.send(client, int64(i), int64(len(clients))) })
	}
	senders.Wait()
	for _, client := range clients {
		// Whatever ends early is cancelled with p.ctx, so that this comes to an end.
		if err := client.Flush(context.WithoutCancel(ctx)); err != nil {
			return nil, err
		}
	}
	p.measured.Elapsed = time.Since(p.began)
	if p.err != nil && ctx.Err() == nil {
		return nil, p.err
	}
	return &p.measured, nil
}

// producing is a load under way.
type producing struct {
	load   Load
	began  time.Time
	ctx    context.Context
	cancel context.CancelCauseFunc
	sent   atomic.Int64

	mu       sync.Mutex // for what follows
	measured Measured
	failed   int64
	err      error // the first, where failures end the load
}

// send writes the records first, first+step, … of the load.
func (p *producing) send(client *kgo.Client, first, step int64) {
	var pace *Pace
	if p.load.Rate > 0 {
		pace = NewPace(p.load.Rate)
		defer pace.End()
	}
	timeAll := pace != nil || p.load.Acknowledged != nil
	untimed := func(r *kgo.Record, err error) { p.done(r, -1, err) }
	var records []kgo.Record
	for i := first; i < p.load.Records && p.ctx.Err() == nil; i += step {
		var due time.Time
		if pace != nil {
			due = pace.Await(p.ctx, i)
		}
		if len(records) == 0 {
			records = make([]kgo.Record, slab)
		}
		record := &records[0]
		records = records[1:]
		record.Topic, record.Value = p.load.Topic, p.load.Value(i)
		if p.load.Key != nil {
			record.Key = p.load.Key(i)
		}
		p.sent.Add(1)
		if !timeAll && i/step%timedEvery != 0 {
			client.Produce(p.ctx, record, untimed)
			continue
		}
		if pace == nil || !p.load.Intended {
			due = time.Now()
		}
		client.Produce(p.ctx, record, func(r *kgo.Record, err error) { p.done(r, time.Since(due), err) })
	}
}

// done counts a record that was acknowledged or failed; took is negative where it was not timed.
func (p *producing) done(r *kgo.Record, took time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.fail(err)
		return
	}
	size := len(r.Value)
	p.measured.Records++
	p.measured.Bytes += int64(len(r.Key) + size)
	if took >= 0 {
		p.measured.latency.add(took)
	}
	if p.load.Acknowledged != nil {
		p.load.Acknowledged(took, size)
	}
	if p.load.Each != nil && p.measured.Records%eachEvery == 0 {
		p.measured.Elapsed = time.Since(p.began)
		p.load.Each(&p.measured)
	}
}

// fail notes that a record failed. One that was given up because the load ends has the reason of that.
func (p *producing) fail(err error) {
	p.failed++
	if p.ctx.Err() != nil && err == context.Canceled {
		err = context.Cause(p.ctx)
	}
	if p.load.Failed != nil {
		p.load.Failed(err)
		return
	}
	p.err = cmp.Or(p.err, err)
	p.cancel(p.err)
}

// watch ends the load when records are in flight and none has been acknowledged for a while.
func (p *producing) watch() {
	tick := time.NewTicker(max(p.load.Patience/20, time.Millisecond))
	defer tick.Stop()
	since, last := time.Now(), int64(-1)
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-tick.C:
		}
		p.mu.Lock()
		ended := p.measured.Records + p.failed
		p.mu.Unlock()
		if ended != last || ended == p.sent.Load() {
			since, last = time.Now(), ended
			continue
		}
		if time.Since(since) > p.load.Patience {
			p.cancel(fmt.Errorf("no record has been acknowledged for %s: the broker does not answer, or cannot write for now "+
				"(its log says why)", p.load.Patience))
			return
		}
	}
}
