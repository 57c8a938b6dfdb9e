package zookeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/barnabas-mq/barnabas/internal/coordination"
	"github.com/barnabas-mq/barnabas/internal/coordination/zookeeper/zktest"
	"github.com/barnabas-mq/barnabas/internal/jute"
)

// The digest for credentials and nonces that are known, computed by another implementation (Python's hashlib).
func TestDigest(t *testing.T) {
	d := &digest{who: Credentials{"kafka", "secret"}, realm: "zk-sasl-md5", nonce: "Zm9vYmFy", cnonce: "0123456789abcdef"}
	d.begin()
	if got, want := d.value("AUTHENTICATE"), "a4b305af3543a27f9a8cd638fa0e308c"; got != want {
		t.Errorf("client: %s, want %s", got, want)
	}
	if got, want := d.value(""), "0a2fdcc085d919a4b9259f99243ecd06"; got != want {
		t.Errorf("server: %s, want %s", got, want)
	}
}

func TestDirectives(t *testing.T) {
	got := parseDirectives(`realm="a \"quoted\" one", nonce="x=,y",qop="auth,auth-int" ,charset=utf-8,maxbuf=65536,,realm="second"`)
	want := map[string]string{"realm": `a "quoted" one`, "nonce": "x=,y", "qop": "auth,auth-int", "charset": "utf-8", "maxbuf": "65536"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzDirectives(f *testing.F) {
	f.Add(`realm="zk-sasl-md5",nonce="x",charset=utf-8`)
	f.Fuzz(func(_ *testing.T, s string) { parseDirectives(s) })
}

// SASL and credentials of addAuth against a server that knows both.
func TestSASL(t *testing.T) {
	o, err := zktest.Login(t.TempDir(), zktest.Options{}, "kafka", `sécret\"s" user_other="x`)
	if err != nil {
		t.Fatal(err)
	}
	zk := own(t, o)
	creator := func(string) []coordination.ACL {
		return []coordination.ACL{{Permissions: jute.PermAll, Scheme: "auth"}, {Permissions: jute.PermRead, Scheme: "world", ID: "anyone"}}
	}
	login := func(who Credentials) *Store {
		return New(Options{Servers: []string{zk.Address}, SASL: &who, ACL: creator})
	}
	n := &network{}
	owner := login(Credentials{"kafka", `sécret"s`})
	owner.options.Dial = n.dial
	s := openSession(t, owner, 0)
	create(t, s, "/owned", coordination.CreateOptions{})
	body, err := s.call(bounded(t), jute.OpGetACL, &jute.PathRecord{Path: "/owned"}, true)
	if err != nil {
		t.Fatal(err)
	}
	var acl jute.GetACLResponse
	acl.Read(jute.NewReader(body))
	want := []jute.ACL{{Permissions: jute.PermAll, Scheme: "sasl", ID: "kafka"}, {Permissions: jute.PermRead, Scheme: "world", ID: "anyone"}}
	if diff := cmp.Diff(want, acl.ACL); diff != "" {
		t.Errorf("acl: %s", diff)
	}
	n.cut() // it logs in again on the next connection
	if _, err := s.Set(bounded(t), "/owned", nil, coordination.AnyVersion); err != nil && !errors.Is(err, coordination.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	for name, store := range map[string]*Store{"nobody": storeOn(nil, zk.Address), "another user": login(Credentials{"other", "x"})} {
		stranger := openSession(t, store, 0)
		if _, err := stranger.Set(bounded(t), "/owned", nil, coordination.AnyVersion); !errors.Is(err, coordination.ErrAuth) {
			t.Errorf("%s writes: %v", name, err)
		}
		_, err := stranger.Txn(bounded(t), coordination.Check("/owned", -1), coordination.Set("/owned", nil, -1))
		var failed *coordination.TxnError
		if !errors.Is(err, coordination.ErrAuth) || !errors.As(err, &failed) || failed.Index != 1 {
			t.Errorf("%s writes in a transaction: %v", name, err)
		}
		if _, _, err := stranger.Get(bounded(t), "/owned"); err != nil {
			t.Errorf("%s reads: %v", name, err)
		}
	}
	if _, err := login(Credentials{"kafka", "wrong"}).Open(bounded(t), coordination.SessionOptions{}); !errors.Is(err, coordination.ErrAuth) {
		t.Errorf("a wrong password: %v", err)
	}
}

func TestSASLWhereThereIsNone(t *testing.T) {
	store := New(Options{Servers: []string{server(t).Address}, SASL: &Credentials{"kafka", "secret"}})
	if _, err := store.Open(bounded(t), coordination.SessionOptions{}); !errors.Is(err, coordination.ErrAuth) {
		t.Errorf("open: %v", err)
	}
}

func TestDigestCredentials(t *testing.T) {
	store := storeOn(nil, server(t).Address)
	auth := []coordination.Auth{{Scheme: "digest", Data: []byte("kafka:secret")}}
	s, err := store.Open(bounded(t), coordination.SessionOptions{Auth: auth})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	path := unique("digest")
	_, _, err = s.Create(bounded(t), path, nil, coordination.CreateOptions{ACL: []coordination.ACL{{Permissions: jute.PermAll, Scheme: "auth"}}})
	if err != nil {
		t.Fatal(err)
	}
	stranger := openSession(t, store, 0)
	if _, _, err := stranger.Get(bounded(t), path); !errors.Is(err, coordination.ErrAuth) {
		t.Errorf("a stranger reads: %v", err)
	}
	results, err := stranger.GetMany(bounded(t), []string{path, "/"})
	if err != nil || !errors.Is(results[0].Err, coordination.ErrAuth) || results[1].Err != nil {
		t.Errorf("a stranger reads many: %v, %v", results, err)
	}
	if _, _, err := s.Get(bounded(t), path); err != nil {
		t.Errorf("its owner reads: %v", err)
	}
	_, err = store.Open(bounded(t), coordination.SessionOptions{Auth: []coordination.Auth{{Scheme: "no-such-scheme"}}})
	if !errors.Is(err, coordination.ErrAuth) {
		t.Errorf("an unknown scheme: %v", err)
	}
}

// A server that demands certificates knows the broker by its own, and is known by its own.
func TestTLS(t *testing.T) {
	server(t)
	ca, stranger := newAuthority(t), newAuthority(t)
	zk, address, err := ca.StartTLS("server", zktest.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(zk.Kill)
	broker, err := tls.LoadX509KeyPair(ca.Path("broker"), ca.Path("broker"))
	if err != nil {
		t.Fatal(err)
	}
	with := func(c *tls.Config) *Store { return New(Options{Servers: []string{address}, TLS: c}) }
	s := openSession(t, with(&tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{broker}}), 0)
	_, _, err = s.Create(bounded(t), "/tls", nil, coordination.CreateOptions{ACL: []coordination.ACL{{Permissions: jute.PermAll, Scheme: "auth"}}})
	if err != nil {
		t.Fatal(err)
	}
	body, err := s.call(bounded(t), jute.OpGetACL, &jute.PathRecord{Path: "/tls"}, true)
	if err != nil {
		t.Fatal(err)
	}
	var acl jute.GetACLResponse
	acl.Read(jute.NewReader(body))
	if diff := cmp.Diff([]jute.ACL{{Permissions: jute.PermAll, Scheme: "x509", ID: "CN=broker"}}, acl.ACL); diff != "" {
		t.Errorf("acl: %s", diff)
	}
	for name, config := range map[string]*tls.Config{
		"no certificate":      {RootCAs: ca.Pool()},
		"an unknown server":   {Certificates: []tls.Certificate{broker}},
		"a stranger's server": {RootCAs: stranger.Pool(), Certificates: []tls.Certificate{broker}},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if _, err := with(config).Open(ctx, coordination.SessionOptions{}); err == nil {
			t.Errorf("%s: a session", name)
		} else {
			t.Logf("%s: %v", name, err)
		}
		cancel()
	}
}

// newAuthority is one that has issued certificates for a server and a broker.
func newAuthority(t *testing.T) *zktest.Authority {
	t.Helper()
	a, err := zktest.NewAuthority(t.TempDir())
	if err == nil {
		err = errors.Join(a.Issue("server", "127.0.0.1"), a.Issue("broker"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}
