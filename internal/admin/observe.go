package admin

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// observePatience bounds one look at a broker's metrics, which is a courtesy: who cannot be reached is left out.
const observePatience = time.Second

// maxScrape bounds what is read of one.
const maxScrape = 64 << 20

// Observed is what a broker's /metrics say of what Kafka's protocol has no words for.
type Observed struct {
	// ControllerEpoch is that of the controller whose word it has.
	ControllerEpoch int64
	// Connected says that its session with the store of the metadata has a connection, and Remaining for how long the
	// session lives for certain.
	Connected bool
	Remaining time.Duration
	// Latency is the mean time of a request to the store since the broker's start; 0 where none was sent.
	Latency time.Duration
	// MaxLag is by how many records the partition that lags most is behind of those that it follows.
	MaxLag int64
}

// observe reads a broker's metrics at its http.listener. nil where that is off, or cannot be reached from here, or is
// another broker's: the default listens on the loopback only.
func (c *Client) observe(ctx context.Context, cluster string, b Broker) *Observed {
	resources, err := c.describeConfigs(ctx, kmsg.ConfigResourceTypeBroker, []string{strconv.Itoa(int(b.ID))}, []string{"http.listener"})
	if err != nil || resources[0].Err != nil || len(resources[0].Entries) == 0 {
		return nil
	}
	host, port, err := net.SplitHostPort(resources[0].Entries[0].Text())
	if err != nil || port == "0" {
		return nil
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = b.Host
	}
	ctx, cancel := context.WithTimeout(ctx, observePatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/metrics", nil)
	if err != nil {
		return nil
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	return observed(io.LimitReader(response.Body, maxScrape), cluster, b.ID)
}

// observed picks from a scrape; nil where it is of another broker or cluster.
func observed(scrape io.Reader, cluster string, broker int32) *Observed {
	values := map[string]float64{}
	self := fmt.Sprintf(`barnabas_broker_info{broker="%d",cluster=%q}`, broker, cluster)
	lines := bufio.NewScanner(scrape)
	for lines.Scan() {
		if name, text, ok := strings.Cut(lines.Text(), " "); ok {
			if value, err := strconv.ParseFloat(text, 64); err == nil {
				values[name] = value
			}
		}
	}
	if values[self] != 1 {
		return nil
	}
	o := &Observed{
		ControllerEpoch: -1, Connected: values["barnabas_store_connected"] == 1, MaxLag: int64(values["barnabas_follower_max_lag_records"]),
		Remaining: time.Duration(values["barnabas_store_session_remaining_seconds"] * float64(time.Second)),
	}
	if epoch, ok := values["barnabas_controller_epoch"]; ok {
		o.ControllerEpoch = int64(epoch)
	}
	if requests := values["barnabas_store_requests_total"]; requests > 0 {
		o.Latency = time.Duration(values["barnabas_store_request_seconds_total"] / requests * float64(time.Second))
	}
	return o
}
