package admin_test

import (
	"context"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas"
	"github.com/barnabas-mq/barnabas/internal/admin"
)

// Where the controller does not answer nobody can be elected, whatever metadata says.
func TestNobodyMayStopWithoutAController(t *testing.T) {
	cluster, err := barnabas.StartCluster(t.Context(), 3, barnabas.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop(context.Background())
	all := newClient(t, cluster.Brokers[0].Address())
	created, err := all.CreateTopics(t.Context(), []admin.NewTopic{{Name: "t", Partitions: 3, ReplicationFactor: 3}}, false)
	if err != nil || created[0].Err != nil {
		t.Fatal(err, created)
	}
	info, err := all.Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	away, other := "", ""
	for i, b := range cluster.Brokers {
		if int32(i+1) == info.Controller {
			away = b.Address()
		} else {
			other = b.Address()
		}
	}
	dial := func(ctx context.Context, network, host string) (net.Conn, error) {
		if host == away {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		return new(net.Dialer).DialContext(ctx, network, host)
	}
	soon := func(int) time.Duration { return 10 * time.Millisecond }
	c, err := admin.New(admin.Options{Bootstrap: []string{other}, Client: []kgo.Opt{kgo.Dialer(dial), kgo.RetryBackoffFn(soon)}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for id := range int32(3) {
		if obstacles, err := all.CanStop(t.Context(), id+1); err != nil || len(obstacles) > 0 {
			t.Errorf("broker %d may stop: %v, %v", id+1, obstacles, err)
		}
		if obstacles, err := c.CanStop(t.Context(), id+1); err == nil || !strings.Contains(err.Error(), "nobody could take over") {
			t.Errorf("broker %d without a controller: %v, %v", id+1, obstacles, err)
		}
	}
}
