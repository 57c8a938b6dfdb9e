package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/protocol"
)

// stuck says where everybody stands who does not get on:
//
//	in the store      the controller, the brokers that are registered, every partition's state
//	each broker       what it shows to clients, where that differs from the store
//	each client       whom it asks, since when, and what it was told last
func (w *world) stuck(ctx context.Context, admin *client) string {
	var s strings.Builder
	tree := w.store.Tree()
	tree.Walk("/", func(path string, data []byte, stat coordination.Stat) bool {
		switch {
		case path == "/controller", path == "/admin/reassign_partitions", strings.HasSuffix(path, "/state"),
			strings.HasPrefix(path, "/admin/delete_topics/"), strings.HasPrefix(path, "/log_dir_event_notification/"):
			fmt.Fprintf(&s, "  store     %s %s (written by %d)\n", path, data, stat.Mzxid)
		case strings.HasPrefix(path, "/brokers/ids/"):
			fmt.Fprintf(&s, "  store     %s has epoch %d\n", path, stat.Czxid)
		}
		return true
	})
	for _, m := range w.machines {
		l := m.current()
		if l == nil || l.broker == nil {
			fmt.Fprintf(&s, "  %s  is down\n", m.host)
			continue
		}
		q := kmsg.NewPtrMetadataRequest()
		q.Version = 9
		answer, err := admin.ask(ctx, int32(m.id), q)
		if err != nil {
			fmt.Fprintf(&s, "  %s  does not answer: %v\n", l.name(), err)
			continue
		}
		for _, t := range answer.(*kmsg.MetadataResponse).Topics {
			for _, p := range t.Partitions {
				fmt.Fprintf(&s, "  %s  shows %s-%d leader %d epoch %d isr %v offline %v %v\n",
					m.host, *t.Topic, p.Partition, p.Leader, p.LeaderEpoch, p.ISR, p.OfflineReplicas, protocol.Code(p.ErrorCode))
			}
		}
	}
	for _, c := range w.clients {
		fmt.Fprintf(&s, "  %s\n", c.waits())
	}
	return strings.TrimSuffix(s.String(), "\n")
}

// waits says what a client is at.
func (c *client) waits() string {
	c.doing.Lock()
	defer c.doing.Unlock()
	line := fmt.Sprintf("%-10s does nothing", c.host)
	if c.doing.asks {
		line = fmt.Sprintf("%-10s waits for %s from broker %d since %v", c.host,
			kmsg.NameForKey(c.doing.key), c.doing.broker, time.Since(c.doing.since).Round(time.Millisecond))
	}
	if c.doing.last != nil {
		line += fmt.Sprintf("; the last error: %v", c.doing.last)
	}
	return line
}

// begin notes whom a client asks; the result notes how that ended.
func (c *client) begin(broker int32, q kmsg.Request) (end func(error)) {
	c.doing.Lock()
	defer c.doing.Unlock()
	c.doing.asks, c.doing.key, c.doing.broker, c.doing.since = true, q.Key(), broker, time.Now()
	return func(err error) {
		c.doing.Lock()
		defer c.doing.Unlock()
		c.doing.asks = false
		if err != nil {
			c.doing.last = err
		}
	}
}

// fail notes an error that an answer brought.
func (c *client) fail(about string, err error) {
	c.doing.Lock()
	defer c.doing.Unlock()
	c.doing.last = fmt.Errorf("%s at %v: %w", about, time.Since(c.world.journal.began).Round(time.Millisecond), err)
}
