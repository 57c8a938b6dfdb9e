package broker_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/zookeeper"
	"github.com/barnabas-mq/barnabas/internal/coordination/zookeeper/zktest"
	"github.com/barnabas-mq/barnabas/internal/protocol"
	"github.com/barnabas-mq/barnabas/internal/record"
	"github.com/barnabas-mq/barnabas/internal/vfs"
	"github.com/barnabas-mq/barnabas/internal/znode"
)

// startZooKeeper runs a real ZooKeeper for a test.
func startZooKeeper(t *testing.T, properties ...string) *zktest.Server {
	t.Helper()
	zk, err := zktest.Start(zktest.Options{Dir: t.TempDir(), Properties: properties})
	if errors.Is(err, zktest.ErrMissing) {
		t.Skip("NOT RUN: ", err) // test/run says so too
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(zk.Kill)
	return zk
}

// shortSession is for tests in which sessions are to end by themselves.
var shortSession = []string{"zookeeper.session.timeout.ms", "3000"}

// notBackYet is what a broker logs whose session has ended when the first try to register again fails, as on a busy machine
// it may.
var notBackYet = []string{"not back in its cluster yet"}

// onZooKeeper is where a broker runs whose cluster lies in a chroot. Its session does not end because the machine is busy.
func onZooKeeper(t *testing.T, zk *zktest.Server, chroot string, properties ...string) *site {
	s := &site{t: t, fs: vfs.NewMemory(), properties: map[string]string{
		"zookeeper.connect": zk.Address + chroot, "zookeeper.session.timeout.ms": "10000", "broker.id": "0",
		"zookeeper.connection.timeout.ms": "30000", "offsets.topic.num.partitions": "2",
	}}
	for i := 0; i < len(properties); i += 2 {
		s.properties[properties[i]] = properties[i+1]
	}
	return s
}

// observe opens a session beside the brokers.
func observe(t *testing.T, zk *zktest.Server, chroot string) coordination.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := zookeeper.New(zookeeper.Options{Servers: []string{zk.Address}}).Open(ctx, coordination.SessionOptions{Chroot: chroot})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// wire carries a broker's connections to ZooKeeper, until it is cut: then nothing goes through, and neither
// side hears of it.
type wire struct {
	only  string // where it leads; connections elsewhere are not cut
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	cut := w.cut
	w.mu.Unlock()
	if w.only != "" && address != w.only {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	if cut {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	client, server := net.Pipe()
	far, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, server, far)
	go w.carry(server, far)
	go w.carry(far, server)
	return client, nil
}

// carry copies until one side is closed; what comes while the wire is cut is lost.
func (w *wire) carry(to, from net.Conn) {
	defer to.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		w.mu.Lock()
		cut := w.cut
		w.mu.Unlock()
		if cut {
			n = 0
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut = cut; !cut {
		for _, c := range w.conns {
			_ = c.Close()
		}
		w.conns = nil
	}
}

// await polls until something holds: a broker's answers are all that tells.
func awaitThat(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("it never came: %s", what)
		}
	}
}

func put(t *testing.T, c *conn, topic, value string) {
	t.Helper()
	if answer := c.produce(topic, 0, batch(record.BuilderOptions{ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1}, value)); answer.ErrorCode != 0 {
		t.Fatalf("producing %s: %v", value, protocol.Code(answer.ErrorCode))
	}
}

func TestOnZooKeeper(t *testing.T) {
	zk := startZooKeeper(t)
	for _, c := range []struct {
		name string
		run  func(*testing.T, *zktest.Server, string)
	}{
		{"one broker", oneBrokerOnZooKeeper},
		{"generated ids", generatedIDs},
		{"an id that is taken", takenID},
		{"an id whose owner was killed", ownerKilled},
		{"another cluster", anotherCluster},
		{"an expired session", expiredSession},
		{"a wiped tree", wipedTree},
		{"the tree of Kafka", sameTree},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // they wait for sessions to end
			c.run(t, zk, "/"+strings.ReplaceAll(c.name, " ", "-")+"/deep")
		})
	}
}

// One broker serves, and finds its topics again after a restart. The chroot is made.
func oneBrokerOnZooKeeper(t *testing.T, zk *zktest.Server, chroot string) {
	s := onZooKeeper(t, zk, chroot)
	r := s.start()
	c := r.dial()
	c.create("orders", 2, "retention.ms", "12345")
	put(t, c, "orders", "first")
	r.stop()
	tree := observe(t, zk, chroot)
	if names, _, err := tree.Children(t.Context(), znode.BrokersPath); err != nil || len(names) != 0 {
		t.Errorf("after the stop %v are registered, %v", names, err)
	}
	r = s.start()
	_, stat, err := tree.Get(t.Context(), znode.BrokerPath(0))
	if err != nil || stat.Version != 1 {
		t.Errorf("the registration has version %d, %v", stat.Version, err)
	}
	c = r.dial()
	put(t, c, "orders", "second")
	if got := c.readAll("orders", 0); len(got) != 2 || got[1].value != "second" {
		t.Errorf("read back: %v", got)
	}
	if got := c.property("orders", "retention.ms"); got != "12345" {
		t.Errorf("retention.ms is %q", got)
	}
}

// Brokers without an id draw one above reserved.broker.max.id, and keep it.
func generatedIDs(t *testing.T, zk *zktest.Server, chroot string) {
	var sites []*site
	for range 2 {
		s := onZooKeeper(t, zk, chroot, "reserved.broker.max.id", "7")
		delete(s.properties, "broker.id")
		sites = append(sites, s)
		s.start().stop()
	}
	for i, s := range sites {
		r := s.start()
		if _, there, err := observe(t, zk, chroot).Exists(t.Context(), znode.BrokerPath(protocol.BrokerID(8+i))); err != nil || !there {
			t.Errorf("broker %d is not registered: %v", 8+i, err)
		}
		r.stop()
	}
}

// A second broker with the id of a living one gives up, and says why; the first one goes on.
func takenID(t *testing.T, zk *zktest.Server, chroot string) {
	first := onZooKeeper(t, zk, chroot).start()
	second := onZooKeeper(t, zk, chroot, shortSession...) // how long it waits
	second.forgives = true
	_, err := second.try()
	if err == nil || !strings.Contains(err.Error(), "broker id 0 is taken") || !strings.Contains(err.Error(), first.Addresses()[0]) {
		t.Errorf("the second broker: %v", err)
	}
	first.dial().create("still-here", 1)
}

// A broker that comes back at once waits until its earlier session has run out.
func ownerKilled(t *testing.T, zk *zktest.Server, chroot string) {
	s, w := onZooKeeper(t, zk, chroot, shortSession...), &wire{}
	s.dial, s.forgives = w.dial, true
	r := s.start()
	r.dial().create("orders", 1)
	old, _, err := observe(t, zk, chroot).Exists(t.Context(), znode.BrokerPath(0))
	if err != nil {
		t.Fatal(err)
	}
	w.set(true)
	r.crash()
	w.set(false)
	s.properties["zookeeper.session.timeout.ms"] = "10000" // the new session is not to end
	again := s.start()
	now, _, err := observe(t, zk, chroot).Exists(t.Context(), znode.BrokerPath(0))
	if err != nil || now.Czxid <= old.Czxid {
		t.Errorf("broker epoch %d after %d, %v", now.Czxid, old.Czxid, err)
	}
	put(t, again.dial(), "orders", "after")
}

// Directories of another cluster are refused, with the command that makes them fit.
func anotherCluster(t *testing.T, zk *zktest.Server, chroot string) {
	s := onZooKeeper(t, zk, chroot)
	s.start().stop()
	other := onZooKeeper(t, zk, chroot+"-other")
	other.start().stop()
	s.properties["zookeeper.connect"] = zk.Address + chroot + "-other"
	s.forgives = true
	_, err := s.try()
	if err == nil || !strings.Contains(err.Error(), "sed -i 's/^cluster.id=.*/cluster.id=") || !strings.Contains(err.Error(), "/data/meta.properties") {
		t.Errorf("start on another cluster: %v", err)
	}
}

// A broker whose session expires serves on, comes back under a new epoch, and is the controller again.
func expiredSession(t *testing.T, zk *zktest.Server, chroot string) {
	s, w := onZooKeeper(t, zk, chroot, shortSession...), &wire{}
	s.dial, s.tolerates = w.dial, notBackYet
	r := s.start()
	c := r.dial()
	c.create("orders", 1)
	tree := observe(t, zk, chroot)
	watch, err := tree.Watch(t.Context(), znode.BrokerPath(0), coordination.Node)
	if err != nil {
		t.Fatal(err)
	}
	old, _, err := tree.Exists(t.Context(), znode.BrokerPath(0))
	if err != nil {
		t.Fatal(err)
	}
	w.set(true)
	for e := range watch.Events() {
		put(t, c, "orders", "while it is cut off")
		if e.Kind == coordination.Deleted {
			break
		}
	}
	put(t, c, "orders", "expired, and does not know")
	w.set(false)
	awaitThat(t, "a new registration", func() bool {
		now, there, err := tree.Exists(t.Context(), znode.BrokerPath(0))
		return err == nil && there && now.Czxid > old.Czxid
	})
	put(t, c, "orders", "back again")
	c.create("payments", 1) // which needs a controller
	if code := c.alter("payments", "retention.ms", "777"); code != protocol.None || c.property("payments", "retention.ms") != "777" {
		t.Errorf("properties after the return: %v, %q", code, c.property("payments", "retention.ms"))
	}
	put(t, c, "payments", "new")
	if got := c.readAll("orders", 0); len(got) < 3 {
		t.Errorf("read back: %v", got)
	}
}

// A broker does not register in a tree that does not know its cluster any more; it serves what it has.
func wipedTree(t *testing.T, zk *zktest.Server, chroot string) {
	s, w := onZooKeeper(t, zk, chroot, shortSession...), &wire{}
	s.dial, s.tolerates = w.dial, notBackYet
	r := s.start()
	c := r.dial()
	c.create("orders", 1)
	tree := observe(t, zk, chroot)
	watch, err := tree.Watch(t.Context(), znode.BrokerPath(0), coordination.Node)
	if err != nil {
		t.Fatal(err)
	}
	w.set(true)
	for e := range watch.Events() {
		if e.Kind == coordination.Deleted {
			break
		}
	}
	saved, _, err := tree.Get(t.Context(), znode.ClusterIDPath)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Delete(t.Context(), znode.ClusterIDPath, coordination.AnyVersion); err != nil {
		t.Fatal(err)
	}
	w.set(false)
	awaitThat(t, "a word about it", func() bool { return r.log.has("does not know the cluster") })
	put(t, c, "orders", "served")
	if _, _, err := tree.Create(t.Context(), znode.ClusterIDPath, saved, coordination.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitThat(t, "the return", func() bool { return r.log.has("back in the cluster") })
	c.create("payments", 1)
}

// ZooKeeper is away for longer than a session lasts: produce and fetch go on, and when it is back nothing has
// changed: the same registration, the same leader epoch.
func TestZooKeeperAway(t *testing.T) {
	const session = 8 * time.Second // within it the broker is back on a server that has just started, on a busy machine too
	zk := startZooKeeper(t)
	r := onZooKeeper(t, zk, "", "zookeeper.session.timeout.ms", fmt.Sprint(session.Milliseconds())).start()
	c := r.dial()
	c.create("orders", 1)
	before := observe(t, zk, "")
	registered, _, err := before.Exists(t.Context(), znode.BrokerPath(0))
	if err != nil {
		t.Fatal(err)
	}
	state, _, err := before.Get(t.Context(), "/brokers/topics/orders/partitions/0/state")
	if err != nil {
		t.Fatal(err)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	zk.Kill()
	away, n := time.After(session+time.Second), 0
	for gone := true; gone; n++ {
		put(t, c, "orders", fmt.Sprint(n))
		select {
		case <-away:
			gone = false
		default:
		}
	}
	if err := zk.Restart(); err != nil {
		t.Fatal(err)
	}
	c.create("payments", 1)
	put(t, c, "orders", "last")
	if got := c.readAll("orders", 0); len(got) != n+1 {
		t.Errorf("%d records, want %d", len(got), n+1)
	}
	after := observe(t, zk, "")
	now, _, err := after.Exists(t.Context(), znode.BrokerPath(0))
	if err != nil || now != registered {
		t.Errorf("the registration is %+v, and was %+v; %v", now, registered, err)
	}
	if same, _, err := after.Get(t.Context(), "/brokers/topics/orders/partitions/0/state"); err != nil || string(same) != string(state) {
		t.Errorf("the state is %s, and was %s; %v", same, state, err)
	}
}

// Over TLS, with a certificate and as a user of SASL, everything in the tree gets Kafka's protection: its creator
// may do all, everybody reads, except for secrets.
func TestSecureZooKeeper(t *testing.T) {
	if _, err := zktest.ClassPath(); err != nil {
		t.Skip("NOT RUN: ", err)
	}
	ca, err := zktest.NewAuthority(t.TempDir())
	if err == nil {
		err = errors.Join(ca.Issue("server", "127.0.0.1"), ca.Issue("broker"))
	}
	if err != nil {
		t.Fatal(err)
	}
	o, err := zktest.Login(t.TempDir(), zktest.Options{Dir: t.TempDir()}, "kafka", "secret")
	if err != nil {
		t.Fatal(err)
	}
	zk, address, err := ca.StartTLS("server", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(zk.Kill)
	s := onZooKeeper(t, zk, "/kafka", "zookeeper.connect", address+"/kafka", "zookeeper.ssl.client.enable", "true",
		"zookeeper.ssl.truststore.location", "/tls/trust.pem", "zookeeper.ssl.keystore.location", "/tls/broker.pem",
		"zookeeper.clientCnxnSocket", "org.apache.zookeeper.ClientCnxnSocketNetty", "zookeeper.set.acl", "true",
		"zookeeper.sasl.jaas.config", `org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="secret";`)
	copyIn(t, s.fs, map[string]string{"/tls/trust.pem": ca.Path("trust"), "/tls/broker.pem": ca.Path("broker")})
	r := s.start()
	r.dial().create("orders", 1)
	conn := observe(t, zk, "/kafka")
	for path, want := range map[string]error{
		"/brokers/ids/0": nil, "/brokers/topics/orders": nil, "/config/topics/orders": nil, "/controller": nil, "/config/users": coordination.ErrAuth,
		"/config/brokers": coordination.ErrAuth,
	} {
		if _, _, err := conn.Get(t.Context(), path); !errors.Is(err, want) {
			t.Errorf("a stranger reads %s: %v", path, err)
		}
		if _, err := conn.Set(t.Context(), path, nil, coordination.AnyVersion); !errors.Is(err, coordination.ErrAuth) {
			t.Errorf("a stranger writes %s: %v", path, err)
		}
	}
	if _, err := conn.Set(t.Context(), "/consumers", nil, coordination.AnyVersion); err != nil {
		t.Errorf("/consumers is not open: %v", err)
	}
}

// copyIn copies files of the system into a broker's.
func copyIn(t *testing.T, to vfs.FS, files map[string]string) {
	t.Helper()
	for path, from := range files {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := to.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := to.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(text, 0); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What cannot be used towards ZooKeeper stops the start with a sentence.
func TestZooKeeperSettingsThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		properties []string
		want       string
	}{
		{[]string{"zookeeper.connect", ","}, "no server is named"},
		{[]string{"zookeeper.set.acl", "true"}, "it does not log in"},
		{[]string{"zookeeper.sasl.jaas.config", "com.sun.security.auth.module.Krb5LoginModule required;"}, "is not supported"},
		{[]string{"zookeeper.sasl.jaas.config", "x.DigestLoginModule required username=\"u\";"}, "password"},
		{[]string{"zookeeper.ssl.client.enable", "true", "zookeeper.ssl.truststore.location", "/t.jks"}, "keytool -importkeystore"},
		{[]string{"zookeeper.ssl.client.enable", "true", "zookeeper.ssl.truststore.location", "/none.pem"}, "/none.pem"},
		{[]string{"zookeeper.ssl.client.enable", "true", "zookeeper.ssl.enabled.protocols", "TLSv1.1"}, "TLSv1.1"},
		{[]string{"zookeeper.ssl.client.enable", "true", "zookeeper.ssl.cipher.suites", "NO_SUCH"}, "NO_SUCH"},
		{[]string{"zookeeper.connection.timeout.ms", "100"}, "zookeeper.connection.timeout.ms"},
	} {
		s := onZooKeeper(t, &zktest.Server{Address: "127.0.0.1:1"}, "", c.properties...)
		if _, err := s.try(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.properties, err)
		}
	}
}
